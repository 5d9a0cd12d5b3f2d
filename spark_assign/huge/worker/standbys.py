"""Standby copies in a worker: which stay, which may be given up, and which are lacking.

The pool of a new copy has all that decides where it may go: the cells with copies of the task
(KIP-708 tags, else racks), the class of its changelogs if racks have costs, and the number of
lacking copies. A copy that may be given up has a pool without class. A task with all its standbys
offers one of them; other tasks offer none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from assignor.placement import NOBODY
from spark_assign.huge.group import Group
from spark_assign.huge.worker.actives import FIXED, LOOSE, Belonging
from spark_assign.huge.worker.dealing import Dealer
from spark_assign.huge.worker.rows import Bools, Ints, Rows

_MOST_PATTERNS = 4_096
# Cells are bits of an integer.
_MOST_CELLS = 62
_NO_COPY = np.iinfo(np.int64).max
_LAG_BITS, _CLIENT_BITS = 36, 24
# Rows before and after a row that are searched first for a swap.
_NEAR = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """Numbers of the pools of copies.

    Attributes:
        codes: int [M], ascending: sets of cells as bits; if there are too many sets, 1 + the cell
            of the active task.
        is_exact: whether codes are sets of cells.
        classes: K, classes of changelogs.
        standbys: N, standbys of a task.
    """

    codes: Ints
    is_exact: bool
    classes: int
    standbys: int

    @classmethod
    def of(cls, group: Group) -> "Pools":
        """The pools of a group."""
        cells, most = len(group.spread.sizes), max(1, group.standbys)
        total = sum(comb(cells, size) for size in range(min(most, cells) + 1))
        is_exact = cells <= _MOST_CELLS and total <= _MOST_PATTERNS
        codes = list(range(cells + 1))
        if is_exact:
            sets = [p for size in range(most + 1) for p in combinations(range(cells), size)]
            codes = sorted(sum(1 << cell for cell in chosen) for chosen in sets)
        return cls(
            codes=np.array(codes, dtype=np.int64),
            is_exact=is_exact,
            classes=len(group.changelogs.weight) if group.has_rack_costs else 1,
            standbys=max(1, group.standbys),
        )

    @property
    def offered(self) -> int:
        """The number of the first pool of copies that may be given up."""
        return len(self.codes) * self.classes * self.standbys

    @property
    def count(self) -> int:
        """The number of all pools."""
        return self.offered + len(self.codes)

    def code(self, cell: Ints) -> Ints:
        """The code of tasks with one copy, in that cell."""
        return (1 << cell) if self.is_exact else cell + 1

    def beside(self, code: Ints, cell: Ints) -> Ints:
        """The code of tasks that get one more copy, in that cell."""
        return code | (1 << cell) if self.is_exact else code

    def lacking(self, code: Ints, kind: Ints, lacks: Ints) -> Ints:
        """Int [M]: pools of tasks that lack `lacks` copies."""
        place = np.searchsorted(self.codes, code)
        return (place * self.classes + kind) * self.standbys + lacks - 1

    def giving(self, code: Ints) -> Ints:
        """Int [M]: pools of copies that may be given up, by the code of the other copies."""
        return self.offered + np.searchsorted(self.codes, code)

    def look(self, pool: int) -> tuple[tuple[int, ...], int, int]:
        """Cells of the copies, class (-1 for any) and how many copies are lacking, of a pool."""
        place, kind, lacks = pool - self.offered, -1, 1
        if pool < self.offered:
            rest, left = divmod(pool, self.standbys)
            lacks = left + 1
            place, kind = divmod(rest, self.classes)
        return self.cells_of(int(self.codes[place])), kind, lacks

    def cells_of(self, code: int) -> tuple[int, ...]:
        """The cells that a code stands for."""
        if not self.is_exact:
            return (code - 1,) if code else ()
        return tuple(cell for cell in range(code.bit_length()) if code >> cell & 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copies:
    """Standbys of a batch.

    Attributes:
        kept: int [B, N], clients of the standbys that stay, then NOBODY for each lacking one.
        code: int [B], cells of the active task and of `kept`.
        lacks: int [B], number of lacking copies.
        given: int [B], index in `kept` of the copy that may be given up; -1 for none.
        pool: int [B], pool of that copy.
    """

    kept: Ints
    code: Ints
    lacks: Ints
    given: Ints
    pool: Ints

    def offered(self) -> Ints:
        """Int [B]: the client of the copy that may be given up, or NOBODY."""
        if not self.kept.shape[1]:
            return np.full(len(self.given), NOBODY, dtype=np.int64)
        rows = np.arange(len(self.given))
        return np.where(self.given >= 0, self.kept[rows, self.given], NOBODY)


def copies_of(rows: Rows, group: Group, pools: Pools, active: Ints) -> Copies:
    """The copies that stay as standbys; the choice is that of the core.

    Args:
        rows: the tasks.
        group: the group.
        pools: its pools of copies.
        active: int [B], where each task is placed, or NOBODY.
    """
    size, wanted = len(active), group.standbys
    if not wanted:
        return _no_copies(size)
    score = _scores(rows, group, active)
    kept = np.full((size, wanted), NOBODY, dtype=np.int64)
    cell = np.where(active == NOBODY, 0, group.cells[active])
    # Without spread there is one cell only.
    code = np.where((active == NOBODY) & group.spread.is_needed, 0, pools.code(cell))
    line = np.arange(size)
    # `reach` adds the expected cells of new copies.
    reach = code
    for left in range(wanted, 0, -1):
        able = score
        if group.spread.is_needed:
            best = _best_cells(group, pools, reach, left)
            fits = np.take_along_axis(best, np.append(group.cells, 0)[rows.copy_client], axis=1)
            able = np.where(fits, score, _NO_COPY)
        place = able.argmin(axis=1)
        found = able[line, place] != _NO_COPY
        kept[:, wanted - left] = np.where(found, rows.copy_client[line, place], NOBODY)
        if wanted > 1:
            score[line[found], place[found]] = _NO_COPY
        if group.spread.is_needed:
            own = np.append(group.cells, 0)[kept[:, wanted - left]]
            code = np.where(found, pools.beside(code, own), code)
            reach = pools.beside(reach, np.where(found, own, best.argmax(axis=1)))
    if wanted > 1:
        kept = np.take_along_axis(kept, np.argsort(kept == NOBODY, axis=1, kind="stable"), axis=1)
    lacks = np.where(rows.stateful, (kept == NOBODY).sum(axis=1), 0)
    given, pool = _given(rows, group, pools, active, kept=kept, code=code, lacks=lacks)
    return Copies(kept=kept, code=code, lacks=lacks, given=given, pool=pool)


def _no_copies(size: int) -> Copies:
    nothing = np.zeros(size, dtype=np.int64)
    return Copies(
        kept=np.zeros((size, 0), dtype=np.int64),
        code=nothing,
        lacks=nothing,
        given=np.full(size, -1, dtype=np.int64),
        pool=nothing,
    )


def _scores(rows: Rows, group: Group, active: Ints) -> Ints:
    """Int [B, W]: scores, lowest first: caught-up copies, the owner's last of them, then by lag."""
    client = rows.copy_client
    usable = np.append(group.capacity > 0, np.False_)
    fits = usable[client] & (client != active[:, None]) & rows.stateful[:, None]
    is_behind = rows.copy_lag > group.config.acceptable_recovery_lag
    lag = np.where(is_behind, np.minimum(rows.copy_lag, (1 << _LAG_BITS) - 1), 0)
    score = (lag << _CLIENT_BITS) + client
    score += (client == rows.owner[:, None]).astype(np.int64) << (_LAG_BITS + _CLIENT_BITS)
    score += is_behind.astype(np.int64) << (_LAG_BITS + _CLIENT_BITS + 1)
    return np.where(fits, score, _NO_COPY)


