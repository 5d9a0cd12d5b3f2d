"""Standbys apart by client tags (KIP-708): on as many values of every key as there can be.

Clients with the same values of all configured keys form a *cell*; which client of a cell holds a
copy makes no difference to the spread. What is best from where a task stands is looked up by cells
and looked ahead: with two keys the client that differs in both now may leave nothing that differs
later. Kafka goes step by step and, when no client differs in every key, gives up on all of them.

`TagCells.choose` is for filling in standbys one task at a time, `repair` for a finished placement,
`shortfalls` says which task lacks what.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from assignor.state import GroupState, IntArray

# Up to so many ways to go on all are weighed to the end, beyond it only the next step.
_WAYS = 4_000
_NAMED = 3
_PASSES = 4
Pairs = tuple[tuple[int, int], ...]
Cells = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCells:
    """Clients by their tag values. A client without a key has the value None of it.

    Attributes:
        keys: rack.aware.assignment.tags, those that tell clients apart.
        cell_of: C cells, one a client.
        values: the values of each cell as numbers, one a key.
        clients: the clients of each cell that can hold tasks.
        distinct: number of values of each key, over clients that can hold tasks.
    """

    keys: tuple[str, ...]
    cell_of: Cells
    values: tuple[tuple[int, ...], ...]
    clients: tuple[tuple[int, ...], ...]
    distinct: tuple[int, ...]
    _known: dict[tuple[Cells, int], tuple[int, Cells]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, state: GroupState) -> "TagCells":
        """The cells of a group; one cell without configured tags."""
        able = (state.capacity() > 0).tolist()
        own = [dict(tags) for tags in state.tags]
        keys, columns, distinct = [], [], []
        for key in state.config.rack_aware_assignment_tags:
            values = [tags.get(key) for tags in own]
            order = sorted({v for v in values if v is not None})
            number = {value: place for place, value in enumerate(order)}
            column = [len(order) if value is None else number[value] for value in values]
            count = len({value for value, is_able in zip(column, able, strict=True) if is_able})
            if count > 1:
                keys.append(key)
                columns.append(column)
                distinct.append(count)
        rows = list(zip(*columns, strict=True)) if columns else [()] * len(own)
        cells = sorted(set(rows))
        number_of = {row: place for place, row in enumerate(cells)}
        clients: list[list[int]] = [[] for _ in cells]
        for client, row in enumerate(rows):
            if able[client]:
                clients[number_of[row]].append(client)
        return cls(
            keys=tuple(keys),
            cell_of=tuple(number_of[row] for row in rows),
            values=tuple(cells),
            clients=tuple(map(tuple, clients)),
            distinct=tuple(distinct),
        )

    def spread(self, clients: Sequence[int]) -> int:
        """Different values that these clients have, summed over the keys."""
        return self._spread(tuple(self.cell_of[client] for client in clients))

    def _spread(self, cells: Cells) -> int:
        return sum(len({self.values[c][key] for c in cells}) for key in range(len(self.keys)))

    def best_spread(self, holders: Sequence[int], missing: int) -> int:
        """The greatest spread that `missing` more copies can reach from these holders."""
        return self._best(tuple(sorted(self.cell_of[c] for c in holders)), missing)[0]

    def choose(self, holders: Sequence[int], missing: int, load: Sequence[float]) -> list[int]:
        """Clients for the missing copies of a task: the greatest spread, then the least load.

        Args:
            holders: clients that hold the task already, the active one among them.
            missing: copies to place, fewer where clients are fewer.
            load: of each client; equal loads go to the first client.

        Returns:
            The clients in the order in which they were chosen.
        """
        held, chosen = list(holders), []
        for left in range(missing, 0, -1):
            _, options = self._best(tuple(sorted(self.cell_of[c] for c in held)), left)
            able = [c for cell in options for c in self.clients[cell] if c not in held]
            if not able:
                break
            client = min(able, key=lambda c: (load[c], c))
            held.append(client)
            chosen.append(client)
        return chosen

    def _best(self, cells: Cells, missing: int) -> tuple[int, Cells]:
        """The greatest spread within reach, and the cells that a way there may begin with."""
        key = (cells, missing)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(cells, missing)
        return found

    def _look(self, cells: Cells, missing: int) -> tuple[int, Cells]:
        here = self._spread(cells)
        taken = Counter(cells)
        able = [c for c, clients in enumerate(self.clients) if len(clients) > taken[c]]
        if missing == 0 or not able:
            return here, ()
        deep = missing > 1 and len(able) ** missing <= _WAYS
        after = {c: self._spread((*cells, c)) for c in able}
        if deep:
            after = {c: self._best(tuple(sorted((*cells, c))), missing - 1)[0] for c in able}
        best = max(after.values())
        options = tuple(c for c in able if after[c] == best)
        if deep or missing == 1:
            return best, options
        return self._best(tuple(sorted((*cells, options[0]))), missing - 1)[0], options

    def may_replace(self, holders: Sequence[int], old: int, new: int) -> bool:
        """Whether the copy on `old` may go to `new` without a smaller spread.

        Args:
            holders: all clients with a copy of the task, `old` among them.
            old: the client that gives it up.
            new: the client that takes it.
        """
        others = [client for client in holders if client != old]
        return self.spread([*others, new]) >= self.spread([*others, old])


def shortfalls(
    state: GroupState, active: IntArray, standbys: Pairs
) -> tuple[tuple[int, str, int, int], ...]:
    """Tasks whose copies are on fewer values of a key than copies or values would allow.

    Returns:
        (task, key, values that the copies are on, values possible for this key alone), sorted.
    """
    cells = TagCells.of(state)
    found = []
    for task, held in _holders(state, active, standbys).items():
        for number, key in enumerate(cells.keys):
            have = len({cells.values[cells.cell_of[c]][number] for c in held})
            could = min(len(held), cells.distinct[number])
            if have < could:
                found.append((task, key, have, could))
    return tuple(sorted(found))


def tag_warnings(state: GroupState, active: IntArray, standbys: Pairs) -> tuple[str, ...]:
    """What the tags ask for and this placement does not give, as sentences: which task, which key.

    The first tasks of each key are named and the others counted.
    """
    if not state.config.rack_aware_assignment_tags or not state.config.num_standby_replicas:
        return ()
    warnings = []
    by_key: dict[str, list[tuple[int, int, int]]] = {}
    for task, key, have, could in shortfalls(state, active, standbys):
        by_key.setdefault(key, []).append((task, have, could))
    for key in state.config.rack_aware_assignment_tags:
        values = {dict(tags).get(key) for tags in state.tags}
        if values == {None}:
            warnings.append(f"no client has the tag {key}; set client.tag.{key} on all of them")
        lacking = by_key.get(key, [])
        if not lacking:
            continue
        told = ", ".join(
            f"{state.tasks[task]} on {have} of {could}" for task, have, could in lacking[:_NAMED]
        )
        more = f" and {len(lacking) - _NAMED} more tasks" if len(lacking) > _NAMED else ""
        warnings.append(
            f"copies are on fewer values of tag {key} than asked for: {told}{more}; "
            f"start clients with other values of {key}"
        )
    return tuple(warnings)


def _holders(state: GroupState, active: IntArray, standbys: Pairs) -> dict[int, list[int]]:
    """Clients with a copy of each stateful task, the active one first."""
    holders = {task: [int(active[task])] for task in np.flatnonzero(state.stateful).tolist()}
    for task, client in sorted(standbys):
        holders[task].append(client)
    return holders


def repair(state: GroupState, active: IntArray, standbys: Pairs) -> tuple[Pairs, tuple[str, ...]]:
    """Bring the copies of every task as far apart as its number of copies allows.

    Copies move for that alone, those without state first. Where it can, a copy changes places with
    one of another task, so that no client gets more; else it goes to the least loaded client.

    Args:
        state: the group.
        active: int [T], the client of every task.
        standbys: (task, client) pairs.

    Returns:
        The new pairs, sorted, and warnings about what cannot be had.
    """
    pairs = tuple(sorted(standbys))
    cells = TagCells.of(state)
    if not cells.keys or not pairs:
        return pairs, tag_warnings(state, active, pairs)
    board = _Board.of(state, active, pairs, cells)
    for task in sorted(board.holders):
        _repair_task(board, task)
    _settle(board, pairs)
    placed = tuple(sorted((t, c) for t, held in board.holders.items() for c in held[1:]))
    return placed, tag_warnings(state, active, placed)


@dataclass(slots=True, kw_only=True)
class _Board:
    """Scratchpad: who holds what, and how loaded everybody is."""

    cells: TagCells
    holders: dict[int, list[int]]
    copies_on: dict[int, set[int]]
    count: list[int]
    capacity: list[int]
    has_state: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, state: GroupState, active: IntArray, pairs: Pairs, cells: TagCells) -> "_Board":
        clients = len(state.clients)
        count = np.bincount(active, minlength=clients)
        count += np.bincount([client for _, client in pairs], minlength=clients)
        copies_on: dict[int, set[int]] = {}
        for task, client in pairs:
            copies_on.setdefault(client, set()).add(task)
        states = zip(state.copy_task().tolist(), state.copy_client.tolist(), strict=True)
        return cls(
            cells=cells,
            holders=_holders(state, active, pairs),
            copies_on=copies_on,
            count=count.tolist(),
            capacity=[max(1, threads) for threads in state.capacity().tolist()],
            has_state=frozenset(states),
        )

    def load(self, client: int) -> float:
        return self.count[client] / self.capacity[client]

    def move(self, task: int, old: int, new: int) -> None:
        held = self.holders[task]
        held[held.index(old, 1)] = new
        self.copies_on[old].remove(task)
        self.copies_on.setdefault(new, set()).add(task)
        self.count[old] -= 1
        self.count[new] += 1


def _repair_task(board: _Board, task: int) -> None:
    """Replace standbys until the spread is the best that this active allows."""
    cells, held = board.cells, board.holders[task]
    best = cells.best_spread(held[:1], len(held) - 1)
    while cells.spread(held) < best:
        kept = _worth_keeping(board, task, best)
        leaving = [client for client in held[1:] if client not in kept]
        load = [board.load(c) - ((task, c) in board.has_state) for c in range(len(board.count))]
        chosen = cells.choose([held[0], *kept], len(leaving), load)
        # Some may choose themselves again: they stay.
        leaving, chosen = (
            [c for c in leaving if c not in chosen],
            [c for c in chosen if c not in leaving],
        )
        if not leaving:
            return
        for old, new in zip(leaving, chosen, strict=False):
            _replace(board, task, old, new)


def _worth_keeping(board: _Board, task: int, best: int) -> list[int]:
    """As many standbys as can stay on the way to the best spread, those with state first."""
    cells, held = board.cells, board.holders[task]
    kept: list[int] = []
    ranked = sorted(held[1:], key=lambda c: ((task, c) not in board.has_state, c))
    for client in ranked:
        left = len(held) - 2 - len(kept)
        if cells.best_spread([held[0], *kept, client], left) >= best:
            kept.append(client)
    return kept


def _replace(board: _Board, task: int, old: int, new: int) -> None:
    """Move a copy from `old` to `new`, and another task's copy back where that is as good."""
    cells = board.cells
    for other in sorted(board.copies_on.get(new, ())):
        held = board.holders[other]
        costs_state = (other, new) in board.has_state and (other, old) not in board.has_state
        if old in held or costs_state or not cells.may_replace(held, new, old):
            continue
        board.move(other, new, old)
        break
    board.move(task, old, new)


def _settle(board: _Board, before: Pairs) -> None:
    """Even out what has moved: to the least loaded client that is as good, while that helps."""
    stayed, cells = frozenset(before), board.cells
    moved = [(t, c) for t, held in board.holders.items() for c in held[1:] if (t, c) not in stayed]
    for _ in range(_PASSES):
        changed = False
        for place, (task, old) in enumerate(moved):
            held = board.holders[task]
            # Clients of a cell are equals: one look at the cell serves all of them.
            able = [own for own in cells.clients if own and cells.may_replace(held, old, own[0])]
            fresh = [client for own in able for client in own if client not in held]
            new = min(fresh, key=lambda c: (board.load(c), c), default=old)
            if (board.count[new] + 1) / board.capacity[new] < board.load(old):
                board.move(task, old, new)
                moved[place] = (task, new)
                changed = True
        if not changed:
            return
