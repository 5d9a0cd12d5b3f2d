"""A client's tasks, dealt to its threads.

Every thread is one member of the group. Threads end with counts that differ by at most one, of
stateful tasks and of all active tasks, and keep as many of their own tasks as that allows;
O(M log M) for M tasks.
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
    """Deal tasks to threads, sticky and balanced.

    Args:
        tasks: what the client got.
        threads: names of its threads (member ids); not empty when there are tasks.
        owner_by_task: thread that ran a task before; others than `threads` do not count.
        load_by_thread: tasks that each thread holds already, 0 where missing.

    Returns:
        thread -> its tasks, sorted; every thread has an entry.
    """
    names = sorted(threads)
    if len(names) == 1:
        return {names[0]: tuple(_in_order(tasks))}
    load = dict.fromkeys(names, 0) | dict(load_by_thread or {})
    ordered = _in_order(tasks)
    # Places in `ordered` stand for tasks: small numbers compare and hash faster than ids.
    mine: dict[str, list[int]] = {name: [] for name in names}
    rest: list[int] = []
    put: defaultdict[str | None, Callable[[int], None]] = defaultdict(lambda: rest.append)
    put |= {name: own.append for name, own in mine.items()}
    for place, owner in enumerate(map(owner_by_task.get, ordered)):
        put[owner](place)
    quota = _quotas(names, load, {n: len(own) for n, own in mine.items()}, len(ordered))
    for name, own in mine.items():
        rest += own[quota[name] :]
        del own[quota[name] :]
    # Round robin over the open places spreads the tasks of one subtopology over the threads.
    places = iter(sorted(rest))
    room = {name: quota[name] - len(mine[name]) for name in names if quota[name]}
    while room := {name: left for name, left in room.items() if left}:
        for name in room:
            room[name] -= 1
            mine[name].append(next(places))
    return {name: _taken(ordered, sorted(own)) for name, own in mine.items()}


def assign_actives(
    stateful: Iterable[TaskId],
    stateless: Iterable[TaskId],
    *,
    threads: Sequence[str],
    owner_by_task: Mapping[TaskId, str],
) -> dict[str, tuple[TaskId, ...]]:
    """Deal a client's active tasks to its threads: state is level, and so is all that they run.

    Args:
        stateful: the client's active tasks with state.
        stateless: its other active tasks.
        threads: names of its threads (member ids); not empty when there are tasks.
        owner_by_task: thread that ran a task before; others than `threads` do not count.

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
    """The tasks at these places; several are picked at once."""
    if len(places) > 1:
        picked: tuple[TaskId, ...] = itemgetter(*places)(ordered)
        return picked
    return tuple([ordered[place] for place in places])


def _in_order(tasks: Iterable[TaskId]) -> list[TaskId]:
    """The tasks by subtopology, partition and name, each once; numbers sort faster than tuples."""
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
    """Tasks to give each thread so that load + quota is level; spare ones go where more is held."""
    quota = dict.fromkeys(names, 0)
    if not names:
        return quota
    level, spare = _level([load[name] for name in names], total)
    for name in names:
        quota[name] = max(0, level - load[name])
    # One more for those that can keep one more by it, then by name.
    open_to_more = [n for n in names if load[n] + quota[n] == level]
    for name in sorted(open_to_more, key=lambda n: (held[n] <= quota[n], n))[:spare]:
        quota[name] += 1
    return quota


def _level(loads: Sequence[int], total: int) -> tuple[int, int]:
    """The height to which `total` units fill up the loads, and how many are left over."""
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
