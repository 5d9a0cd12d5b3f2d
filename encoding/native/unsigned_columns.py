"""Columns of unsigned integers: varints, or fixed width, as wide as the largest one needs.

The smaller form is used. Long columns have a fixed width even if it is up to a quarter larger,
because they are read faster.
"""

import numpy as np
import numpy.typing as npt

from encoding.primitives import FEW, WireFault, decode_varints, encode_varints

Unsigned = npt.NDArray[np.uint64]
WIDEST = 8
"""Bytes of the widest word; a larger first byte is another coding."""

_MANY = 16  # columns from this length on may be a quarter larger, to be read faster
_DTYPES = {1: ">u1", 2: ">u2", 4: ">u4", 8: ">u8"}


def encode_words(values: list[int] | Unsigned) -> bytes:
    """Bytes of numbers from 0 to 2**64 - 1: 0 then varints, or a width then big-endian words."""
    count = len(values)
    if count == 0:
        return b""
    top = max(values) if isinstance(values, list) else int(values.max())
    width = (top.bit_length() + 7) // 8 or 1
    as_varints = _size_as_varints(values, top)
    if width * count < as_varints or (count >= _MANY and 4 * width * count <= 5 * as_varints):
        return bytes((width,)) + _fixed(values, width)
    return b"\0" + encode_varints(values)


def decode_words(data: bytes) -> list[int] | Unsigned:
    """The reverse of ``encode_words``: a list if they are few, else a uint64 column."""
    if not data:
        return []
    width = data[0]
    if width == 0:
        return decode_varints(data[1:])
    if width > WIDEST:
        raise WireFault(f"numbers in coding {width}; 0 to {WIDEST} are known")
    count, odd = divmod(len(data) - 1, width)
    if odd:
        raise WireFault(f"{len(data) - 1} bytes are no numbers of {width} bytes each")
    if count == 0:
        return []
    column: npt.NDArray[np.unsignedinteger]
    if width in _DTYPES:
        column = np.frombuffer(data, _DTYPES[width], offset=1)
    else:
        padded = np.zeros((count, 8), np.uint8)
        padded[:, 8 - width :] = np.frombuffer(data, np.uint8, offset=1).reshape(count, width)
        column = padded.view(">u8")[:, 0]
    return column.tolist() if count <= FEW else column.astype(np.uint64)


def _size_as_varints(values: list[int] | Unsigned, top: int) -> int:
    if isinstance(values, list):
        return sum([(value.bit_length() + 6) // 7 or 1 for value in values])
    size = len(values)
    for bits in range(7, top.bit_length(), 7):
        size += int(np.count_nonzero(values >> np.uint64(bits)))
    return size


def _fixed(values: list[int] | Unsigned, width: int) -> bytes:
    if isinstance(values, list):
        return b"".join([value.to_bytes(width) for value in values])
    if width in _DTYPES:
        return values.astype(_DTYPES[width]).tobytes()
    return values.astype(">u8").view(np.uint8).reshape(len(values), 8)[:, 8 - width :].tobytes()
