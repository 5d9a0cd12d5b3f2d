"""Sets of cells described by the values that they exclude, for groups with many cells.

If each client has a value of its own, there are as many cells as clients, and nearly all of them
suit a copy: a list for each copy would cost clients x copies. A set here answers whether a cell is
in it, and names an enumerated superset (`around`): all cells without the *common* values that the
set excludes. There are few such supersets, and few of their cells are not in the set.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

# A value is common if at least one in this many cells or clients has it.
_COMMON = 16

Values = tuple[frozenset[int], ...]


class Cells(Protocol):
    """A set of cell numbers; a frozenset is a valid one."""

    def __contains__(self, cell: object, /) -> bool:
        """Whether the cell is in the set."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManyCells:
    """Cells of a group, and statistics of their values.

    Attributes:
        rows: the values of each cell, one per key.
        sizes: clients of each cell that can hold tasks.
        weights: gain of a new value of each key.
        levels: (gain, sets of keys whose new values gain that much together), greatest gain first.
        counts: for each key, value -> number of usable cells that have it.
        common: for each key its common values.
        usable: cells with clients that can hold tasks.
        lists: excluded (key, value) pairs -> the other usable cells.
        ordered: an entry of `lists` -> its cells in ascending order.
    """

    rows: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    weights: tuple[int, ...]
    levels: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]
    counts: tuple[dict[int, int], ...]
    common: Values
    usable: tuple[int, ...]
    lists: dict[frozenset[tuple[int, int]], frozenset[int]]
    ordered: dict[frozenset[int], tuple[int, ...]]

    @classmethod
    def of(
        cls, rows: tuple[tuple[int, ...], ...], sizes: tuple[int, ...], weights: tuple[int, ...]
    ) -> "ManyCells":
        """The cells with their values counted; O(cells x keys + 2 ** keys)."""
        keys = range(len(weights))
        by_worth: dict[int, list[tuple[int, ...]]] = {}
        for size in range(1, len(weights) + 1):
            for some in combinations(keys, size):
                by_worth.setdefault(sum(weights[key] for key in some), []).append(some)
        usable = tuple(cell for cell, size in enumerate(sizes) if size)
        counts: tuple[dict[int, int], ...] = tuple({} for _ in keys)
        clients: tuple[dict[int, int], ...] = tuple({} for _ in keys)
        for cell in usable:
            for key, value in enumerate(rows[cell]):
                counts[key][value] = counts[key].get(value, 0) + 1
                clients[key][value] = clients[key].get(value, 0) + sizes[cell]
        many, most = len(usable) / _COMMON, sum(sizes) / _COMMON
        common = (
            frozenset(v for v, n in counts[key].items() if n >= many or clients[key][v] >= most)
            for key in keys
        )
        return cls(
            rows=rows,
            sizes=sizes,
            weights=weights,
            levels=tuple((worth, tuple(by_worth[worth])) for worth in sorted(by_worth)[::-1]),
            counts=counts,
            common=tuple(common),
            usable=usable,
            lists={},
            ordered={},
        )

    def values(self, cells: Iterable[int]) -> Values:
        """For each key the set of values that the cells have."""
        rows = [self.rows[cell] for cell in cells]
        return tuple(map(frozenset, zip(*rows, strict=True))) or (frozenset(),) * len(self.weights)

    def worth(self, values: Values) -> int:
        """The gain of all of these values together."""
        return sum(w * len(some) for w, some in zip(self.weights, values, strict=True))

    def gain(self, cell: int, taken: Values) -> int:
        """The gain of a copy in the cell, next to copies with the values `taken`."""
        row = self.rows[cell]
        return sum(
            weight
            for weight, value, some in zip(self.weights, row, taken, strict=True)
            if value not in some
        )

    def most(self, taken: Values) -> tuple[int, tuple[int, ...]]:
        """The greatest gain of one more copy, and the keys that are new in every such cell."""
        for worth, choices in self.levels:
            able = [keys for keys in choices if self._is_open(keys, taken)]
            if able:
                common = frozenset(able[0]).intersection(*able[1:])
                return worth, tuple(sorted(common))
        return 0, ()

    def _is_open(self, keys: tuple[int, ...], taken: Values) -> bool:
        """Whether any cell has a value that is not taken for each of these keys."""
        if any(len(taken[key]) >= len(self.counts[key]) for key in keys):
            return False
        lost = sum(self.counts[key].get(value, 0) for key in keys for value in taken[key])
        if len(keys) == 1 or lost < len(self.usable):
            return True
        around = self.around(keys, taken)
        rare = (self.counts[k].get(v, 0) for k in keys for v in taken[k] - self.common[k])
        if sum(rare) < len(around):
            return True
        return any(all(self.rows[cell][k] not in taken[k] for k in keys) for cell in around)

    def around(self, keys: Iterable[int], taken: Values) -> frozenset[int]:
        """The usable cells that have none of the taken common values of these keys."""
        out = frozenset((key, value) for key in keys for value in taken[key] & self.common[key])
        if out not in self.lists:
            self.lists[out] = frozenset(
                cell for cell in self.usable if out.isdisjoint(enumerate(self.rows[cell]))
            )
        return self.lists[out]

    def first(self, cells: "BestCells") -> int:
        """The first of these cells; -1 if there is none."""
        if cells.around not in self.ordered:
            self.ordered[cells.around] = tuple(sorted(cells.around))
        return next((cell for cell in self.ordered[cells.around] if cell in cells), -1)


