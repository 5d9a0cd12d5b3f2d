"""A client of the process that runs the codecs of a real release."""

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
        found = self.ask({"kind": kind, "hex": data.hex()})
        if "error" in found:
            raise ValueError(found["error"])
        return bytes.fromhex(found["hex"])
