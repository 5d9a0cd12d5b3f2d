"""A client of the process that runs the codecs of a real release."""

from collections.abc import Mapping
from typing import Any

from system_tests.support.jvm.child import JvmChild


class RealCodec(JvmChild):
    """The codecs of a release, in a separate process; use it as a context manager.

    Args:
        release: exact name.
    """

    def __init__(self, release: str) -> None:
        super().__init__("codec", release, what="codec")

    def through(self, kind: str, data: bytes) -> bytes:
        """Decode and encode with the real class; `kind` is "subscription" or "assignment".

        Raises:
            ValueError: the class rejects the bytes; with the message of its exception.
            EnvironmentFailureError: the process ended, because jars or Java are missing.
        """
        return bytes.fromhex(self._answer(kind=kind, hex=data.hex())["hex"])

    def latest_version(self) -> int:
        """Return the newest version, a constant of the release's classes."""
        return int(self._answer(constant=True)["version"])

    def read(self, kind: str, data: bytes) -> dict[str, Any]:
        """Decode with the real class; return what its getters say, as in the golden files.

        Raises:
            ValueError: the class rejects the bytes; with its exception's class and message.
        """
        fields: dict[str, Any] = self._answer(kind=kind, hex=data.hex(), read=True)["fields"]
        return fields

    def construct(
        self, kind: str, version: int, latest_supported: int, fields: Mapping[str, Any]
    ) -> bytes:
        """Build a value with the real constructor and encode it; `fields` as `read` returns them.

        Raises:
            ValueError: the class rejects the values; with its exception's class and message.
        """
        asked = {"version": version, "latest_supported": latest_supported, "fields": fields}
        return bytes.fromhex(self._answer(kind=kind, **asked)["hex"])

    def _answer(self, **asked: Any) -> dict[str, Any]:
        found = dict(self.ask(asked))
        if "error" in found:
            raise ValueError(found["error"])
        return found
