"""Classes of tasks over racks: a transport problem whose size does not depend on tasks or clients.

Kafka's graph has an edge for every task and client. Apart from the present client of a task, its
costs depend only on the task's class and the client's rack, and every client keeps its count. So
only the number of tasks of each class in each rack matters: x[k, r]. Tasks that stay cost no move,
each one that arrives does. The optimum is the same, by an exchange argument: a task that leaves a
rack frees exactly one place there, and all places of a rack cost the same.

There are two solvers with equal costs: negative cycles on the graph of racks, where the arc a -> b
is the cheapest class to move from a to b; and networkx for many classes.
"""

from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np

from assignor.placement.state import IntArray

# With more classes networkx is faster.
MANY_CLASSES = 100
# Larger than any possible total cost, and small enough to be added without overflow.
FORBIDDEN = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transport:
    """A transport problem over K classes of tasks and R racks.

    Attributes:
        start: int [K, R], a feasible placement; its row and column sums are kept.
        cost: int [K, R], cost of a task of the class in the rack, at most `FORBIDDEN`.
        kept: int [K, R], tasks of the class that cost no move in the rack.
        move: int [K], additional cost of each task beyond `kept`, >= 0.
    """

    start: IntArray
    cost: IntArray
    kept: IntArray
    move: IntArray

    def total(self, x: IntArray) -> int:
        """Cost of the placement x, int [K, R]."""
        moved = np.maximum(x - self.kept, 0)
        return int((self.cost * x).sum() + (self.move[:, None] * moved).sum())


def solve_transport(problem: Transport) -> IntArray:
    """A placement of least cost with the row and column sums of `problem.start`; exact.

    Returns:
        int [K, R].
    """
    if problem.start.shape[1] < 2:  # noqa: PLR2004 one rack: nothing can be exchanged
        return problem.start.copy()
    if len(problem.start) > MANY_CLASSES:
        return solve_with_networkx(problem)
    return cancel_cycles(problem)


def cancel_cycles(problem: Transport) -> IntArray:
    """The result of `solve_transport`, by negative-cycle cancelling on the graph of racks.

    Each round examines R x R arcs and moves as many tasks as have the same price. The number of
    rounds grows with classes x racks, and hardly with tasks.
    """
    x, kept = problem.start.copy(), problem.kept
    stays, moves = problem.cost, problem.cost + problem.move[:, None]
    while True:
        dearer = np.where(x >= kept, moves, stays)
        saved = np.where(x > 0, np.where(x > kept, moves, stays), -4 * FORBIDDEN)
        steps = dearer[:, None, :] - saved[:, :, None]
        best = np.argmin(steps, axis=0)
        cycle = _negative_cycle(steps.min(axis=0))
        if not cycle:
            return x
        hops = [(int(best[a, b]), a, b) for a, b in cycle]
        amount = min(_movable(problem, x, *hop) for hop in hops)
        for k, a, b in hops:
            x[k, a] -= amount
            x[k, b] += amount


def _movable(problem: Transport, x: IntArray, k: int, a: int, b: int) -> int:
    """Number of tasks of class k that may move from rack a to rack b at the same price."""
    here, kept = int(x[k, a]), int(problem.kept[k, a])
    leaving = here - kept if here > kept else here
    until_kept = int(problem.kept[k, b] - x[k, b])
    return min(leaving, until_kept) if until_kept > 0 else leaving


def _negative_cycle(arcs: IntArray) -> list[tuple[int, int]]:
    """The arcs of a cycle of negative cost; [] if there is none (Bellman-Ford from all racks)."""
    # There are few racks: plain numbers are faster than arrays.
    into = arcs.T.tolist()
    racks = range(len(into))
    distance, parent = [0] * len(into), [-1] * len(into)
    node = -1
    for _ in racks:
        node, before = -1, distance.copy()
        for b in racks:
            offers = list(map(add, before, into[b]))
            nearest = min(offers)
            if nearest < before[b]:
                distance[b], parent[b] = nearest, offers.index(nearest)
                node = b if node < 0 else node
        if node < 0:
            return []
    for _ in racks:
        node = parent[node]
    cycle, at = [], node
    while True:
        came = parent[at]
        cycle.append((came, at))
        at = came
        if at == node:
            return cycle


def solve_with_networkx(problem: Transport) -> IntArray:
    """The result of `solve_transport`, by network simplex.

    There is a keep arc and a move arc for each class and rack.
    """
    import networkx as nx  # noqa: PLC0415 a quarter of a second, for large instances only

    graph: Any = nx.MultiDiGraph()
    rows, columns = problem.start.sum(axis=1).tolist(), problem.start.sum(axis=0).tolist()
    for k, count in enumerate(rows):
        graph.add_node(("class", k), demand=-count)
    for r, count in enumerate(columns):
        graph.add_node(("rack", r), demand=count)
    for k, count in enumerate(rows):
        for r in range(len(columns)):
            cost, kept = int(problem.cost[k, r]), int(problem.kept[k, r])
            ends = (("class", k), ("rack", r))
            if kept:
                graph.add_edge(*ends, key="keep", capacity=kept, weight=cost)
            if kept < count:
                graph.add_edge(*ends, key="move", weight=cost + int(problem.move[k]))
    _, flows = nx.network_simplex(graph)
    x = np.zeros_like(problem.start)
    for k in range(len(rows)):
        for (_, r), parts in flows[("class", k)].items():
            x[k, r] = sum(parts.values())
    return x