def _best_cells(group: Group, pools: Pools, code: Ints, left: int) -> Bools:
    """Bool [B, Q]: the best cells for one more copy."""
    names, place = np.unique(code, return_inverse=True)
    table = np.zeros((len(names), len(group.spread.sizes)), dtype=np.bool_)
    for number, name in enumerate(names.tolist()):
        _, best = group.spread.look(pools.cells_of(name), left)
        table[number, list(best)] = True
    return table[place.reshape(-1)]


def _given(
    rows: Rows,
    group: Group,
    pools: Pools,
    active: Ints,
    *,
    kept: Ints,
    code: Ints,
    lacks: Ints,
) -> tuple[Ints, Ints]:
    """The index of the copy that each task may give up, and the pool of that copy."""
    wanted = kept.shape[1]
    may_give = rows.stateful & (lacks == 0) & (active != NOBODY)
    given = np.where(may_give, (rows.partition + rows.subtopology) % wanted, -1)
    if not group.spread.is_needed:
        return given, pools.giving(code)
    others = pools.code(np.where(active == NOBODY, 0, group.cells[active]))
    for column in range(wanted):
        own = np.append(group.cells, 0)[kept[:, column]]
        others = np.where(given != column, pools.beside(others, own), others)
    return given, pools.giving(np.where(may_give, others, pools.codes[0]))


