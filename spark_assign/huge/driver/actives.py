"""Decide on the driver how many active tasks of each cell stay, and where the others go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spark_assign.huge.driver.quotas import active_quotas, fast_quotas, levelled_release, shared_out
from spark_assign.huge.driver.racks import RackProblem, solve_racks
from spark_assign.huge.group import Group
from spark_assign.huge.worker.actives import FIRM, FIXED, LEVELS, PREFERRED, costs_of
from spark_assign.huge.worker.dealing import Dealing, Leaving
from spark_assign.huge.worker.rows import Ints
from spark_assign.huge.worker.slots import Laps, laps_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkCounts:
    """The counts of one chunk for one decision.

    Attributes:
        chunk: its number.
        keys, counts: int [E] both, cells with tasks and their numbers.
        free: int [P], tasks without a client.
    """

    chunk: int
    keys: Ints
    counts: Ints
    free: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActivePlan:
    """Where active tasks go.

    Attributes:
        dealing: the decision, for the workers.
        stateful, stateless: int [C], tasks of each client.
        homes: int [C], stateful tasks whose home is the client.
        moved: tasks that leave their home, stateless ones included.
        is_sure: whether the standbys of all other tasks are known without another pass.
        bound, cost: minimal rack cost with these quotas, and that of this plan; 0 without costs.
    """

    dealing: Dealing
    stateful: Ints
    stateless: Ints
    homes: Ints
    moved: int
    is_sure: bool
    bound: int
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Stateful or stateless tasks of one block: what stays, what arrives, and spare capacity."""

    stay: Ints
    arrive: Ints
    spare: Ints
    bound: int = 0
    cost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Used:
    """The pools that have tasks; most pools have none.

    Attributes:
        pools: int [U], pools of stateful tasks; stateless tasks have as many.
        place: int [P], the index of each pool in `pools`.
        clients: C.
    """

    pools: Ints
    place: Ints
    clients: int

    @classmethod
    def of(cls, group: Group, chunks: Sequence[ChunkCounts]) -> "_Used":
        """The used pools of a group; with rack costs all pools, because blocks need them all."""
        half, clients = group.pools, len(group.clients)
        has_tasks = np.full(half, group.has_rack_costs, dtype=np.bool_)
        for chunk in chunks:
            has_tasks[chunk.keys // clients % half] = True
            has_tasks |= chunk.free.reshape(2, half).any(axis=0)
        return cls(pools=np.flatnonzero(has_tasks), place=np.cumsum(has_tasks) - 1, clients=clients)

    def cells(self, keys: Ints) -> Ints:
        """Keys of cells, renumbered over the used pools."""
        rest, client = np.divmod(keys, self.clients)
        rest, pool = np.divmod(rest, len(self.place))
        return (rest * len(self.pools) + self.place[pool]) * self.clients + client

    def spread(self, part: Ints) -> Ints:
        """Rows for all pools from rows for the used ones."""
        if len(part) != len(self.pools):
            return part
        rows = np.zeros((len(self.place), *part.shape[1:]), dtype=part.dtype)
        rows[self.pools] = part
        return rows


def solve_actives(group: Group, chunks: Sequence[ChunkCounts]) -> ActivePlan:
    """Quotas, which tasks stay, and where the others go; `chunks` is in the order of ranks."""
    used = _Used.of(group, chunks)
    clients, half = len(group.clients), len(used.pools)
    cells = np.zeros(LEVELS * 2 * half * clients, dtype=np.int64)
    free = np.zeros(2 * group.pools, dtype=np.int64)
    for chunk in chunks:
        cells[used.cells(chunk.keys)] += chunk.counts
        free += chunk.free
    free = free[np.concatenate([used.pools, used.pools + group.pools])]
    held = cells.reshape(LEVELS, 2 * half, clients).transpose(0, 2, 1)
    stateful = held[:, :, :half]
    total = int(stateful.sum() + free[:half].sum())
    homes = stateful[:PREFERRED].sum(axis=(0, 2))
    quota = active_quotas(homes, stateful[PREFERRED].sum(axis=1), group.capacity, total)
    firm = held[FIRM, :, half:]
    count = int(firm.sum() + free[half:].sum())
    stateless = np.zeros_like(quota)
    if count:
        wish = quota + firm.sum(axis=1)
        stateless = fast_quotas(wish, group.capacity, total + count, at_least=quota) - quota
    nothing = np.zeros((LEVELS, clients, half), dtype=np.int64)
    bare = nothing.copy()
    bare[FIRM] = firm
    traffic, overlap = costs_of(group)
    parts = _parts(group, stateful, free[:half], quota, (traffic, overlap))
    # For stateless tasks traffic counts first, and moves only break ties.
    others = _parts(group, bare, free[half:], stateless, (count + 1, 1))
    stay = np.concatenate([_joined(parts, half), _joined(others, half)], axis=2)
    dealing = _dealing(group, chunks, stay, (*parts, *others), used)
    left = held - stay
    return ActivePlan(
        dealing=dealing,
        stateful=quota,
        stateless=stateless,
        homes=homes,
        moved=int(left[:PREFERRED].sum()),
        is_sure=not left[FIXED].any() and not left[PREFERRED].any(),
        bound=sum(part.bound for part in parts),
        cost=sum(part.cost for part in parts),
    )


def _joined(parts: Sequence[_Part], pools: int) -> Ints:
    joined = np.concatenate([part.stay for part in parts], axis=2)
    return joined[:, :, :pools]


def _parts(
    group: Group, held: Ints, free: Ints, quota: Ints, costs: tuple[int, int]
) -> tuple[_Part, ...]:
    """Solve each block of pools with its own quotas."""
    blocks, pools = group.blocks, len(free)
    if blocks == 1:
        return (_solved(group, held, free, quota, costs),)
    width = pools // blocks
    shape = (len(quota), blocks, width)
    by_block = held.sum(axis=0).reshape(shape).sum(axis=2)
    sizes = by_block.sum(axis=0) + free.reshape(blocks, width).sum(axis=1)
    homes = held[:PREFERRED].sum(axis=0).reshape(shape).sum(axis=2)
    shares = _block_quotas(homes, sizes, quota, group.capacity)
    parts = []
    for block in range(blocks):
        part = slice(block * width, (block + 1) * width)
        parts.append(_solved(group, held[:, :, part], free[part], shares[:, block], costs))
    return tuple(parts)


def _block_quotas(homes: Ints, sizes: Ints, quota: Ints, capacity: Ints) -> Ints:
    """Int [C, S]: quotas of clients by subtopology; keeps homes, and is even otherwise."""
    excess = np.maximum(homes.sum(axis=1) - quota, 0)
    shares = homes - levelled_release(homes, excess)
    laps = laps_of(quota - shares.sum(axis=1), capacity)
    start, step = 0, 1 << 20
    for block, missing in enumerate((sizes - shares.sum(axis=0)).tolist()):
        for first in range(start, start + missing, step):
            ranks = np.arange(first, min(first + step, start + missing))
            shares[:, block] += np.bincount(laps.client(ranks), minlength=len(quota))
        start += missing
    return shares


def _solved(group: Group, held: Ints, free: Ints, quota: Ints, costs: tuple[int, int]) -> _Part:
    """Keep homes first, then use copies; with rack costs keep homes where that is cheapest."""
    homes = held[:PREFERRED].sum(axis=0)
    likes = held[PREFERRED]
    bound = cost = 0
    if group.has_rack_costs:
        width = len(group.sources.weight)
        problem = RackProblem(
            held=homes,
            free=free + likes.sum(axis=0),
            quota=quota,
            rack_of=group.rack_of,
            lacks_rack=group.lacks_rack,
            weight=group.sources.weight[np.arange(homes.shape[1]) % width],
            traffic=costs[0],
            overlap=costs[1],
        )
        plan = solve_racks(problem)
        arrive, bound, cost = plan.arrive, plan.bound, plan.cost
        gone = _by_level(held, homes - plan.keep)
    else:
        gone = _levelled(held, np.maximum(homes.sum(axis=1) - quota, 0))
        arrive = (gone.sum(axis=(0, 1)) + likes.sum(axis=0) + free)[:, None]
    stay = held.copy()
    stay[:PREFERRED] -= gone
    spare = quota - stay[:PREFERRED].sum(axis=(0, 2))
    stay[PREFERRED] = _taken(group, likes, arrive, spare)
    for rack in range(arrive.shape[1]):
        arrive[:, rack] -= stay[PREFERRED, group.rack_of == rack].sum(axis=0)
    left = spare - stay[PREFERRED].sum(axis=1)
    return _Part(stay=stay, arrive=arrive, spare=left, bound=bound, cost=cost)


def _by_level(held: Ints, gone: Ints) -> Ints:
    """Int [levels of homes, C, P]: tasks that leave, by level; the last levels leave first."""
    parts = []
    for level in range(PREFERRED - 1, -1, -1):
        part = np.minimum(gone, held[level])
        gone = gone - part
        parts.append(part)
    return np.stack(parts[::-1])


def _levelled(held: Ints, excess: Ints) -> Ints:
    """As `_by_level`, given the number of each client only: the largest pools give first."""
    parts = []
    for level in range(PREFERRED - 1, -1, -1):
        leaving = np.minimum(excess, held[level].sum(axis=1))
        excess = excess - leaving
        parts.append(levelled_release(held[level], leaving))
    return np.stack(parts[::-1])


def _taken(group: Group, likes: Ints, arrive: Ints, spare: Ints) -> Ints:
    """Int [C, P]: tasks that go to a copy, as many as quotas and racks allow."""
    taken = shared_out(likes, np.maximum(spare, 0))
    for rack in range(arrive.shape[1]):
        rows = np.flatnonzero(group.rack_of == rack)
        before = np.cumsum(taken[rows], axis=0) - taken[rows]
        taken[rows] = np.clip(arrive[:, rack][None, :] - before, 0, taken[rows])
    return taken


def _dealing(
    group: Group,
    chunks: Sequence[ChunkCounts],
    stay: Ints,
    parts: Sequence[_Part],
    used: _Used,
) -> Dealing:
    """The decision for the workers: what leaves each chunk, and laps of every block and rack."""
    arrivals = [used.spread(part.arrive) for part in parts]
    arrive = np.concatenate(arrivals, axis=0)
    pools, racks = arrive.shape
    laps: dict[tuple[int, int], Laps] = {}
    base, block_of, first = np.zeros((pools, racks), np.int64), np.zeros(pools, np.int64), 0
    for block, (part, arriving) in enumerate(zip(parts, arrivals, strict=True)):
        own_pools = slice(first, first + len(arriving))
        first = own_pools.stop
        block_of[own_pools] = block
        base[own_pools] = np.cumsum(arriving, axis=0) - arriving
        for rack in range(racks):
            spare = np.where(group.rack_of == rack, part.spare, 0)
            laps[block, rack] = laps_of(spare, group.capacity)
    cut = np.zeros((pools, racks + 1), dtype=np.int64)
    np.cumsum(arrive, axis=1, out=cut[:, 1:])
    return Dealing(
        clients=len(group.clients),
        pools=pools,
        leaving=_leaving_of(chunks, stay, pools, used),
        cut=cut,
        base=base,
        block_of=block_of,
        laps=laps,
    )


def _leaving_of(
    chunks: Sequence[ChunkCounts], stay: Ints, pools: int, used: _Used
) -> Mapping[int, Leaving]:
    """What leaves each chunk; in the order of the chunks, the first tasks of every cell stay.

    Args:
        chunks: their counts.
        stay: int [levels, C, U], tasks that stay.
        pools: P.
        used: the pools that have tasks.
    """
    clients = stay.shape[1]
    remaining = stay.transpose(0, 2, 1).reshape(-1).copy()
    rank = np.zeros(pools, dtype=np.int64)
    leaving = {}
    for chunk in chunks:
        counted = used.cells(chunk.keys)
        first = np.minimum(remaining[counted], chunk.counts)
        remaining[counted] -= first
        goes = first < chunk.counts
        cells = chunk.keys[goes]
        leaving[chunk.chunk] = Leaving(cells=cells, mark=first[goes], rank=rank.copy())
        gone = (chunk.counts - first)[goes]
        pool = cells // clients % pools
        rank += np.bincount(pool, weights=gone, minlength=pools).astype(np.int64) + chunk.free
    return leaving
