"""Kafka's targets of active tasks: assigned round robin, then balanced over the threads."""

import heapq
from collections.abc import Sequence

import numpy as np

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.racks import KafkaRacks
from assignor.placement.state import BoolArray, FloatArray, GroupState


def assign_stateful(state: GroupState, group: KafkaGroup, racks: KafkaRacks) -> None:
    """Assign the stateful tasks regardless of their state, balance them and optimise racks."""
    for turn, task in enumerate(np.flatnonzero(state.stateful).tolist()):
        group.active[turn % len(group.clients)].add(task)
    balance(group, group.active)
    racks.optimize_active(group, np.flatnonzero(state.stateful).tolist(), is_stateful=True)


def assign_stateless(state: GroupState, group: KafkaGroup, racks: KafkaRacks) -> None:
    """Assign each stateless task to the client with the fewest actives per thread."""
    tasks = np.flatnonzero(~state.stateful).tolist()
    heap = [
        (len(held) / threads, rank)
        for rank, (held, threads) in enumerate(zip(group.active, group.threads, strict=True))
    ]
    heapq.heapify(heap)
    for task in tasks:
        _, rank = heap[0]
        group.active[rank].add(task)
        heapq.heapreplace(heap, (len(group.active[rank]) / group.threads[rank], rank))
    racks.optimize_active(group, tasks, is_stateful=False)


def balance(group: KafkaGroup, held: Sequence[set[int]], allowed: BoolArray | None = None) -> None:
    """Balance tasks over threads: move one task between two clients at a time, until none moves.

    Args:
        group: the clients; loads count active and standby tasks.
        held: the tasks to move, by rank: the active or the standby tasks of all clients; changed.
        allowed: bool [C, C], whether a task may move from rank to rank; None: always.
    """
    ranks = len(group.clients)
    threads = np.array(group.threads, dtype=np.float64)
    counts = np.array([group.count(rank) for rank in range(ranks)], dtype=np.float64)
    keep_going = True
    while keep_going:
        keep_going = False
        for source in range(ranks):
            start = 0
            while start < ranks:
                fits = _should_move(counts, threads, source, start)
                if allowed is not None:
                    fits &= allowed[source, start:]
                if not fits.any():
                    break
                destination = start + int(np.argmax(fits))
                keep_going |= _move(
                    group, held, counts, threads, source=source, destination=destination
                )
                start = destination + 1


def _should_move(
    counts: FloatArray,
    threads: FloatArray,
    source: int,
    start: int,
) -> BoolArray:
    """Bool [C - start]: whether moving one task from `source` to the client improves the balance.

    In floating point, with Java's operations in Java's order: equal loads may differ in a bit.
    """
    others, capacity = counts[start:], threads[start:]
    skew = counts[source] / threads[source] - others / capacity
    proposed = (counts[source] - 1.0) / threads[source] - (others + 1.0) / capacity
    fits: BoolArray = (skew > 0) & (proposed >= 0) & (proposed < skew)
    if source >= start:
        fits[source - start] = False
    return fits


def _move(
    group: KafkaGroup,
    held: Sequence[set[int]],
    counts: FloatArray,
    threads: FloatArray,
    *,
    source: int,
    destination: int,
) -> bool:
    """Move tasks that the destination lacks while that improves the balance; whether any moved."""
    moved = False
    for task in sorted(held[source]):
        if group.has(destination, task):
            continue
        held[source].remove(task)
        held[destination].add(task)
        counts[source] -= 1
        counts[destination] += 1
        moved = True
        if not _should_move(counts, threads, source, destination)[0]:
            break
    return moved
