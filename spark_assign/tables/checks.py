"""What is wrong with a table's rows: the first thing of each, with column and value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from encoding import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Why a group cannot be placed.

    Attributes:
        name: of the group, or "".
        column: where the value stands, as `tasks.owner`.
        value: as text; "null" for a missing one.
        reason: a sentence that says what is expected.
        place: file and row, or file and line; None where that is not known.
    """

    name: str
    column: str
    value: str
    reason: str
    place: str | None = None

    def __str__(self) -> str:
        """One sentence for stderr."""
        where = f"column {self.column} is {shown(self.value)}: " if self.column else ""
        place = f" ({shown(self.place)})" if self.place else ""
        return f"group {shown(self.name) or 'without a name'}{place}: {where}{self.reason}"


@dataclass(slots=True)
class Checks:
    """The first thing that is wrong with each row."""

    names: list[str]
    rejects: dict[int, Reject] = field(default_factory=dict)

    def add(
        self, wrong: Any, rows: Any, column: str, value: Callable[[int], object], reason: str
    ) -> None:
        """Reject the rows of the places where `wrong` holds, unless they are already.

        Only then is `value` asked: of a row that is rejected there may be no such value.
        """
        for place in np.flatnonzero(wrong).tolist():
            row = int(rows[place])
            if row not in self.rejects:
                self.one(row, column, value(place), reason)

    def one(self, row: int, column: str, value: object, reason: str) -> None:
        """Reject one row, unless it is already."""
        if row not in self.rejects:
            said = "null" if value is None else str(value)
            self.rejects[row] = Reject(
                name=self.names[row], column=column, value=said, reason=reason
            )


def flat(lists: pa.ListArray) -> tuple[Any, Any]:
    """Values of a list column, and where each row starts; a null list is an empty one."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return lists.flatten(), np.concatenate([[0], np.cumsum(lengths)])


def numbers(column: pa.Array, missing: float) -> Any:
    """A column as numpy, `missing` where it is null."""
    return pc.fill_null(column, missing).to_numpy(zero_copy_only=False)


def nulls(column: pa.Array) -> Any:
    """Bool: where a column is null."""
    return column.is_null().to_numpy(zero_copy_only=False)


def ranks_of(*columns: pa.Array) -> tuple[list[Any], list[str]]:
    """Each string as its place among all of them, sorted; -1 for null."""
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
    """Bool: where the next row of sorted columns is the same."""
    same = np.zeros(len(columns[0]), dtype=np.bool_)
    if len(same):
        same[:-1] = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return same


def racks_of(column: Any, part: slice) -> tuple[tuple[frozenset[str] | None, ...], ...] | None:
    """Racks of the replicas, task by task; None when no partition has any."""
    column = column.slice(part.start, part.stop - part.start)
    if column.null_count == len(column):
        return None
    racks = tuple(
        tuple(frozenset(map(str, one)) if one else None for one in partitions or ())
        for partitions in column.to_pylist()
    )
    return racks if any(one for partitions in racks for one in partitions) else None