@dataclass(frozen=True, slots=True, eq=False)
class BestCells:
    """The cells in which one more copy of a task gains most."""

    many: ManyCells
    taken: Values
    most: int
    full: frozenset[int]
    around: frozenset[int]

    @classmethod
    def of(cls, many: ManyCells, cells: list[int]) -> "BestCells":
        """The best cells for a task with copies in `cells`, one entry per copy."""
        taken = many.values(cells)
        most, keys = many.most(taken)
        full = frozenset(c for c in set(cells) if cells.count(c) >= many.sizes[c])
        return cls(many, taken, most, full, many.around(keys, taken))

    def __contains__(self, cell: object) -> bool:
        """Whether a copy in the cell gains most, and the cell has a client for it."""
        return (
            isinstance(cell, int)
            and cell not in self.full
            and self.many.sizes[cell] > 0
            and self.many.gain(cell, self.taken) == self.most
        )


@dataclass(frozen=True, slots=True, eq=False)
class NextCells:
    """The cells to which a copy may move without loss of a value, now or for copies to come."""

    many: ManyCells
    others: Values
    usable: Values
    keys: tuple[int, ...]
    reach: int
    around: frozenset[int]

    @classmethod
    def of(cls, many: ManyCells, others: list[int], here: int, left: int) -> "NextCells":
        """The next cells for a copy in the cell `here`.

        Args:
            many: the cells of the group.
            others: the cells of the other copies of the task.
            here: the cell of the copy.
            left: copies of the task that are still to be placed.
        """
        taken = many.values(others)
        row = many.rows[here]
        keys = tuple(key for key, value in enumerate(row) if value not in taken[key])
        usable = many.values(cell for cell in others if many.sizes[cell])
        reach = _reach(many, usable, here) if left else 0
        return cls(many, taken, usable, keys, reach, many.around(keys, taken))

    def __contains__(self, cell: object) -> bool:
        """Whether the copy may move to the cell."""
        if not isinstance(cell, int):
            return False
        row = self.many.rows[cell]
        if any(row[key] in self.others[key] for key in self.keys):
            return False
        return not self.reach or _reach(self.many, self.usable, cell) >= self.reach


def _reach(many: ManyCells, others: Values, cell: int) -> int:
    """The gain of all values with a copy in the cell, plus that of the best copy after it."""
    row = many.rows[cell] if many.sizes[cell] else None
    have = (
        others
        if row is None
        else tuple(some | {value} for some, value in zip(others, row, strict=True))
    )
    return many.worth(have) + many.most(have)[0]


def around(cells: Cells) -> Cells:
    """A superset of these cells that many tasks share."""
    return cells.around if isinstance(cells, BestCells | NextCells) else cells
