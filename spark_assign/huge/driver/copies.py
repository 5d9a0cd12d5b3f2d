"""Decide on the driver where standbys go: by load bands, and by pool and cell.

Keeping copies apart has priority over load bands, and bands over traffic, as in the core. New
copies of a task are placed in layers, because the second copy depends on where the first one is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spark_assign.huge.driver.actives import ChunkCounts
from spark_assign.huge.driver.quotas import fast_quotas, levelled_release
from spark_assign.huge.group import Group
from spark_assign.huge.worker.actives import costs_of
from spark_assign.huge.worker.dealing import Dealing, Leaving
from spark_assign.huge.worker.rows import Ints
from spark_assign.huge.worker.slots import Laps, laps_of
from spark_assign.huge.worker.standbys import Pools

# Costs of a copy in the wrong cell and of one above a band, in units of the highest traffic cost.
_WRONG, _ABOVE = 1_000_000, 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CopyPlan:
    """Where standbys go.

    Attributes:
        layers: decisions for the workers, one for each copy that a task may lack.
        standbys: int [C], standbys of each client.
        given: existing copies that move for balance.
        above: copies placed above the load band of their client.
    """

    layers: tuple[Dealing, ...]
    standbys: Ints
    given: int
    above: int


def solve_copies(
    group: Group, pools: Pools, chunks: Sequence[ChunkCounts], held: Ints, load: Ints
) -> CopyPlan:
    """Decide the quotas and layers of standbys.

    Args:
        group: the group.
        pools: its pools of copies.
        chunks: counts of offered copies by (pool, client), and of lacking copies by pool.
        held: int [C], copies that tasks keep.
        load: int [C], active tasks.
    """
    clients, width = len(group.clients), len(pools.codes)
    offered = np.zeros(width * clients, dtype=np.int64)
    lacking = np.zeros(pools.count, dtype=np.int64)
    for chunk in chunks:
        offered[chunk.keys] += chunk.counts
        lacking += chunk.free
    steps = np.arange(pools.offered) % pools.standbys + 1
    copies = int(held.sum() + (lacking[: pools.offered] * steps).sum())
    quota = fast_quotas(load + held, group.capacity, int(load.sum()) + copies, at_least=load) - load
    by_client = offered.reshape(width, clients).T
    excess = np.minimum(np.maximum(held - quota, 0), by_client.sum(axis=1))
    gone = levelled_release(by_client, excess)
    leaving = _leaving(pools, chunks, gone, clients)
    lacking[pools.offered :] = gone.sum(axis=0)
    spare = np.maximum(quota - held + gone.sum(axis=1), 0)
    flows = _layers(group, pools, lacking, leaving, spare)
    arriving = sum(flow.sum(axis=0) for flow, _ in flows)
    laps, above = _laps(group, spare, np.asarray(arriving), load + held)
    layers, base = [], np.zeros(len(group.spread.sizes), dtype=np.int64)
    for flow, parts in flows:
        layers.append(_dealing(clients, flow, parts, laps, base))
        base = base + flow.sum(axis=0)
    return CopyPlan(
        layers=tuple(layers),
        standbys=quota,
        given=int(gone.sum()),
        above=above,
    )


def _leaving(
    pools: Pools, chunks: Sequence[ChunkCounts], gone: Ints, clients: int
) -> Mapping[int, Leaving]:
    """Which offered copies of each chunk leave; ranks count all new copies of a pool.

    The first ones leave. Of active tasks the last ones leave; it should not be the same tasks.
    """
    due = gone.T.reshape(-1).copy()
    rank = np.zeros(pools.count, dtype=np.int64)
    leaving = {}
    for chunk in chunks:
        leaves = np.minimum(due[chunk.keys], chunk.counts)
        due[chunk.keys] -= leaves
        goes = leaves > 0
        cells = chunk.keys[goes]
        leaving[chunk.chunk] = Leaving(
            cells=cells + pools.offered * clients,
            mark=leaves[goes],
            rank=rank.copy(),
            is_first=True,
        )
        counts = np.bincount(cells // clients, weights=leaves[goes], minlength=len(pools.codes))
        rank = rank + chunk.free
        rank[pools.offered :] += counts.astype(np.int64)
    return leaving


_Flow = tuple[Ints, Mapping[int, Leaving]]


def _layers(
    group: Group,
    pools: Pools,
    lacking: Ints,
    leaving: Mapping[int, Leaving],
    spare: Ints,
) -> list[_Flow]:
    """For each layer, the copies by pool and cell, and the ranks of the chunks."""
    cells = len(group.spread.sizes)
    left = np.bincount(group.cells, weights=spare, minlength=cells).astype(np.int64)
    flows: list[_Flow] = []
    for _ in range(pools.standbys):
        flow = _flow(group, pools, lacking, left)
        flows.append((flow, leaving))
        left = left - flow.sum(axis=0)
        lacking, leaving = _next_layer(pools, lacking, leaving, flow)
        if not lacking.any():
            break
    return flows


def _flow(group: Group, pools: Pools, lacking: Ints, spare: Ints) -> Ints:
    """Int [P, Q]: copies of each pool by cell, at minimal cost."""
    cells = len(group.spread.sizes)
    flow = np.zeros((pools.count, cells), dtype=np.int64)
    wanting = np.flatnonzero(lacking).tolist()
    if cells == 1 or not wanting:
        flow[:, 0] = lacking
        return flow
    import networkx as nx  # noqa: PLC0415 slow to import, needed for spread copies only

    price = _prices(group, pools, wanting)
    above = _ABOVE * (1 + int(price[price < _WRONG].max(initial=0)))
    graph: Any = nx.MultiDiGraph()
    graph.add_node("all", demand=int(lacking.sum()))
    for cell in range(cells):
        if spare[cell] > 0:
            graph.add_edge(cell, "all", key="spare", capacity=int(spare[cell]), weight=0)
        graph.add_edge(cell, "all", key="above", weight=above)
    for row, pool in enumerate(wanting):
        graph.add_node(("pool", pool), demand=-int(lacking[pool]))
        for cell in range(cells):
            graph.add_edge(("pool", pool), cell, key=0, weight=int(price[row, cell]))
    _, flows = nx.network_simplex(graph)
    for pool in wanting:
        for cell, parts in flows["pool", pool].items():
            flow[pool, cell] = sum(parts.values())
    return flow


def _prices(group: Group, pools: Pools, wanting: Sequence[int]) -> Ints:
    """Int [wanting, Q]: traffic of a copy in a cell, plus a penalty if copies are not apart."""
    cells = len(group.spread.sizes)
    rack_of_cell = np.zeros(cells, dtype=np.int64)
    rack_of_cell[group.cells] = group.rack_of
    traffic = costs_of(group)[0] if group.has_rack_costs else 0
    price = np.zeros((len(wanting), cells), dtype=np.int64)
    highest = 1 + traffic * int(group.changelogs.weight.max(initial=0))
    for row, pool in enumerate(wanting):
        held, kind, lacks = pools.look(pool)
        if traffic and kind >= 0:
            price[row] = traffic * group.changelogs.weight[kind][rack_of_cell]
        _, best = group.spread.look(held, lacks)
        wrong = np.ones(cells, dtype=np.bool_)
        wrong[list(best)] = False
        price[row] += wrong * (_WRONG * highest)
    return price


def _next_layer(
    pools: Pools, lacking: Ints, leaving: Mapping[int, Leaving], flow: Ints
) -> tuple[Ints, Mapping[int, Leaving]]:
    """Copies that tasks lack after this layer, by pool, and their ranks by chunk."""
    after = np.full(flow.shape, -1, dtype=np.int64)
    for pool in np.flatnonzero(lacking[: pools.offered]).tolist():
        place, rest = divmod(pool, pools.classes * pools.standbys)
        kind, lacks = divmod(rest, pools.standbys)
        if lacks:
            cells = np.arange(flow.shape[1])
            code = pools.beside(np.full(len(cells), pools.codes[place]), cells)
            after[pool] = pools.lacking(code, np.full(len(cells), kind), np.full(len(cells), lacks))
    cut = np.zeros((flow.shape[0], flow.shape[1] + 1), dtype=np.int64)
    np.cumsum(flow, axis=1, out=cut[:, 1:])
    rank = np.zeros(pools.count, dtype=np.int64)
    ends = [*[chunk_leaving.rank for chunk_leaving in leaving.values()][1:], lacking]
    result = {}
    nothing = np.zeros(0, dtype=np.int64)
    known = after >= 0
    for (chunk, before), end in zip(leaving.items(), ends, strict=True):
        result[chunk] = Leaving(cells=nothing, mark=nothing, rank=rank.copy())
        low = np.maximum(cut[:, :-1], before.rank[:, None])
        count = np.maximum(np.minimum(cut[:, 1:], end[:, None]) - low, 0)
        rank += np.bincount(after[known], weights=count[known], minlength=pools.count).astype(
            np.int64
        )
    return rank, result


def _laps(
    group: Group, spare: Ints, arriving: Ints, load: Ints
) -> tuple[dict[tuple[int, int], Laps], int]:
    """Laps of each cell, with quotas raised if more copies must go there; and by how many."""
    laps, above = {}, 0
    for cell, count in enumerate(arriving.tolist()):
        cell_spare = np.where(group.cells == cell, spare, 0)
        extra = count - int(cell_spare.sum())
        if extra > 0:
            above += extra
            threads = np.where(group.cells == cell, group.capacity, 0)
            full = np.where(group.cells == cell, load, 0) + cell_spare
            raised = fast_quotas(full, threads, int(full.sum()) + extra, at_least=full)
            cell_spare = cell_spare + raised - full
        laps[0, cell] = laps_of(cell_spare, group.capacity, shift=1)
    return laps, above


def _dealing(
    clients: int,
    flow: Ints,
    leaving: Mapping[int, Leaving],
    laps: Mapping[tuple[int, int], Laps],
    base: Ints,
) -> Dealing:
    cut = np.zeros((flow.shape[0], flow.shape[1] + 1), dtype=np.int64)
    np.cumsum(flow, axis=1, out=cut[:, 1:])
    return Dealing(
        clients=clients,
        pools=len(flow),
        leaving=leaving,
        cut=cut,
        base=base[None, :] + np.cumsum(flow, axis=0) - flow,
        block_of=np.zeros(len(flow), dtype=np.int64),
        laps=laps,
    )


def predicted(
    pools: Pools,
    clients: int,
    chunks: Sequence[ChunkCounts],
    loose: Mapping[int, Ints],
    held: Ints,
) -> tuple[list[ChunkCounts], Ints]:
    """Counts of copies after active tasks have moved, computed from those before; without spread.

    A task that lacked one copy and moves keeps its old copy, so it no longer lacks one.

    Args:
        pools: the pools of a group with a single cell.
        clients: C.
        chunks: counts as if no task moved.
        loose: chunk -> int [moves], the clients that such tasks leave.
        held: int [C], copies as if no task moved.
    """
    changed = []
    held = held.copy()
    ones = np.ones(1, dtype=np.int64)
    first = int(pools.lacking(ones, ones - 1, ones)[0])
    place = int(np.searchsorted(pools.codes, 1))
    for chunk in chunks:
        more = loose[chunk.chunk]
        held += np.bincount(more, minlength=clients)
        keys = np.concatenate([chunk.keys, place * clients + more])
        names, where = np.unique(keys, return_inverse=True)
        weights = np.concatenate([chunk.counts, np.ones(len(more), dtype=np.int64)])
        counts = np.bincount(where.reshape(-1), weights=weights).astype(np.int64)
        free = chunk.free.copy()
        free[first] -= len(more)
        changed.append(replace(chunk, keys=names, counts=counts, free=free))
    return changed, held
