"""The exact optimum where clients must give up tasks, or shares of subtopologies bind.

Then it matters *which* client keeps what, and a rack is too coarse. The graph has a node for each
pool of tasks (class and subtopology), an arc from it to each client that owns some of it (what it
may keep), and one to each rack for all else: (pools x racks) + owned pairs + clients arcs instead
of tasks x clients.
"""

from collections import defaultdict
from typing import Any

import numpy as np

from assignor.placement.racks.classes import Placement
from assignor.placement.state import NOBODY, IntArray


def group_arcs(placement: Placement, limits: IntArray | None) -> int:
    """Number of arcs of the graph; what `solve_groups` takes grows faster than that."""
    pools = _pools(placement)
    owned = placement.owner != NOBODY
    width = len(placement.rack_of)
    pair_count = len(np.unique(pools[owned] * width + placement.owner[owned]))
    clients = len(np.unique(placement.client))
    blocks = 0 if limits is None else len(limits)
    racks = placement.weight.shape[1]
    return int(pair_count + (pools.max(initial=-1) + 1) * racks + clients * (2 * blocks + 2))


def _pools(placement: Placement) -> IntArray:
    """Int [M]: number of (class, subtopology, owned or not) of each task."""
    table = np.stack([placement.class_of, placement.block_of, placement.owner != NOBODY], axis=1)
    _, pool = np.unique(table, axis=0, return_inverse=True)
    return pool.reshape(-1).astype(np.int64)


def solve_groups(placement: Placement, limits: IntArray | None = None) -> IntArray:
    """A placement of least cost with the same count for every client; exact.

    Args:
        placement: the tasks.
        limits: int [S, C], tasks of each subtopology that a client may hold; None for any.

    Returns:
        int [M], the client of each task.
    """
    import networkx as nx  # noqa: PLC0415 a quarter of a second, for such groups only

    pools = _pools(placement)
    graph = _graph(placement, pools, limits)
    _, flows = nx.network_simplex(graph)
    return _decode(placement, pools, flows)


def _graph(placement: Placement, pools: IntArray, limits: IntArray | None) -> Any:
    import networkx as nx  # noqa: PLC0415 as above

    graph: Any = nx.DiGraph()
    quota = np.bincount(placement.client, minlength=len(placement.rack_of)).tolist()
    for client, count in enumerate(quota):
        if count:
            graph.add_node(("client", client), demand=count)
            _add_places(graph, client, int(placement.rack_of[client]), limits)
    for pool, rows in sorted(_members(pools).items()):
        block = 0 if limits is None else int(placement.block_of[rows[0]])
        weight = placement.weight[placement.class_of[rows[0]]].tolist()
        graph.add_node(("pool", pool), demand=-len(rows))
        is_owned = bool(placement.owner[rows[0]] != NOBODY)
        move = placement.overlap if is_owned else 0
        for rack, cost in enumerate(weight):
            graph.add_edge(("pool", pool), ("rack", block, rack), weight=cost + move)
        names, counts = np.unique(placement.owner[rows], return_counts=True)
        for client, count in zip(names.tolist(), counts.tolist(), strict=True):
            # An owner that is to hold nothing keeps nothing.
            if is_owned and quota[client]:
                cost = weight[int(placement.rack_of[client])]
                end = ("client", client) if limits is None else ("share", block, client)
                graph.add_edge(("pool", pool), end, weight=cost, capacity=count)
    return graph


def _add_places(graph: Any, client: int, rack: int, limits: IntArray | None) -> None:
    """Arcs from a client's rack to it, by way of its share of each subtopology if that is bound."""
    if limits is None:
        graph.add_edge(("rack", 0, rack), ("client", client), weight=0)
        return
    for block, limit in enumerate(limits[:, client].tolist()):
        share = ("share", block, client)
        graph.add_edge(("rack", block, rack), share, weight=0)
        graph.add_edge(share, ("client", client), weight=0, capacity=limit)


def _members(pools: IntArray) -> dict[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for row, pool in enumerate(pools.tolist()):
        members[pool].append(row)
    return members


def _decode(placement: Placement, pools: IntArray, flows: Any) -> IntArray:
    """Tasks for the flows: owners keep the first of theirs, the rest fills the racks' places."""
    placed = np.full(len(pools), NOBODY, dtype=np.int64)
    arrivals: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for pool, rows in sorted(_members(pools).items()):
        flow = sorted(flows[("pool", pool)].items())
        _keep(placement, rows, [(n[-1], count) for n, count in flow if n[0] != "rack"], placed)
        rest = [row for row in reversed(rows) if placed[row] == NOBODY]
        for node, count in flow:
            if node[0] == "rack":
                arrivals[node] += [rest.pop() for _ in range(count)]
    for node, rows in sorted(arrivals.items()):
        waiting = list(reversed(rows))
        for end, count in sorted(flows[node].items()):
            for _ in range(count):
                placed[waiting.pop()] = end[-1]
    return placed


def _keep(
    placement: Placement, rows: list[int], kept: list[tuple[int, int]], placed: IntArray
) -> None:
    by_owner: dict[int, list[int]] = defaultdict(list)
    for row in reversed(rows):
        by_owner[int(placement.owner[row])].append(row)
    for client, count in kept:
        for _ in range(count):
            placed[by_owner[client].pop()] = client
