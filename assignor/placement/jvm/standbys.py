"""Kafka's placement of standbys: by load alone, or spread over client tags (KIP-708)."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.java_collections import hash_map_order
from assignor.placement.jvm.racks import KafkaRacks
from assignor.placement.jvm.targets import balance
from assignor.placement.state import BoolArray, GroupState

_NAMED = 3


def assign_standbys(state: GroupState, group: KafkaGroup, racks: KafkaRacks) -> tuple[str, ...]:
    """Place the standbys, balance them and optimise racks.

    Returns:
        Warnings about standbys that could not be placed, or not apart.
    """
    wanted = state.config.num_standby_replicas
    if wanted == 0:
        return ()
    tasks = np.flatnonzero(state.stateful).tolist()
    if not state.config.rack_aware_assignment_tags:
        short = _fill(group, dict.fromkeys(tasks, wanted))
        balance(group, group.standby)
        racks.optimize_standbys(group, lambda _source, _destination, _task: True)
        return _too_few(state, short)
    left, warnings = _spread(state, group, tasks)
    short = _fill(group, left)
    balance(group, group.standby, _same_tags(group))
    racks.optimize_standbys(group, _keeps_tags(group))
    return (*warnings, *_too_few(state, short))


def _fill(group: KafkaGroup, wanted: Mapping[int, int]) -> dict[int, int]:
    """Add each copy to the least loaded client without the task; task -> copies without one."""
    short = {}
    heap = [(group.load(rank), rank) for rank in range(len(group.clients))]
    heapq.heapify(heap)
    for task, count in wanted.items():
        for done in range(count):
            rank = _poll(heap, lambda rank, task=task: not group.has(rank, task))  # type: ignore[misc]  # mypy cannot infer a lambda's default
            if rank is None:
                short[task] = count - done
                break
            group.standby[rank].add(task)
            heapq.heappush(heap, (group.load(rank), rank))
    return short


def _poll(heap: list[tuple[float, int]], is_fit: Callable[[int], bool]) -> int | None:
    """Remove the first fit client from the heap and return it; None if there is none."""
    passed = []
    found = None
    while heap:
        entry = heapq.heappop(heap)
        if is_fit(entry[1]):
            found = entry[1]
            break
        passed.append(entry)
    for entry in passed:
        heapq.heappush(heap, entry)
    return found


def _too_few(state: GroupState, short: Mapping[int, int]) -> tuple[str, ...]:
    if not short:
        return ()
    names = ", ".join(str(state.tasks[task]) for task in sorted(short)[:_NAMED])
    more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
    warning = (
        f"{sum(short.values())} standby tasks cannot be placed, since every client has a copy of "
        f"the task already ({names}{more}); start more clients"
    )
    return (warning,)


@dataclass(slots=True, kw_only=True)
class _UsedTags:
    """The tag values that the copies of one task already use.

    A key is ignored once it has no more values than clients are used.
    """

    keys: frozenset[str]
    values: Mapping[str, set[str]]
    used: dict[str, set[str]] = field(default_factory=dict)
    clients: int = 0

    def add(self, tags: Mapping[str, str]) -> None:
        self.clients += 1
        for key, value in tags.items():
            if key not in self.keys:
                continue
            if len(self.values[key]) <= self.clients:
                self.used.pop(key, None)
            else:
                self.used.setdefault(key, set()).add(value)

    def is_free(self, tags: Mapping[str, str]) -> bool:
        return not any(tags.get(key) in values for key, values in self.used.items())


def _spread(
    state: GroupState, group: KafkaGroup, tasks: list[int]
) -> tuple[dict[int, int], tuple[str, ...]]:
    """Add standbys to clients that differ in every tag key.

    Returns:
        Task -> copies without such a client, in the order in which they are placed later, and a
        warning about them. The order is that of a Java HashMap of task ids, as in Kafka.
    """
    wanted = state.config.num_standby_replicas
    keys = frozenset(state.config.rack_aware_assignment_tags)
    values: dict[str, set[str]] = {}
    for tags in group.tags:
        for key, value in tags.items():
            values.setdefault(key, set()).add(value)
    owner = {task: rank for rank, held in enumerate(group.active) for task in held}
    heap = [(group.load(rank), rank) for rank in range(len(group.clients))]
    heapq.heapify(heap)
    left: dict[int, int] = {}
    for task in tasks:
        used = _UsedTags(keys=keys, values=values)
        used.add(group.tags[owner[task]])
        chosen: list[int] = []
        while len(chosen) < wanted:
            rank = _poll(
                heap,
                lambda rank, task=task, used=used: (  # type: ignore[misc]  # mypy cannot infer a lambda's default
                    not group.has(rank, task) and used.is_free(group.tags[rank])
                ),
            )
            if rank is None:
                left[task] = wanted - len(chosen)
                break
            group.standby[rank].add(task)
            chosen.append(rank)
            used.add(group.tags[rank])
        # The chosen clients go back into the queue only for the next task.
        for rank in chosen:
            heapq.heappush(heap, (group.load(rank), rank))
    order = hash_map_order([state.tasks[task] for task in tasks])
    ordered = {tasks[place]: left[tasks[place]] for place in order if tasks[place] in left}
    return ordered, _not_apart(state, left)


def _not_apart(state: GroupState, left: Mapping[int, int]) -> tuple[str, ...]:
    if not left:
        return ()
    names = ", ".join(str(state.tasks[task]) for task in sorted(left)[:_NAMED])
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    keys = ", ".join(state.config.rack_aware_assignment_tags)
    warning = (
        f"{sum(left.values())} standby tasks ({names}{more}) have no client that differs in every "
        f"tag ({keys}) and go to the least loaded client; start clients with other tag values"
    )
    return (warning,)


def _same_tags(group: KafkaGroup) -> BoolArray:
    """Bool [C, C]: whether the destination (column) has all tags of the source with its values."""
    allowed = np.zeros((len(group.tags), len(group.tags)), dtype=np.bool_)
    rows: dict[tuple[tuple[str, str], ...], BoolArray] = {}
    for rank, tags in enumerate(group.tags):
        key = tuple(sorted(tags.items()))
        if key not in rows:
            rows[key] = np.array(
                [all(other.get(k) == v for k, v in key) for other in group.tags], dtype=np.bool_
            )
        allowed[rank] = rows[key]
    return allowed


def _keeps_tags(group: KafkaGroup) -> Callable[[int, int, int], bool]:
    """A check whether a standby's move leaves at least as many different tags among its clients."""
    tags = [frozenset(own.items()) for own in group.tags]

    def is_allowed(source: int, destination: int, task: int) -> bool:
        others: set[tuple[str, str]] = set()
        for rank in range(len(tags)):
            if rank not in (source, destination) and group.has(rank, task):
                others |= tags[rank]
        return len(others | tags[destination]) >= len(others | tags[source])

    return is_allowed
