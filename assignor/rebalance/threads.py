"""Distribute a client's tasks over its threads.

Every thread is a member of the group. The threads' counts of stateful tasks, and of all active
tasks, differ by at most one; threads keep as many of their own tasks as that allows. O(M log M) for
M tasks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import eq, itemgetter

from encoding import TaskId

_SUBTOPOLOGY, _PARTITION, _NAME = itemgetter(0), itemgetter(1), itemgetter(2)


def assign_threads(
    tasks: Iterable[TaskId],
    *,
    threads: Sequence[str],
    owner_by_task: Mapping[TaskId, str],
    load_by_thread: Mapping[str, int] | None = None,
) -> dict[str, tuple[TaskId, ...]]:
    """Distribute tasks over threads, sticky and balanced.

    Args:
        tasks: what the client got.
        threads: names of its threads (member ids); not empty when there are tasks.
        owner_by_task: thread that ran a task before; names outside `threads` are ignored.
        load_by_thread: number of tasks that each thread has already, 0 if missing.

    Returns:
        thread -> its tasks, sorted; every thread has an entry.
    """
    names = sorted(threads)
    if len(names) == 1:
        return {names[0]: tuple(_in_order(tasks))}
    load = dict.fromkeys(names, 0) | dict(load_by_thread or {})
    ordered = _in_order(tasks)
    # Places in `ordered` stand for tasks: small numbers compare and hash faster than ids.
    own_places: dict[str, list[int]] = {name: [] for name in names}
    rest: list[int] = []
    put: defaultdict[str | None, Callable[[int], None]] = defaultdict(lambda: rest.append)
    put |= {name: own.append for name, own in own_places.items()}
    for place, owner in enumerate(map(owner_by_task.get, ordered)):
        put[owner](place)
    quota = _quotas(names, load, {n: len(own) for n, own in own_places.items()}, len(ordered))
    for name, own in own_places.items():
        rest += own[quota[name] :]
        del own[quota[name] :]
    # Round robin over the free quotas spreads the tasks of a subtopology over the threads.
    places = iter(sorted(rest))
    free = {name: quota[name] - len(own_places[name]) for name in names if quota[name]}
    while free := {name: count for name, count in free.items() if count}:
        for name in free:
            free[name] -= 1
            own_places[name].append(next(places))
    return {name: _taken(ordered, sorted(own)) for name, own in own_places.items()}


def assign_actives(
    stateful: Iterable[TaskId],
    stateless: Iterable[TaskId],
    *,
    threads: Sequence[str],
    owner_by_task: Mapping[TaskId, str],
) -> dict[str, tuple[TaskId, ...]]:
    """Distribute a client's active tasks: stateful tasks are balanced, and so are all tasks.

    Args:
        stateful: the client's active tasks with state.
        stateless: its other active tasks.
        threads: names of its threads (member ids); not empty when there are tasks.
        owner_by_task: thread that ran a task before; names outside `threads` are ignored.

    Returns:
        thread -> its tasks, sorted; every thread has an entry.
    """
    dealt = assign_threads(stateful, threads=threads, owner_by_task=owner_by_task)
    others = list(stateless)
    if not others:
        return dealt
    load = {name: len(tasks) for name, tasks in dealt.items()}
    rest = assign_threads(others, threads=threads, owner_by_task=owner_by_task, load_by_thread=load)
    return {name: tuple(_in_order([*tasks, *rest[name]])) for name, tasks in dealt.items()}


def _taken(ordered: Sequence[TaskId], places: Sequence[int]) -> tuple[TaskId, ...]:
    """The tasks at these positions."""
    if len(places) > 1:
        picked: tuple[TaskId, ...] = itemgetter(*places)(ordered)
        return picked
    return tuple([ordered[place] for place in places])


def _in_order(tasks: Iterable[TaskId]) -> list[TaskId]:
    """The tasks by subtopology, partition and name, without repeats."""
    ordered = list(tasks)
    if any(map(_NAME, ordered)):
        ordered.sort(key=lambda task: task.topology_name or "")
    ordered.sort(key=_PARTITION)
    ordered.sort(key=_SUBTOPOLOGY)
    has_doubles = any(map(eq, ordered, islice(ordered, 1, None)))
    return list(dict.fromkeys(ordered)) if has_doubles else ordered


def _quotas(
    names: Sequence[str], load: Mapping[str, int], held: Mapping[str, int], total: int
) -> dict[str, int]:
    """Tasks for each thread so that load + quota is balanced; a rest follows `held`."""
    quota = dict.fromkeys(names, 0)
    if not names:
        return quota
    level, spare = _level([load[name] for name in names], total)
    for name in names:
        quota[name] = max(0, level - load[name])
    # The rest goes first to threads that can then keep another of their tasks, then by name.
    open_to_more = [n for n in names if load[n] + quota[n] == level]
    for name in sorted(open_to_more, key=lambda n: (held[n] <= quota[n], n))[:spare]:
        quota[name] += 1
    return quota


def _level(loads: Sequence[int], total: int) -> tuple[int, int]:
    """The level to which `total` units fill up the loads, and the remaining units."""
    ascending = sorted(loads)
    filled, used, count = ascending[0], 0, 1
    for count, following in enumerate(ascending[1:], start=1):
        step = (following - filled) * count
        if used + step > total:
            break
        used += step
        filled = following
    else:
        count = len(ascending)
    extra, spare = divmod(total - used, count)
    return filled + extra, spare
