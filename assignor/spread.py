"""Which clients keep the copies of a task apart: tag keys (KIP-708), and racks after them.

A key asks that the copies of a task, its active one included, sit on as many different values as
there are copies or values. What is on the way to that is never given up for balance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.state import BoolArray, GroupState, IntArray


_ONE_CELL = frozenset({0})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Values of the clients, one row a key.

    Attributes:
        codes: int [K, C], the value of each client as a number.
        distinct: number of values of each key, over clients that can hold tasks.
        weights: worth of a new value; tag keys outweigh the rack.
        cells: the cell of each client; clients of a cell have all values in common.
        cell_codes: int [K, M], the values of each cell.
        sizes: usable clients of each cell.
        usable: whether each client can hold tasks.
        first_in_cell: some usable clients of each cell, for looking ahead.
        memo: answers of `best_cells`.
        warnings: what cannot be had.
    """

    codes: IntArray
    distinct: tuple[int, ...]
    weights: tuple[int, ...]
    cells: tuple[int, ...]
    cell_codes: IntArray
    sizes: tuple[int, ...]
    usable: tuple[bool, ...]
    first_in_cell: tuple[tuple[int, ...], ...]
    memo: dict[tuple[tuple[int, ...], tuple[bool, ...] | None], frozenset[int]]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: GroupState) -> "Spread":
        """Keys of the group that have at least two values."""
        usable = state.capacity() > 0
        columns: list[tuple[list[str | None], int]] = []
        keys = state.config.rack_aware_assignment_tags
        warnings = []
        for key in keys:
            values = [dict(tags).get(key) for tags in state.tags]
            columns.append((values, 2 * (len(keys) + 1)))
            if not any(values):
                warnings.append(f"no client has the tag {key!r} that standbys are to spread over")
        columns.append((list(state.racks), 1))
        codes, distinct, weights = [], [], []
        for values, weight in columns:
            number = {v: i for i, v in enumerate(sorted(set(values), key=lambda v: (v is None, v)))}
            code = np.array([number[value] for value in values], dtype=np.int64)
            count = len(set(code[usable].tolist()))
            if count > 1:
                codes.append(code)
                distinct.append(count)
                weights.append(weight)
        table = np.array(codes, dtype=np.int64).reshape(len(codes), len(state.clients))
        values_of = list(zip(*table.tolist(), strict=True)) or [()] * len(state.clients)
        names = sorted(set(values_of))
        number_of = {name: number for number, name in enumerate(names)}
        cells = [number_of[name] for name in values_of]
        members: list[list[int]] = [[] for _ in names]
        for client, cell in enumerate(cells):
            if usable[client]:
                members[cell].append(client)
        return cls(
            codes=table,
            distinct=tuple(distinct),
            weights=tuple(weights),
            cells=tuple(cells),
            cell_codes=np.array(names, dtype=np.int64).reshape(len(names), len(codes)).T,
            sizes=tuple(len(part) for part in members),
            usable=tuple(usable.tolist()),
            first_in_cell=tuple(tuple(part[:8]) for part in members),
            memo={},
            warnings=tuple(warnings),
        )

    @property
    def is_needed(self) -> bool:
        """Whether any key tells clients apart."""
        return bool(self.distinct)

    def best_cells(
        self, cells: tuple[int, ...], able: tuple[bool, ...] | None = None
    ) -> frozenset[int]:
        """The cells that add most to the spread of copies in `cells`; a cell is a set of values.

        Args:
            cells: cells of the clients that hold the task, the active one included.
            able: whether each cell has a client to offer; all have when it is missing.
        """
        key = (tuple(sorted(cells)), able)
        found = self.memo.get(key)
        if found is None:
            gain = np.zeros(len(self.sizes), dtype=np.int64)
            for code, weight in zip(self.cell_codes, self.weights, strict=True):
                gain += weight * ~np.isin(code, code[list(cells)])
            if able is not None:
                gain[~np.array(able)] = -1
            found = frozenset(np.flatnonzero(gain == gain.max()).tolist())
            self.memo[key] = found
        return found

    def _able(self, holders: Sequence[int]) -> tuple[bool, ...] | None:
        """Which cells have a client that holds nothing; None when all have."""
        if len(holders) < min(self.sizes):
            return None
        left = list(self.sizes)
        for client in holders:
            left[self.cells[client]] -= self.usable[client]
        return None if min(left) > 0 else tuple(size > 0 for size in left)

    def best_for(self, holders: Sequence[int]) -> frozenset[int]:
        """The cells that add most to the spread of a task which `holders` have."""
        if not self.distinct:
            return _ONE_CELL
        return self.best_cells(tuple(self.cells[c] for c in holders), self._able(holders))

    def fits(self, holders: Sequence[int], has_room: BoolArray) -> BoolArray:
        """Bool [C]: clients that add most to the spread, and of those the ones with room if any.

        Args:
            holders: clients that hold the task already, the active one included.
            has_room: bool [C]; all of `holders` are left out.
        """
        able: BoolArray = np.array(self.usable, dtype=np.bool_)
        able[list(holders)] = False
        if not self.distinct:
            able &= has_room
            return able
        able &= np.isin(self.cells, list(self.best_for(holders)))
        roomy: BoolArray = able & has_room
        return roomy if roomy.any() else able

    def keep(self, candidates: Sequence[int], active: int, wanted: int) -> list[int]:
        """Those of the candidates, in order, that leave the greatest spread within reach."""
        kept: list[int] = []
        holders = [active]
        for _ in range(wanted):
            best = self.best_for(holders)
            fitting = [c for c in candidates if c not in kept and self.cells[c] in best]
            if fitting:
                kept.append(fitting[0])
                holders.append(fitting[0])
                continue
            # A new copy will go there: what else stays is judged beside it.
            newcomers = self.first_in_cell[min(best)]
            holders += [c for c in newcomers if c not in holders][:1]
        return kept

    def may_replace(self, holders: Sequence[int], old: int, new: int) -> bool:
        """Whether the copy on `old` may move to `new` without fewer different values."""
        for code in self.codes:
            others = {int(code[c]) for c in holders if c != old}
            if int(code[old]) not in others and int(code[new]) in others:
                return False
        return True
