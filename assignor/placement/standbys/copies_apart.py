"""Clients that keep the copies of a task apart: by tag keys (KIP-708), then by racks.

For each key the copies of a task, its active one included, should be on as many different values as
there are copies or values. Balance never reduces that number.

A *cell* is the set of clients that have the same value for every key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.placement.standbys.cell_sets import BestCells, Cells, ManyCells, NextCells
from assignor.placement.state import BoolArray, GroupState, IntArray

# If no key has two values, all clients are in this cell.
ONE_CELL = frozenset({0})
# Copies that `look` plans ahead. With more cells it plans one copy, and cells are not enumerated.
_AHEAD, _MANY_CELLS = 3, 64
# With more remembered answers `look` plans one copy: many copies on many values rarely repeat.
_MOST_AHEAD = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Tag values and racks of the clients; K keys, C clients, M cells.

    Attributes:
        keys: the tag key of each row; None for the racks.
        codes: int [K, C], the value of each client as a number.
        distinct: number of values of each key, over clients that can hold tasks.
        weights: gain of a new value of each key; a tag key outweighs the rack.
        cells: the cell of each client.
        cell_codes: int [K, M], the values of each cell.
        sizes: usable clients of each cell.
        usable: whether each client can hold tasks.
        first_in_cell: up to 8 usable clients of each cell.
        memo: answers of `look`.
        memo_moves: answers of `successors`.
        memo_clients: set of cells -> bool [C], its usable clients.
        many: the cells if there are too many to enumerate them for each task, else None.
    """

    keys: tuple[str | None, ...]
    codes: IntArray
    distinct: tuple[int, ...]
    weights: tuple[int, ...]
    cells: tuple[int, ...]
    cell_codes: IntArray
    sizes: tuple[int, ...]
    usable: tuple[bool, ...]
    first_in_cell: tuple[tuple[int, ...], ...]
    memo: dict[tuple[tuple[int, ...], int], tuple[int, frozenset[int]]]
    memo_moves: dict[tuple[tuple[int, ...], int, int], frozenset[int]]
    memo_clients: dict[frozenset[int], BoolArray]
    many: ManyCells | None

    @classmethod
    def of(cls, state: GroupState) -> "Spread":
        """The values of the group's clients, for all keys that have at least two values."""
        usable = state.capacity() > 0
        named, codes, distinct, weights = [], [], [], []
        for name, values, weight in _values_by_key(state):
            number = {v: i for i, v in enumerate(sorted(set(values), key=lambda v: (v is None, v)))}
            code = np.array([number[value] for value in values], dtype=np.int64)
            count = len(set(code[usable].tolist()))
            if count > 1:
                named.append(name)
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
        sizes = tuple(len(part) for part in members)
        is_large = bool(weights) and len(names) > _MANY_CELLS
        return cls(
            keys=tuple(named),
            codes=table,
            distinct=tuple(distinct),
            weights=tuple(weights),
            cells=tuple(cells),
            cell_codes=np.array(names, dtype=np.int64).reshape(len(names), len(codes)).T,
            sizes=sizes,
            usable=tuple(usable.tolist()),
            first_in_cell=tuple(tuple(part[:8]) for part in members),
            memo={},
            memo_moves={},
            memo_clients={},
            many=ManyCells.of(tuple(names), sizes, tuple(weights)) if is_large else None,
        )

    @property
    def is_needed(self) -> bool:
        """Whether any key has two values or more."""
        return bool(self.distinct)

    def look(self, cells: tuple[int, ...], left: int) -> tuple[int, frozenset[int]]:
        """The most that `left` more copies can gain, and the best cells for the first of them.

        `cells` are those of the copies so far. The gain does not depend on the order of copies, so
        the next call continues what this one began.
        """
        # With one key every new value gains the same, so planning ahead changes nothing.
        is_short = len(self.weights) < 2 or len(self.memo) > _MOST_AHEAD  # noqa: PLR2004 see above
        left = min(left, 1 if is_short or self.many is not None else _AHEAD)
        key = (tuple(sorted(cells)), left)
        if key in self.memo:
            return self.memo[key]
        gain = np.zeros(len(self.sizes), dtype=np.int64)
        for code, weight in zip(self.cell_codes, self.weights, strict=True):
            gain += weight * ~np.isin(code, code[list(cells)])
        able = [cell for cell, size in enumerate(self.sizes) if size > cells.count(cell)]
        useful = [cell for cell in able if gain[cell] > 0]
        total = {cell: int(gain[cell]) for cell in useful or able}
        if left > 1 and useful:
            total = {c: own + self.look((*cells, c), left - 1)[0] for c, own in total.items()}
        most = max(total.values(), default=0)
        answer = most, frozenset(cell for cell, value in total.items() if value == most)
        self.memo[key] = answer
        return answer

    def best_for(self, holders: Sequence[int], left: int = 1) -> Cells:
        """The cells in which one more copy leads to the greatest spread of a task.

        Args:
            holders: clients with a copy of the task, the active one included.
            left: copies that are still to be placed.
        """
        if not self.distinct:
            return ONE_CELL
        cells = [self.cells[c] for c in holders if self.usable[c]]
        if self.many is not None:
            return BestCells.of(self.many, cells)
        return self.look(tuple(cells), left)[1]

    def fits(self, holders: Sequence[int], has_space: BoolArray, left: int = 1) -> BoolArray:
        """Bool [C]: clients that add most to the spread; of those, the ones with free capacity.

        If none of them has free capacity, all of them; without keys, none. Never one of `holders`.

        Args:
            holders: clients that hold the task already, the active one included.
            has_space: bool [C], clients with free capacity.
            left: copies that are still to be placed.
        """
        able = self._clients_in(self.best_for(holders, left)).copy()
        able[list(holders)] = False
        if not self.distinct:
            able &= has_space
            return able
        preferred: BoolArray = able & has_space
        return preferred if preferred.any() else able

    def _clients_in(self, cells: Cells) -> BoolArray:
        """Bool [C]: the usable clients of these cells."""
        if isinstance(cells, BestCells):
            fits = np.array(self.usable, dtype=np.bool_)
            gain = np.zeros(len(fits), dtype=np.int64)
            for code, weight, taken in zip(self.codes, self.weights, cells.taken, strict=True):
                gain += weight * ~np.isin(code, list(taken))
            fits &= gain == cells.most
            return fits
        listed = ONE_CELL if not isinstance(cells, frozenset) else cells
        if listed not in self.memo_clients:
            usable = np.array(self.usable, dtype=np.bool_)
            self.memo_clients[listed] = usable & np.isin(self.cells, list(listed))
        return self.memo_clients[listed]

    def keep(self, candidates: Sequence[int], active: int, wanted: int) -> list[int]:
        """The candidates, in order, that may stay without loss of the greatest possible spread.

        Args:
            candidates: clients with a copy of the task, best first.
            active: the client of its active task.
            wanted: standbys of the task.
        """
        kept: list[int] = []
        holders = [active]
        for left in range(wanted, 0, -1):
            best = self.best_for(holders, left)
            fitting = [c for c in candidates if c not in kept and self.cells[c] in best]
            if fitting:
                kept.append(fitting[0])
                holders.append(fitting[0])
                continue
            # A new copy will be placed in this cell; the next candidates must differ from it.
            first = _first(best)
            newcomers = self.first_in_cell[first] if first >= 0 else ()
            holders += [c for c in newcomers if c not in holders][:1]
        return kept

    def allowed(self, active: IntArray, client: IntArray) -> BoolArray:
        """Bool [N]: whether a single standby on `client` gives a task the greatest spread.

        Args:
            active: int [N], the client of the active task.
            client: int [N], the client of the standby.
        """
        if self.many is not None:
            return self._adds_most(self.many, active, client)
        cells = range(len(self.sizes))
        best = [self.look((cell,), 1)[1] for cell in cells]
        table = np.array([[cell in row for cell in cells] for row in best], dtype=np.bool_)
        number = np.array(self.cells, dtype=np.int64)
        found: BoolArray = table[number[active], number[client]]
        return found

    def _adds_most(self, many: ManyCells, active: IntArray, client: IntArray) -> BoolArray:
        """The result of `allowed`, computed without a table of all pairs of cells."""
        most = [many.most(many.values((cell,)))[0] for cell in range(len(self.sizes))]
        gain = np.zeros(len(client), dtype=np.int64)
        for code, weight in zip(self.codes, self.weights, strict=True):
            gain += weight * (code[active] != code[client])
        cells, usable = np.array(self.cells), np.array(self.usable)
        fits: BoolArray = (gain == np.array(most)[cells[active]]) & usable[client]
        return fits

    def may_replace(self, holders: Sequence[int], old: int, new: int, left: int = 0) -> bool:
        """Whether the copies keep as many different values if one moves from `old` to `new`.

        Args:
            holders: clients that hold the task, the active one and `old` included.
            old: the client that gives its copy up.
            new: the client that takes it.
            left: copies that are still to be placed; their possible gain must not shrink either.
        """
        return self.cells[new] in self.successors(holders, old, left)

    def successors(self, holders: Sequence[int], old: int, left: int = 0) -> Cells:
        """The cells to which the copy on `old` may move; arguments as of `may_replace`."""
        if self.many is not None:
            held = [self.cells[c] for c in holders if c != old]
            return NextCells.of(self.many, held, self.cells[old], left)
        others = tuple(sorted([self.cells[c] for c in holders if c != old]))
        here = self.cells[old]
        key = (others, here, left)
        if key in self.memo_moves:
            return self.memo_moves[key]
        allowed = np.ones(len(self.sizes), dtype=np.bool_)
        for code in self.cell_codes:
            taken = code[list(others)]
            if code[here] not in taken:
                allowed &= ~np.isin(code, taken)
        cells = np.flatnonzero(allowed).tolist()
        if left and self.distinct:
            reach = self._reach((*others, here), left)
            cells = [cell for cell in cells if self._reach((*others, cell), left) >= reach]
        answer = self.memo_moves[key] = frozenset(cells)
        return answer

    def _reach(self, cells: tuple[int, ...], left: int) -> int:
        """The gain of copies in these cells plus the most that `left` more copies can gain."""
        able = [cell for cell in cells if self.sizes[cell]]
        have = 0
        for code, weight in zip(self.cell_codes, self.weights, strict=True):
            have += weight * len(set(code[able].tolist()))
        return have + self.look(tuple(able), left)[0]


def _values_by_key(state: GroupState) -> list[tuple[str | None, list[str | None], int]]:
    """Each key (None: racks), the value of each client, and the gain of a new value."""
    keys = state.config.rack_aware_assignment_tags
    columns: list[tuple[str | None, list[str | None], int]] = [
        (key, [dict(tags).get(key) for tags in state.tags], 2 * (len(keys) + 1)) for key in keys
    ]
    # With tags and rack costs, racks are left out here: otherwise standbys would move back each
    # time after the cost optimisation has moved them to another rack.
    has_costs = state.config.rack_aware_assignment_strategy != "none"
    if not (keys and has_costs and state.changelog_racks is not None):
        columns.append((None, list(state.racks), 1))
    return columns


def _first(cells: Cells) -> int:
    """The first of these cells; -1 if there is none."""
    if isinstance(cells, BestCells):
        return cells.many.first(cells)
    return min(cells, default=-1) if isinstance(cells, frozenset) else -1
