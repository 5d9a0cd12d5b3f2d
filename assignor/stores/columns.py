"""Columns of numbers in files: format 1 has eight bytes per number, format 2 as few as it needs."""

from typing import Any, Final

import numpy as np

from assignor.placement import IntArray

_WIDTHS: Final = (1, 2, 4, 8)


def column_bytes(column: Any, file_format: int) -> bytes:
    """Return the bytes of a column; in format 2 the first byte is the width of a number."""
    numbers = np.asarray(column).astype("<i8")
    if file_format == 1:
        return bytes(numbers.tobytes())
    most = max(int(numbers.max()), -1 - int(numbers.min())) if len(numbers) else 0
    width = next(width for width in _WIDTHS if most < 1 << (8 * width - 1))
    return bytes([width]) + numbers.astype(f"<i{width}").tobytes()


def read_column(data: bytes, file_format: int) -> IntArray:
    """Return the numbers of a column.

    Raises:
        ValueError: the width of a number, or the length, is invalid.
    """
    if file_format == 1:
        return np.frombuffer(data, dtype="<i8").astype(np.int64)
    if data[0] not in _WIDTHS:
        raise ValueError(f"a number width of {data[0]} bytes")
    return np.frombuffer(data, dtype=f"<i{data[0]}", offset=1).astype(np.int64)
