"""Numbers of a view on the wire: varints, columns of gaps, bit-packed columns.

numpy writes and reads the columns, because a group has up to 100,000 tasks. `ViewReader` returns a
value or raises `DecodeError`; it checks a column's bytes before it allocates the column.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.native import EARLIEST_NATIVE_VERSION
from encoding.primitives import DecodeError, WireFault, block, decode_varints, encode_varints

Int64Column = npt.NDArray[np.int64]
Owners = npt.NDArray[np.int32]

VIEW_VERSION = EARLIEST_NATIVE_VERSION
"""The first version whose assignments carry views; errors name it."""

_VARINT_BYTES_MAX = 9  # 63 bits: every number here fits a signed 64-bit integer
_LOW = 0x7F
_MORE = 0x80


def bits_for(values: int) -> int:
    """Bits of one entry of a column with this many different values; at least 1.

    With 0 bits, a peer could demand a column of any length without sending bytes for it.
    """
    return max(1, (values - 1).bit_length())


def pack_bits(values: npt.NDArray[Any], bits: int) -> bytes:
    """Entries of `bits` bits each, high bit first, padded with zeros to a whole byte."""
    planes = np.empty((len(values), bits), np.uint8)
    for plane in range(bits):
        planes[:, plane] = (values >> (bits - 1 - plane)) & 1
    return np.packbits(planes).tobytes()


def write_ascending(out: bytearray, numbers: Int64Column) -> None:
    """Append strictly ascending numbers as a block of gaps."""
    gaps = numbers - 1
    gaps[1:] -= numbers[:-1]
    gaps[:1] += 1
    out += block(encode_varints(gaps.astype(np.uint64)))


class ViewReader:
    """A cursor over the bytes of a view.

    Attributes:
        data: all bytes.
        offset: where the next read starts.
    """

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        self.offset = 0

    @property
    def left(self) -> int:
        """Number of bytes that have not been read."""
        return len(self.data) - self.offset

    def error(self, what: str) -> DecodeError:
        """A `DecodeError` at the current offset."""
        return DecodeError(what, offset=self.offset, version=VIEW_VERSION, available=len(self.data))

    def take(self, size: int, what: str) -> bytes:
        """The next `size` bytes."""
        if size > self.left:
            raise self.error(f"{what} needs {size} bytes, {self.left} are left")
        start = self.offset
        self.offset = start + size
        return self.data[start : self.offset]

    def varint(self, what: str, limit: int = 2**63 - 1) -> int:
        """The next number, at most `limit`."""
        value = shift = 0
        start = self.offset
        for byte in self.data[start : start + _VARINT_BYTES_MAX]:
            self.offset += 1
            value |= (byte & _LOW) << shift
            if byte < _MORE:
                if value > limit:
                    raise self.error(f"{what} is {value}, but at most {limit} is possible")
                return value
            shift += 7
        raise self.error(f"{what} is a number without an end")

    def ascending(self, what: str, limit: int) -> Int64Column:
        """A column of strictly ascending numbers below `limit`."""
        size = self.varint(f"the length of {what}")
        try:
            gaps = np.asarray(decode_varints(self.take(size, what)), np.uint64)
        except WireFault as fault:
            raise self.error(f"{what}: {fault}") from None
        if not len(gaps):
            return np.empty(0, np.int64)
        top = int(gaps.max())  # checked first: then the sums cannot overflow
        if top < limit:
            numbers: Int64Column = np.cumsum(gaps.astype(np.int64) + 1) - 1
            top = int(numbers[-1])
        if top >= limit:
            raise self.error(f"{what} reaches {top}, but there are only {limit}")
        return numbers

    def packed(self, count: int, values: int, what: str) -> Owners:
        """A bit-packed column of `count` entries, each below `values`."""
        bits = bits_for(values)
        data = np.frombuffer(self.take((count * bits + 7) // 8, what), np.uint8)
        planes = np.unpackbits(data)
        if planes[count * bits :].any():
            raise self.error(f"{what} has bits behind its last entry")
        column: Owners = np.zeros(count, np.int32)
        for plane in range(bits):
            column <<= 1
            column |= planes[plane : count * bits : bits]
        if count and int(column.max()) >= values:
            raise self.error(f"{what} holds {column.max()}, but only {values} values exist")
        return column

    def end(self) -> None:
        """Check that nothing is left."""
        if self.left:
            raise self.error(f"{self.left} bytes are left behind the view")
