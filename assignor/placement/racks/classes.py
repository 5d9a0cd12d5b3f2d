"""Placements of tasks by class and rack: their costs, and their conversion to tasks and clients."""

from dataclasses import dataclass

import numpy as np

from assignor.placement.racks.graph import Transport, solve_transport
from assignor.placement.racks.kept_places import KeptPlaces
from assignor.placement.state import IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangeProblem:
    """Tasks that may be exchanged between clients of different racks, and the costs.

    Attributes:
        client: int [M], the client of each task before the exchange; every client keeps its count.
        kept: the places of each task, on which it costs no move.
        class_of: int [M], the class of each task.
        weight: int [K, R], cost of one task of the class in the rack.
        rack_of: int [C], the rack of each client.
        overlap: cost of a task that has places and is on none of them, >= 0.
        block_of: int [M], the subtopology of each task as 0, 1, ...
    """

    client: IntArray
    kept: KeptPlaces
    class_of: IntArray
    weight: IntArray
    rack_of: IntArray
    overlap: int
    block_of: IntArray

    def cost(self, client: IntArray) -> int:
        """Cost of traffic and moves with each task on `client`, int [M]."""
        traffic = int(self.weight[self.class_of, self.rack_of[client]].sum())
        moved = (self.kept.count() > 0) & ~self.kept.includes(client)
        return traffic + self.overlap * int(moved.sum())


def exchange(problem: ExchangeProblem, group_of: IntArray) -> IntArray:
    """Exchange tasks between racks at the least cost, separately in each group of tasks.

    Every client keeps its number of tasks of each group, so with subtopologies as groups no
    subtopology gets less balanced. The result is exact if every task with places has exactly one
    and is on it now: then the class determines the cost of a move. Otherwise it is close to the
    optimum (within 5 % where measured, with one place per task): tasks that are on none of their
    places count as free to move, and each task that changes racks counts as one that leaves its
    places.

    Args:
        problem: the tasks.
        group_of: int [M], the group of each task as 0, 1, ...

    Returns:
        int [M], the client of each task.
    """
    client = problem.client.copy()
    stays = problem.kept.includes(problem.client)
    for group in range(int(group_of.max(initial=-1)) + 1):
        rows = np.flatnonzero(group_of == group)
        kinds = problem.class_of[rows] * 2 + stays[rows]
        names, kind = np.unique(kinds, return_inverse=True)
        kind = kind.reshape(-1).astype(np.int64)
        racks = problem.weight.shape[1]
        rack = problem.rack_of[problem.client[rows]]
        now = np.bincount(kind * racks + rack, minlength=len(names) * racks)
        now = now.reshape(-1, racks).astype(np.int64)
        transport = Transport(
            start=now,
            cost=problem.weight[names // 2],
            kept=now,
            move=problem.overlap * (names % 2),
        )
        wanted = solve_transport(transport)
        client[rows] = decode(kind, rack, problem.client[rows], now, wanted)
    return client


def decode(
    kind: IntArray, rack: IntArray, client: IntArray, now: IntArray, wanted: IntArray
) -> IntArray:
    """Clients for the tasks such that `wanted` of each kind are in each rack; O(M log M).

    A task that leaves a rack frees its client, and a task that arrives takes a client that was
    freed there; all others stay. Of each kind in a rack the last tasks leave.

    Args:
        kind: int [M], the kind of each task.
        rack: int [M], its present rack.
        client: int [M], its present client.
        now: int [K, R], present number of tasks of each kind in each rack.
        wanted: int [K, R], wanted number, with the same row and column sums.

    Returns:
        int [M], the client of each task.
    """
    racks = now.shape[1]
    cell = kind * racks + rack
    order = np.argsort(cell, kind="stable")
    sizes = now.reshape(-1)
    ends = np.repeat(np.cumsum(sizes), sizes)
    surplus = np.maximum(now - wanted, 0).reshape(-1)
    # Sorted by cell, the last `surplus` tasks of each cell leave, kind by kind.
    leaving = order[ends - np.arange(len(order)) <= np.repeat(surplus, sizes)]
    missing = np.maximum(wanted - now, 0)
    arriving = np.repeat(np.tile(np.arange(racks), len(now)), missing.reshape(-1))
    freed = leaving[np.argsort(rack[leaving], kind="stable")]
    placed = client.copy()
    placed[leaving[np.argsort(arriving, kind="stable")]] = client[freed]
    return placed


def lower_bound(problem: ExchangeProblem) -> int:
    """A lower bound for the cost of any placement with these counts per client.

    It assumes that every task with a place in a rack can be kept there.
    """
    kinds = problem.class_of * 2 + (problem.kept.count() > 0)
    names, kind = np.unique(kinds, return_inverse=True)
    kind = kind.reshape(-1)
    racks = problem.weight.shape[1]
    size = len(names) * racks
    now = np.bincount(kind * racks + problem.rack_of[problem.client], minlength=size)
    # A task with two places in a rack counts once.
    places = np.unique(problem.kept.row() * racks + problem.rack_of[problem.kept.client])
    kept = np.bincount(kind[places // racks] * racks + places % racks, minlength=size)
    transport = Transport(
        start=now.reshape(-1, racks).astype(np.int64),
        cost=problem.weight[names // 2],
        kept=kept.reshape(-1, racks).astype(np.int64),
        move=problem.overlap * (names % 2),
    )
    return transport.total(solve_transport(transport))
