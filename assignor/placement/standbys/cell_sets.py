"""Sets of cells, said by the values that their cells must not have, where cells are many.

With a value for each client there are as many cells as clients, and nearly all of them suit a copy:
to list them for each copy is clients x copies. Here a set tells whether a cell is in it, and which
listed set is around it: all cells without the *common* values that it rules out. There are few such
lists, and a look through one of them meets few cells that are not in the set.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

# A value is common that one of so many cells or clients has.
_COMMON = 16

Values = tuple[frozenset[int], ...]


class Cells(Protocol):
    """Some cells, by number; a frozenset is one, too."""

    def __contains__(self, cell: object, /) -> bool:
        """Whether the cell is one of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManyCells:
    """Cells of a group, and what is known of their values.

    Attributes:
        rows: the values of each cell, one a key.
        sizes: clients of each cell that can hold tasks.
        weights: worth of a new value of each key.
        levels: worth -> choices of keys that are worth as much together; the greatest first.
        counts: for each key, value -> cells that have it, with clients that can hold tasks.
        common: for each key its common values.
        usable: cells with clients that can hold tasks.
        lists: ruled out (key, value) pairs -> the other usable cells.
        ordered: the same in ascending order.
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
        """Count the values of cells; O(cells x keys + 2 ** keys)."""
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
        """The values of some cells, key by key."""
        rows = [self.rows[cell] for cell in cells]
        return tuple(map(frozenset, zip(*rows, strict=True))) or (frozenset(),) * len(self.weights)

    def worth(self, values: Values) -> int:
        """The worth of so many different values."""
        return sum(w * len(some) for w, some in zip(self.weights, values, strict=True))

    def gain(self, cell: int, taken: Values) -> int:
        """What a copy in the cell adds to copies that have the values `taken`."""
        row = self.rows[cell]
        return sum(
            weight
            for weight, value, some in zip(self.weights, row, taken, strict=True)
            if value not in some
        )

    def most(self, taken: Values) -> tuple[int, tuple[int, ...]]:
        """The most that one more copy can add, and the keys that are new wherever it does."""
        for worth, choices in self.levels:
            able = [keys for keys in choices if self._is_open(keys, taken)]
            if able:
                common = frozenset(able[0]).intersection(*able[1:])
                return worth, tuple(sorted(common))
        return 0, ()

    def _is_open(self, keys: tuple[int, ...], taken: Values) -> bool:
        """Whether a cell has a new value of each of these keys."""
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
        """The usable cells without the common ones of the values `taken` of these keys."""
        out = frozenset((key, value) for key in keys for value in taken[key] & self.common[key])
        if out not in self.lists:
            self.lists[out] = frozenset(
                cell for cell in self.usable if out.isdisjoint(enumerate(self.rows[cell]))
            )
        return self.lists[out]

    def first(self, cells: "BestCells") -> int:
        """The first of these cells, or -1 for none."""
        if cells.around not in self.ordered:
            self.ordered[cells.around] = tuple(sorted(cells.around))
        return next((cell for cell in self.ordered[cells.around] if cell in cells), -1)


@dataclass(frozen=True, slots=True, eq=False)
class BestCells:
    """Cells in which one more copy of a task adds most."""

    many: ManyCells
    taken: Values
    most: int
    full: frozenset[int]
    around: frozenset[int]

    @classmethod
    def of(cls, many: ManyCells, cells: list[int]) -> "BestCells":
        """For a task with copies in `cells`, one entry a copy."""
        taken = many.values(cells)
        most, keys = many.most(taken)
        full = frozenset(c for c in set(cells) if cells.count(c) >= many.sizes[c])
        return cls(many, taken, most, full, many.around(keys, taken))

    def __contains__(self, cell: object) -> bool:
        """Whether a copy there adds most, and there is a client for it."""
        return (
            isinstance(cell, int)
            and cell not in self.full
            and self.many.sizes[cell] > 0
            and self.many.gain(cell, self.taken) == self.most
        )


@dataclass(frozen=True, slots=True, eq=False)
class NextCells:
    """Cells to which a copy may move on with no value lost, now or for copies still to come."""

    many: ManyCells
    others: Values
    usable: Values
    keys: tuple[int, ...]
    reach: int
    around: frozenset[int]

    @classmethod
    def of(cls, many: ManyCells, others: list[int], here: int, left: int) -> "NextCells":
        """For a copy in the cell `here` of a task whose other copies are in `others`."""
        taken = many.values(others)
        row = many.rows[here]
        keys = tuple(key for key, value in enumerate(row) if value not in taken[key])
        usable = many.values(cell for cell in others if many.sizes[cell])
        reach = _reach(many, usable, here) if left else 0
        return cls(many, taken, usable, keys, reach, many.around(keys, taken))

    def __contains__(self, cell: object) -> bool:
        """Whether the copy may be there."""
        if not isinstance(cell, int):
            return False
        row = self.many.rows[cell]
        if any(row[key] in self.others[key] for key in self.keys):
            return False
        return not self.reach or _reach(self.many, self.usable, cell) >= self.reach


def _reach(many: ManyCells, others: Values, cell: int) -> int:
    """The worth of all values with a copy in the cell, and of the best one that comes after it."""
    row = many.rows[cell] if many.sizes[cell] else None
    have = (
        others
        if row is None
        else tuple(some | {value} for some, value in zip(others, row, strict=True))
    )
    return many.worth(have) + many.most(have)[0]


def around(cells: Cells) -> Cells:
    """A set of cells that is the same for many tasks, with all of these cells in it."""
    return cells.around if isinstance(cells, BestCells | NextCells) else cells
