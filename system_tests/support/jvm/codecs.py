"""The codecs of a real release, asked from here."""

from system_tests.support.jvm.child import JvmChild


class RealCodec(JvmChild):
    """A release's codecs in a process of their own; use it as a context manager.

    Args:
        release: exact name.
    """

    def __init__(self, release: str) -> None:
        super().__init__("codec", release, what="codec")

    def through(self, kind: str, data: bytes) -> bytes:
        """Decode and encode by the real class; `kind` is "subscription" or "assignment".

        Raises:
            ValueError: the class refuses the bytes; the message is its own.
            EnvironmentFailureError: the process ended, for want of jars or of a Java.
        """
        found = self.ask({"kind": kind, "hex": data.hex()})
        if "error" in found:
            raise ValueError(found["error"])
        return bytes.fromhex(found["hex"])
