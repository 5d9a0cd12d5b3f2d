"""The exact optimum for groups in which clients must give up tasks or shares limit subtopologies.

Then it matters *which* client keeps a task, not only which rack. The graph has a node for each pool
of tasks (same class, same subtopology, and same set of places if there are several). Arcs lead from
a pool to each client that may keep some of its tasks, and to each rack for the others. That is
(pools x racks) + kept pairs + clients arcs instead of tasks x clients.
"""

from collections import defaultdict
from itertools import islice
from typing import Any

import numpy as np

from assignor.placement.racks.classes import ExchangeProblem
from assignor.placement.state import NOBODY, IntArray


def group_arcs(problem: ExchangeProblem, limits: IntArray | None) -> int:
    """Number of arcs of the graph; the time of `solve_groups` grows faster than this number."""
    pools = _pools(problem)
    width = len(problem.rack_of)
    pair_count = len(np.unique(pools[problem.kept.row()] * width + problem.kept.client))
    clients = len(np.unique(problem.client))
    blocks = 0 if limits is None else len(limits)
    racks = problem.weight.shape[1]
    return int(pair_count + (pools.max(initial=-1) + 1) * racks + clients * (2 * blocks + 2))


def _pools(problem: ExchangeProblem) -> IntArray:
    """Int [M]: the pool of each task, as a number.

    Tasks with exactly one place share a pool whatever the place: the arc to a client takes as many
    tasks as have that place. With several places that would be no bound, so each set of places is a
    pool of its own.
    """
    kept = problem.kept
    several = np.minimum(kept.count(), 1)
    starts, clients = kept.start.tolist(), kept.client.tolist()
    number: dict[tuple[int, ...], int] = {}
    for row in np.flatnonzero(kept.count() > 1).tolist():
        places = tuple(clients[starts[row] : starts[row + 1]])
        several[row] = number.setdefault(places, len(number) + 2)
    table = np.stack([problem.class_of, problem.block_of, several], axis=1)
    _, pool = np.unique(table, axis=0, return_inverse=True)
    return pool.reshape(-1).astype(np.int64)


def solve_groups(problem: ExchangeProblem, limits: IntArray | None = None) -> IntArray:
    """A placement of least cost with the same count for every client; exact.

    Args:
        problem: the tasks.
        limits: int [S, C], tasks of each subtopology that a client may hold; None: any number.

    Returns:
        int [M], the client of each task.
    """
    import networkx as nx  # noqa: PLC0415 a quarter of a second, for such groups only

    pools = _pools(problem)
    graph = _graph(problem, pools, limits)
    _, flows = nx.network_simplex(graph)
    return _decode(problem, pools, flows)


def _graph(problem: ExchangeProblem, pools: IntArray, limits: IntArray | None) -> Any:
    import networkx as nx  # noqa: PLC0415 as above

    graph: Any = nx.DiGraph()
    quota = np.bincount(problem.client, minlength=len(problem.rack_of)).tolist()
    for client, count in enumerate(quota):
        if count:
            graph.add_node(("client", client), demand=count)
            _add_client(graph, client, int(problem.rack_of[client]), limits)
    for pool, rows in sorted(_members(pools).items()):
        block = 0 if limits is None else int(problem.block_of[rows[0]])
        weight = problem.weight[problem.class_of[rows[0]]].tolist()
        graph.add_node(("pool", pool), demand=-len(rows))
        places = _places(problem, rows)
        move = problem.overlap if places else 0
        for rack, cost in enumerate(weight):
            graph.add_edge(("pool", pool), ("rack", block, rack), weight=cost + move)
        for client, own in sorted(places.items()):
            # A client with quota 0 keeps no tasks.
            if quota[client]:
                cost = weight[int(problem.rack_of[client])]
                end = ("client", client) if limits is None else ("share", block, client)
                graph.add_edge(("pool", pool), end, weight=cost, capacity=len(own))
    return graph


def _places(problem: ExchangeProblem, rows: list[int]) -> dict[int, list[int]]:
    """Client -> the rows (tasks) that have it as a place."""
    starts, clients = problem.kept.start, problem.kept.client
    places: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        for client in clients[starts[row] : starts[row + 1]].tolist():
            places[client].append(row)
    return places


def _add_client(graph: Any, client: int, rack: int, limits: IntArray | None) -> None:
    """Add arcs from a client's rack to it; with limits, through its share of each subtopology."""
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


def _decode(problem: ExchangeProblem, pools: IntArray, flows: Any) -> IntArray:
    """Int [M], the client of each task by the flows; a client keeps the first of its tasks."""
    placed = np.full(len(pools), NOBODY, dtype=np.int64)
    arrivals: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for pool, rows in sorted(_members(pools).items()):
        flow = sorted(flows[("pool", pool)].items())
        _keep(problem, rows, [(n[-1], count) for n, count in flow if n[0] != "rack"], placed)
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
    problem: ExchangeProblem, rows: list[int], kept: list[tuple[int, int]], placed: IntArray
) -> None:
    places = _places(problem, rows)
    for client, count in kept:
        own = (row for row in places[client] if placed[row] == NOBODY)
        for row in list(islice(own, count)):
            placed[row] = client
