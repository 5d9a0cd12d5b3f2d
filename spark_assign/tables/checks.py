"""Checks of a table's rows; each invalid row gets one reject, with column and value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_assign.tables.rejects import Reject


@dataclass(slots=True)
class Checks:
    """The first reject of each invalid row.

    Attributes:
        names: of the groups, by row.
        rejects: row -> reject.
    """

    names: list[str]
    rejects: dict[int, Reject] = field(default_factory=dict)

    def add(
        self, wrong: Any, rows: Any, column: str, value: Callable[[int], object], reason: str
    ) -> None:
        """Reject the rows where `wrong` holds, unless they are rejected already.

        Args:
            wrong: bool, by element.
            rows: int, the row of each element.
            column: where the value stands.
            value: element -> the value; called only for rows that are not rejected yet.
            reason: what is expected.
        """
        for place in np.flatnonzero(wrong).tolist():
            row = int(rows[place])
            if row not in self.rejects:
                self.reject(row, column, value(place), reason)

    def reject(self, row: int, column: str, value: object, reason: str) -> None:
        """Reject a row, unless it is rejected already."""
        if row not in self.rejects:
            text = "null" if value is None else str(value)
            self.rejects[row] = Reject(
                name=self.names[row], column=column, value=text, reason=reason
            )


def flat(lists: pa.ListArray) -> tuple[Any, Any]:
    """Values of a list column, and the start of each row's values; a null list counts as empty."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return lists.flatten(), np.concatenate([[0], np.cumsum(lengths)])


def numbers(column: pa.Array, missing: float) -> Any:
    """A column as numpy, `missing` where it is null."""
    return pc.fill_null(column, missing).to_numpy(zero_copy_only=False)


def nulls(column: pa.Array) -> Any:
    """Bool: where a column is null."""
    return column.is_null().to_numpy(zero_copy_only=False)


def ranks_of(*columns: pa.Array) -> tuple[list[Any], list[str]]:
    """Each string as its rank among all sorted strings, -1 for null; and these strings."""
    encoded = pa.concat_arrays([column.cast(pa.string()) for column in columns]).dictionary_encode()
    names = encoded.dictionary
    order = pc.array_sort_indices(names).to_numpy()
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order] = np.arange(len(names))
    rank[-1] = -1
    codes = rank[numbers(encoded.indices, -1)]
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return np.split(codes, ends), names.take(order).to_pylist()


def repeats(*columns: Any) -> Any:
    """Bool, by row of sorted columns: whether the next row is equal."""
    same = np.zeros(len(columns[0]), dtype=np.bool_)
    if len(same):
        same[:-1] = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return same


def racks_of(column: Any, part: slice) -> tuple[tuple[frozenset[str] | None, ...], ...] | None:
    """Racks of the replicas of each task; None when no partition has any."""
    column = column.slice(part.start, part.stop - part.start)
    if column.null_count == len(column):
        return None
    racks = tuple(
        tuple(frozenset(map(str, racks)) if racks else None for racks in partitions or ())
        for partitions in column.to_pylist()
    )
    return racks if any(names for partitions in racks for names in partitions) else None
