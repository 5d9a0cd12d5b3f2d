"""The tree of errors: whose fault it is, with the numbers.

::

    RebalanceError                 never raised itself
    + EncodeError                  ours: this value cannot be written in this version
    + DecodeError                  the peer's: these bytes are not what they claim to be

Higher storeys add their own branches. Constructor arguments stay readable as attributes, so that a
caller can decide on numbers instead of parsing a sentence.
"""

__all__ = ["DecodeError", "EncodeError", "RebalanceError"]

_SHOWN = 80  # characters of a refused value that an error message repeats


class RebalanceError(Exception):
    """Root of every error that this project raises on purpose."""


class EncodeError(RebalanceError):
    """A value of ours cannot be written.

    Attributes:
        field: name of the field, dotted for a part of it (``client_tags.key``).
        value: the value that was refused.
        version: version that was to be written; ``None`` where the value fits no version.
        reason: why, and what to do instead.
    """

    def __init__(self, field: str, value: object, version: int | None, reason: str) -> None:
        self.field = field
        self.value = value
        self.version = version
        self.reason = reason
        shown = repr(value)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}... ({len(shown)} characters)"
        where = "" if version is None else f" in version {version}"
        super().__init__(f"cannot write {field} = {shown}{where}: {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.field, self.value, self.version, self.reason))


class DecodeError(RebalanceError):
    """Bytes of a peer are not what they claim to be.

    Attributes:
        what: field that was being read and what is wrong with it.
        offset: byte at which the reader stood.
        version: used version of the blob; ``None`` if not even that could be read.
        available: how many bytes there were in all.
    """

    def __init__(self, what: str, *, offset: int, version: int | None, available: int) -> None:
        self.what = what
        self.offset = offset
        self.version = version
        self.available = available
        label = "unknown version" if version is None else f"version {version}"
        super().__init__(f"{what} (at byte {offset} of {available}, {label})")

    def __reduce__(self) -> tuple[object, ...]:
        return (_decode_error, (self.what, self.offset, self.version, self.available))


def _decode_error(what: str, offset: int, version: int | None, available: int) -> DecodeError:
    return DecodeError(what, offset=offset, version=version, available=available)