def levels_of(rows: Rows, group: Group, where: Belonging, copies: Copies) -> Ints:
    """Int [B]: levels of the active tasks, by their standbys after a move."""
    if not group.standbys:
        return where.level
    limit = group.config.acceptable_recovery_lag
    hot = np.zeros(len(where.at), dtype=np.int64)
    own = np.zeros(len(where.at), dtype=np.bool_)
    for column in range(rows.copy_client.shape[1]):
        client = rows.copy_client[:, column]
        is_kept = ((copies.kept == client[:, None]) & (client >= 0)[:, None]).any(axis=1)
        hot += is_kept & (rows.copy_lag[:, column] <= limit)
        own |= (client == where.at) & (client >= 0)
    is_settled = hot == group.standbys - copies.lacks
    level = np.where(is_settled & (copies.lacks == 1) & own, LOOSE, FIXED)
    level = np.where(is_settled & (copies.lacks == 0), where.level, level)
    return np.where(rows.stateful & (where.home != NOBODY), level, where.level)


def deal_standbys(
    copies: Copies,
    group: Group,
    pools: Pools,
    dealers: Sequence[Dealer],
    *,
    kind: Ints,
    active: Ints,
) -> Ints:
    """Int [B, N]: all standbys, existing and new; NOBODY if no client can take one.

    Args:
        copies: the standbys that stay.
        group: the group.
        pools: its pools of copies.
        dealers: one for each copy that a task may lack.
        kind: int [B], classes of the changelogs.
        active: int [B].
    """
    placed, code, lacks = copies.kept.copy(), copies.code, copies.lacks.copy()
    offered = copies.offered()
    level = np.zeros(len(active), dtype=np.int64)
    stays = dealers[0].stays(level, copies.pool, offered)
    gives = np.flatnonzero((offered != NOBODY) & (stays == NOBODY))
    placed[gives, copies.given[gives]] = NOBODY
    for number, dealer in enumerate(dealers):
        needs = lacks > 0
        pool = np.where(needs, pools.lacking(code, kind, np.maximum(lacks, 1)), copies.pool)
        if number == 0:
            needs[gives] = True
        rows = np.flatnonzero(needs)
        if not len(rows):
            break
        client, cell = dealer.deal(pool[rows])
        holders = np.concatenate([active[rows, None], placed[rows]], axis=1)
        client = apart(client, cell, holders, group)
        column = (placed[rows] == NOBODY).argmax(axis=1)
        placed[rows, column] = client
        code = code.copy()
        code[rows] = pools.beside(code[rows], cell)
        lacks = np.maximum(lacks - 1, 0)
    return placed


def apart(client: Ints, cell: Ints, holders: Ints, group: Group) -> Ints:
    """Resolve copies on a client that has the task already: swap them with others of the cell.

    If no swap is possible, another client of the cell takes the copy, else any other client.
    """
    client = client.copy()
    clashing = np.flatnonzero((holders == client[:, None]).any(axis=1) | (client == NOBODY))
    for row in clashing.tolist():
        own_holders = holders[row]
        for near in (slice(max(0, row - _NEAR), row + _NEAR), slice(None)):
            others = client[near]
            able = (cell[near] == cell[row]) & ~np.isin(others, own_holders) & (others != NOBODY)
            able &= ~(holders[near] == client[row]).any(axis=1)
            if client[row] != NOBODY and able.any():
                other = int(able.argmax()) + (near.start or 0)
                client[row], client[other] = client[other], client[row]
                break
        else:
            client[row] = _any_client(row, int(cell[row]), own_holders, group)
    return client


def _any_client(row: int, cell: int, holders: Ints, group: Group) -> int:
    usable = group.capacity > 0
    for able in (usable & (group.cells == cell), usable):
        left = able.copy()
        left[holders[holders != NOBODY]] = False
        if left.any():
            return int(np.roll(left, -row).argmax() + row) % len(left)
    return NOBODY
