"""Variable-length integers (LEB128): single ones and columns.

LEB128 has seven bits per byte, lowest first; the top bit says that more bytes follow. Zig-zag puts
the sign into the lowest bit, so small negative numbers stay short. Plain Python handles short
lists, numpy long ones; both write the same bytes. Time and memory are linear in the bytes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Unsigned = npt.NDArray[np.uint64]
Signed = npt.NDArray[np.int64]

FEW = 32
"""Numbers up to which plain Python is faster than numpy."""

_LIMIT = 2**64
_BYTES = 10  # of the longest varint
_LAST_SHIFT = 7 * (_BYTES - 1)


class WireFault(ValueError):
    """A value or bytes that do not fit a wire type; the codec adds field, key and version."""


def encode_varint(value: int) -> bytes:
    """Bytes of one number from 0 to 2**64 - 1."""
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 seven bits
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_varints(values: Sequence[int] | Unsigned) -> bytes:
    """Bytes of numbers from 0 to 2**64 - 1, concatenated."""
    if len(values) > FEW:
        return _encode_column(np.asarray(values, np.uint64))
    out = bytearray()
    for value in values.tolist() if isinstance(values, np.ndarray) else values:
        left = value
        while left > 0x7F:  # noqa: PLR2004 seven bits
            out.append(left & 0x7F | 0x80)
            left >>= 7
        out.append(left)
    return bytes(out)


def decode_varints(data: bytes) -> list[int] | Unsigned:
    """The numbers in these bytes: a list if the bytes are few, else a uint64 column.

    Raises:
        WireFault: the last number is cut off, or one is above 2**64 - 1.
    """
    if len(data) > FEW:
        return _decode_column(data)
    values = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        if byte & 0x80 and shift < _LAST_SHIFT:
            shift += 7
            continue
        if value >= _LIMIT or byte & 0x80:
            raise WireFault("a varint is larger than 64 bits")
        values.append(value)
        value = shift = 0
    if data and data[-1] & 0x80:
        raise WireFault("the last varint is cut off")
    return values


def zigzag(values: Signed) -> Unsigned:
    """Signed to unsigned: 0, -1, 1, -2 become 0, 1, 2, 3."""
    folded: Unsigned = ((values << 1) ^ (values >> 63)).view(np.uint64)
    return folded


def unzigzag(values: list[int] | Unsigned) -> Signed:
    """Unsigned to signed, the reverse of ``zigzag``."""
    column = np.asarray(values, np.uint64)
    bit = np.uint64(1)
    half: Signed = (column >> bit).view(np.int64)
    return half ^ -(column & bit).view(np.int64)


def block(data: bytes) -> bytes:
    """The bytes with their length in front."""
    return encode_varint(len(data)) + data


def is_block(data: bytes) -> bool:
    """Whether these bytes are exactly one block."""
    cursor = Cursor(data)
    cursor.block()
    return cursor.left == 0


class Cursor:
    """A cursor over bytes; reading past their end raises ``WireFault``."""

    __slots__ = ("data", "place")

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    @property
    def left(self) -> int:
        """Number of unread bytes."""
        return len(self.data) - self.place

    def varint(self) -> int:
        """The next number."""
        if self.place < len(self.data) and self.data[self.place] < 0x80:  # noqa: PLR2004 one byte
            self.place += 1
            return self.data[self.place - 1]
        value = shift = 0
        for byte in self.data[self.place : self.place + _BYTES]:
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 the top bit
                break
        else:
            raise WireFault("a varint is cut off or larger than 64 bits")
        if value >= _LIMIT:
            raise WireFault("a varint is larger than 64 bits")
        return value

    def take(self, length: int) -> bytes:
        """The next ``length`` bytes."""
        start = self.place
        end = self.place = start + length
        if end > len(self.data):
            raise WireFault(f"{length} bytes are announced, {len(self.data) - start} are left")
        return self.data[start:end]

    def block(self) -> bytes:
        """The bytes of the next block."""
        return self.take(self.varint())

    def rest(self) -> bytes:
        """All unread bytes."""
        start, self.place = self.place, len(self.data)
        return self.data[start:]


def _encode_column(values: Unsigned) -> bytes:
    sizes = np.ones(len(values), np.int64)
    top = int(values.max())
    for size in range(1, _BYTES):
        if top >> (7 * size) == 0:
            break
        sizes += values >= np.uint64(1 << (7 * size))
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.empty(int(ends[-1]), np.uint8)
    left, longest = values, int(sizes.max())
    for size in range(1, longest + 1):
        low = (left & np.uint64(0x7F)).astype(np.uint8)
        out[starts] = low | ((sizes > size).astype(np.uint8) << 7)
        if size == longest:
            break
        going = sizes > size
        left, starts, sizes = left[going] >> np.uint64(7), starts[going] + 1, sizes[going]
    return out.tobytes()


def _decode_column(data: bytes) -> Unsigned:
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)  # noqa: PLR2004 the top bit
    if not len(ends) or ends[-1] != len(raw) - 1:
        raise WireFault("the last varint is cut off")
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    sizes = ends - starts + 1
    longest = int(sizes.max())
    if longest > _BYTES or (longest == _BYTES and bool((raw[ends[sizes == _BYTES]] > 1).any())):
        raise WireFault("a varint is larger than 64 bits")
    values = (raw[starts] & 0x7F).astype(np.uint64)
    for size in range(1, longest):
        longer = np.flatnonzero(sizes > size)
        part = (raw[starts[longer] + size] & 0x7F).astype(np.uint64)
        values[longer] |= part << np.uint64(7 * size)
    return values
