"""Base classes of the project's errors.

::

    RebalanceError                 base class, never raised itself
    + EncodeError                  a value of the caller cannot be written in this version
    + DecodeError                  bytes of a peer are invalid

Other packages add subclasses. Constructor arguments are attributes, so that a caller does not need
to parse the message.
"""

_SHOWN = 80  # characters of a refused value that an error message repeats


class RebalanceError(Exception):
    """Base class of every error that this project raises on purpose."""


class EncodeError(RebalanceError):
    """A value of the caller cannot be written.

    Attributes:
        field: name of the field, dotted for a part of it (``client_tags.key``).
        value: the refused value.
        version: version to be written; ``None`` if the value fits no version.
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
    """Bytes of a peer are invalid.

    Attributes:
        what: the field, and what is wrong with it.
        offset: position of the reader in the bytes.
        version: used version of the blob; ``None`` if it could not be read.
        available: number of bytes of the blob.
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
