"""Movements from the clients with state to the target: swaps, other clients, warm-ups (KIP-441)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.java_collections import JavaQueue
from assignor.placement.jvm.lags import KafkaLags


@dataclass(slots=True, kw_only=True)
class Warmups:
    """The warm-ups of a rebalance; max.warmup.replicas limits them in the whole group.

    Attributes:
        left: number of warm-ups that may still be started.
        pairs: (task, rank) of those started.
    """

    left: int
    pairs: set[tuple[int, int]] = field(default_factory=set)

    def start(self, task: int, rank: int) -> bool:
        """Start a warm-up if one is left; whether it was started."""
        if self.left <= 0:
            return False
        self.left -= 1
        self.pairs.add((task, rank))
        return True


@dataclass(slots=True, kw_only=True)
class _Move:
    task: int
    destination: int
    caught_up: list[int]


def _queue(
    group: KafkaGroup, lags: KafkaLags, held: list[set[int]], passed: set[tuple[int, int]]
) -> "JavaQueue[_Move]":
    """Copies that are not caught up while another client has a smaller lag, as moves.

    Tasks with the fewest caught-up clients come first, then by task.

    Args:
        group: the clients.
        lags: their lags.
        held: tasks of each client, by rank: the active or the standby tasks.
        passed: (task, rank) pairs to leave out.
    """
    queue: JavaQueue[_Move] = JavaQueue()
    for rank in range(len(group.clients)):
        for task in sorted(held[rank]):
            if (task, rank) not in passed and lags.is_outdone(task, rank):
                ready = lags.caught_up(task)
                move = _Move(task=task, destination=rank, caught_up=ready)
                queue.offer((len(ready), task), move)
    return queue


def _least_loaded(group: KafkaGroup, ranks: list[int], is_fit: Callable[[int], bool]) -> int | None:
    fit = [(group.load(rank), rank) for rank in ranks if is_fit(rank)]
    return min(fit)[1] if fit else None


def move_actives(group: KafkaGroup, lags: KafkaLags, warmups: Warmups) -> int:
    """Start actives on the clients with the smallest lag, with warm-ups on their targets.

    Returns how many movements there were.
    """
    queue = _queue(group, lags, group.active, set())
    count = len(queue)
    while queue:
        _move_active(group, lags, warmups, queue.poll())
    return count


def _move_active(group: KafkaGroup, lags: KafkaLags, warmups: Warmups, move: _Move) -> None:
    task, destination = move.task, move.destination
    source = _least_loaded(group, move.caught_up, lambda rank: task in group.standby[rank])
    if source is not None:
        group.swap(task, standby=source, active=destination)
        return
    source = _least_loaded(group, move.caught_up, lambda _rank: True)
    if source is None:
        source = lags.nearer(task, destination, lambda _rank: True)
        if source is None:
            return
        if task in group.standby[source]:
            group.swap(task, standby=source, active=destination)
            return
    group.active[source].add(task)
    group.active[destination].remove(task)
    if warmups.start(task, destination):
        group.standby[destination].add(task)


def move_standbys(group: KafkaGroup, lags: KafkaLags, warmups: Warmups) -> int:
    """Start standbys on the clients with the smallest lag, with warm-ups on their targets.

    A standby for which there is no better client stays. Returns how many moved.
    """
    queue = _queue(group, lags, group.standby, set(warmups.pairs))
    count = 0
    while queue:
        move = queue.poll()
        task = move.task

        def is_fit(rank: int, task: int = task) -> bool:
            return not group.has(rank, task)

        source = _least_loaded(group, move.caught_up, is_fit)
        if source is None:
            source = lags.nearer(task, move.destination, is_fit)
        if source is None:
            continue
        count += 1
        group.standby[source].add(task)
        if not warmups.start(task, move.destination):
            group.standby[move.destination].remove(task)
    return count
