"""Small numbers of a view on the wire: varints, columns of gaps, bit-packed columns.

A varint is unsigned LEB128: seven bits per byte, low ones first. Columns are written and read by
numpy, since a group has up to a hundred thousand tasks. `ViewReader` promises a value or
`DecodeError`, and no column is allocated before the bytes that pay for it were seen.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.errors import DecodeError

__all__ = [
    "VIEW_VERSION",
    "Numbers",
    "Owners",
    "ViewReader",
    "bits_for",
    "pack_bits",
    "write_ascending",
    "write_varint",
]

Numbers = npt.NDArray[np.int64]
Owners = npt.NDArray[np.int32]

VIEW_VERSION = 101
"""The first version whose assignments carry views; named by errors."""

_VARINT_BYTES_MAX = 9  # 63 bits: every number here fits a signed 64-bit integer
_GAP_BYTES_MAX = 5  # a task or host number is below 2**31
_LOW = 0x7F
_MORE = 0x80


def bits_for(values: int) -> int:
    """Bits of one entry of a column with this many different values; never 0.

    A column of 0 bits would be free, and a peer could then ask for one of any length.
    """
    return max(1, (values - 1).bit_length())


def write_varint(out: bytearray, value: int) -> None:
    """Append an unsigned number."""
    while value > _LOW:
        out.append(value & _LOW | _MORE)
        value >>= 7
    out.append(value)


def pack_bits(values: npt.NDArray[Any], bits: int) -> bytes:
    """Entries of `bits` bits each, high bit first, padded with zeros to a whole byte."""
    planes = np.empty((len(values), bits), np.uint8)
    for plane in range(bits):
        planes[:, plane] = (values >> (bits - 1 - plane)) & 1
    return np.packbits(planes).tobytes()


def write_ascending(out: bytearray, numbers: Numbers) -> None:
    """Append strictly ascending numbers as gaps, with the length of them all in bytes in front."""
    gaps = numbers - 1
    gaps[1:] -= numbers[:-1]
    gaps[:1] += 1
    data = _varints(gaps)
    write_varint(out, len(data))
    out += data


def _varints(values: Numbers) -> bytes:
    """The varints of a column, one after another."""
    groups = (values[:, None] >> np.arange(0, 7 * _GAP_BYTES_MAX, 7)) & _LOW
    # A byte is written when it or one after it is not 0; the first one always is.
    written = np.cumsum(groups[:, ::-1], axis=1)[:, ::-1] > 0
    written[:, 0] = True
    goes_on = np.zeros_like(written)
    goes_on[:, :-1] = written[:, 1:]
    return (groups | goes_on * _MORE)[written].astype(np.uint8).tobytes()


class ViewReader:
    """A place in the bytes of a view, moved by reading.

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
        """How many bytes have not been read."""
        return len(self.data) - self.offset

    def error(self, what: str) -> DecodeError:
        """The error for what is wrong at this place."""
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

    def ascending(self, what: str, limit: int) -> Numbers:
        """A column of strictly ascending numbers below `limit`."""
        size = self.varint(f"the length of {what}")
        data = np.frombuffer(self.take(size, what), np.uint8)
        ends = np.flatnonzero(data < _MORE)
        if not size:
            return ends.astype(np.int64)
        if data[-1] >= _MORE:
            raise self.error(f"{what} ends within a number")
        lengths = np.diff(ends, prepend=-1)
        if int(lengths.max()) > _GAP_BYTES_MAX:
            raise self.error(f"{what} has a number of more than {_GAP_BYTES_MAX} bytes")
        starts = ends - lengths + 1
        places = np.arange(size) - np.repeat(starts, lengths)
        gaps = np.add.reduceat((data & _LOW).astype(np.int64) << (7 * places), starts)
        numbers: Numbers = np.cumsum(gaps + 1) - 1
        if int(numbers[-1]) >= limit:
            raise self.error(f"{what} reaches {numbers[-1]}, but there are only {limit}")
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
