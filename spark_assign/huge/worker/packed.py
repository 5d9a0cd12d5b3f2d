"""Pack rows into few bytes; the first pass stores them, so that later passes skip the table.

Reading the table and hashing its texts costs more than all decisions. Most columns of a batch are
constant or small, so a packed task takes about a dozen bytes instead of a hundred.
"""

from dataclasses import fields

import msgpack
import numpy as np
import numpy.typing as npt

from spark_assign.huge.worker.rows import Rows

_WIDTHS = ("i1", "i2", "i4", "i8")
_TABLES = frozenset({"copy_client", "copy_lag", "copy_stalled"})
_BOOLS = frozenset({"stateful", "copy_stalled", "is_wrong"})
_Column = npt.NDArray[np.generic]


def packed_rows(rows: Rows) -> bytes:
    """The rows of a batch as bytes; the batch has at least one row."""
    size = len(rows.owner)
    columns = []
    for field in fields(Rows):
        table = getattr(rows, field.name).reshape(size, -1)
        columns.append([_narrowed(table[:, i]) for i in range(table.shape[1])])
    data: bytes = msgpack.packb([size, columns])
    return data


def unpacked_rows(data: bytes | memoryview) -> Rows:
    """The rows of `packed_rows`."""
    size, columns = msgpack.unpackb(data)
    found = {}
    for field, parts in zip(fields(Rows), columns, strict=True):
        kind = np.bool_ if field.name in _BOOLS else np.int64
        table = np.empty((size, len(parts)), dtype=kind, order="F")
        for i, (width, part) in enumerate(parts):
            table[:, i] = np.frombuffer(part, dtype=width)
        found[field.name] = table if field.name in _TABLES else table[:, 0]
    return Rows(**found)


def _narrowed(column: _Column) -> tuple[str, bytes]:
    """The column in the narrowest integer type; a single integer if all are equal."""
    low, high = int(column.min()), int(column.max())
    if low == high:
        column = column[:1]
    width = next(w for w in _WIDTHS if np.iinfo(w).min <= low and high <= np.iinfo(w).max)
    return width, column.astype(width).tobytes()
