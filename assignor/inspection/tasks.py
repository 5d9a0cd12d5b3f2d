"""The tasks of a group, with owners, inputs and lags, derived from assignments and offsets.

Members send no topology. In Kafka's layouts the n-th task id belongs to the n-th partition, so
assignments show which subtopology reads which topic. Native assignments have task ids only; there
the partition numbers decide if they can. Changelogs are in no assignment: they are found by name
and number of partitions. What is ambiguous stays unknown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from assignor.inspection.values import (
    NO_OFFSET,
    ClientLook,
    ClusterFacts,
    GroupInspection,
    MemberLook,
    Shape,
    TaskLook,
)
from encoding import RUNNING, TaskId, TopicPartition, task_order

CHANGELOG: Final = "-changelog"
_REPARTITION: Final = "-repartition"
_INTERNAL: Final = re.compile(
    rf"({CHANGELOG}|{_REPARTITION}|-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
    "|-subscription-(registration|response)-topic)$"
)
_UNSEEN_MOST: Final = 1000
"""Most tasks of a subtopology that are assumed to exist although no member has them."""


def stateful_subtopologies(look: GroupInspection) -> set[int]:
    """Subtopologies with state: with a changelog, a standby, or offsets reported by a member."""
    copies = {entry.task.subtopology for entry in look.tasks if entry.standbys}
    reported = {
        task.subtopology
        for member in look.members
        for task, total in member.sums
        if total != RUNNING
    }
    return copies | reported | set(look.shape.changelogs)


def is_changelog(topic: str) -> bool:
    """Whether a topic has the name of a changelog."""
    return topic.endswith(CHANGELOG)


def is_internal(topic: str, group_id: str) -> bool:
    """Whether a topic has the name of an internal topic of Kafka Streams, of this group."""
    return topic.startswith(f"{group_id}-") and bool(_INTERNAL.search(topic))


def groups_below(groups: Iterable[str], application_id: str) -> list[str]:
    """Return the groups whose internal topics begin as those of an application do.

    >>> groups_below(["app", "app-2", "apple"], "app")
    ['app-2']
    """
    return sorted(group for group in groups if group.startswith(f"{application_id}-"))


def topics_of_group(
    names: Iterable[str], group_id: str, read: Iterable[str], others: Iterable[str] = ()
) -> set[str]:
    """Topics of a group: those that its members read, and its internal topics.

    Args:
        names: of all topics.
        group_id: of the group.
        read: topics that its members read.
        others: ids of other groups; `app-2-x-changelog` is not of group `app` if there is `app-2`.
    """
    own = set(read)
    longer = tuple(f"{other}-" for other in groups_below(others, group_id))
    return {
        name
        for name in names
        if name in own or (is_internal(name, group_id) and not name.startswith(longer))
    }


def look_at_shape(members: Sequence[MemberLook], facts: ClusterFacts) -> Shape:
    """The topology as far as assignments and topic names show it; empty for named topologies."""
    if any(task.topology_name for member in members for task in member.answer.active):
        topics = {partition.topic for member in members for partition in member.answer.partitions}
        return Shape(sources={}, changelogs={}, loose_topics=tuple(sorted(topics)))
    sources, loose = _sources(members)
    changelogs, unowned = _changelogs(members, facts, sources)
    return Shape(
        sources={number: tuple(sorted(topics)) for number, topics in sorted(sources.items())},
        changelogs={number: tuple(sorted(names)) for number, names in sorted(changelogs.items())},
        loose_topics=tuple(sorted(loose)),
        loose_changelogs=tuple(sorted(unowned)),
    )


def _sources(members: Sequence[MemberLook]) -> tuple[dict[int, set[str]], set[str]]:
    """Topics of each subtopology, and topics whose subtopology is unknown."""
    found: dict[int, set[str]] = {}
    candidates: dict[str, set[int]] = {}
    for member in members:
        answer = member.answer
        for subtopology, topics in answer.topics_of.items():
            found.setdefault(subtopology, set()).update(topics)
        for topic, partition in answer.partitions if answer.active else ():
            # A task has the number of the partitions that it reads.
            readers = {task.subtopology for task in answer.active if task.partition == partition}
            if any(topic in answer.topics_of.get(number, ()) for number in readers):
                continue
            known = candidates.get(topic)
            candidates[topic] = readers if known is None else known & readers
    for number, certain in found.items():
        for topic in certain:
            # Another form of the subtopology may read the topic, too.
            if number in candidates.get(topic, ()):
                del candidates[topic]
    loose = _settled_by_exclusion(candidates, found)
    return found, loose


def _settled_by_exclusion(
    candidates: Mapping[str, set[int]], found: dict[int, set[str]]
) -> set[str]:
    """Add topics with a single possible reader; each subtopology must read at least one topic."""
    left = {topic: set(readers) for topic, readers in candidates.items()}
    is_moving = True
    while is_moving:
        is_moving = False
        bare = {number for readers in left.values() for number in readers} - found.keys()
        for topic, readers in sorted(left.items()):
            only = [number for number in bare if _readers_of(left, number) == [topic]]
            settled = only if len(only) == 1 else sorted(readers)
            if len(settled) == 1:
                found.setdefault(settled[0], set()).add(topic)
                del left[topic]
                is_moving = True
                break
    return set(left)


def _readers_of(left: Mapping[str, set[int]], number: int) -> list[str]:
    return [topic for topic, readers in sorted(left.items()) if number in readers]


def _changelogs(
    members: Sequence[MemberLook], facts: ClusterFacts, sources: Mapping[int, set[str]]
) -> tuple[dict[int, set[str]], set[str]]:
    """Changelogs of each subtopology, and changelogs whose subtopology is unknown."""
    stateful = _stateful(members)
    sizes = _sizes(members, facts, sources)
    found: dict[int, set[str]] = {}
    left = {name for name in facts.topics if is_changelog(name)}
    for name in sorted(left):
        twin = f"{name.removesuffix(CHANGELOG)}{_REPARTITION}"
        owner = [number for number, topics in sources.items() if twin in topics]
        if len(owner) == 1:
            found.setdefault(owner[0], set()).add(name)
    left -= {name for names in found.values() for name in names}
    for name in sorted(left):
        partitions = facts.topics[name].partitions
        fitting = [number for number, size in sizes.items() if size == partitions]
        # If only one subtopology with reported state has no changelog yet, it gets this one.
        bare = [number for number in fitting if number in stateful - found.keys()]
        likely = bare if len(bare) == 1 and len(left) == 1 else fitting
        if len(likely) == 1:
            found.setdefault(likely[0], set()).add(name)
    return found, left - {name for names in found.values() for name in names}


def _stateful(members: Sequence[MemberLook]) -> set[int]:
    """Subtopologies with state: a member has a standby, or reports offsets."""
    found = set()
    for member in members:
        found |= {task.subtopology for task in member.answer.standby}
        found |= {task.subtopology for task, offset in member.sums if offset != RUNNING}
        found |= {task.subtopology for task, _ in member.end_sums}
    return found


def _sizes(
    members: Sequence[MemberLook], facts: ClusterFacts, sources: Mapping[int, set[str]]
) -> dict[int, int]:
    """Number of tasks of each subtopology: most partitions of its topics, else the highest task.

    If the highest task is far above the number of seen tasks, the size is the number of seen tasks.
    """
    seen: dict[int, set[int]] = {}
    for member in members:
        for task in (*member.answer.active, *member.answer.standby):
            seen.setdefault(task.subtopology, set()).add(task.partition)
    sizes = {}
    for number in sorted(seen.keys() | sources.keys()):
        topics = sources.get(number, set())
        known = [facts.topics[topic].partitions for topic in topics if topic in facts.topics]
        numbers = seen.get(number, set())
        highest = max(numbers, default=-1)
        is_likely = highest < len(numbers) + _UNSEEN_MOST
        sizes[number] = max(known) if known else highest + 1 if is_likely else len(numbers)
    return sizes


def look_at_tasks(
    members: Sequence[MemberLook], shape: Shape, facts: ClusterFacts
) -> tuple[TaskLook, ...]:
    """All tasks that members have or that must exist, sorted."""
    owners: dict[TaskId, set[str]] = {}
    standbys: dict[TaskId, set[str]] = {}
    for member in members:
        for task in member.answer.active:
            owners.setdefault(task, set()).add(member.process)
        for task in member.answer.standby:
            standbys.setdefault(task, set()).add(member.process)
    wanted = owners.keys() | standbys.keys()
    has_names = any(task.topology_name for task in wanted)
    if not has_names:
        sizes = _sizes(members, facts, {n: set(topics) for n, topics in shape.sources.items()})
        wanted |= _unseen(sizes, shape.sources, wanted)
    ends = _own_ends(members)
    found = []
    for task in sorted(wanted, key=task_order):
        inputs = _partitions(shape.sources, task, facts)
        logs = _partitions(shape.changelogs, task, facts)
        found.append(
            TaskLook(
                task=task,
                inputs=inputs,
                owners=tuple(sorted(owners.get(task, ()))),
                standbys=tuple(sorted(standbys.get(task, ()))),
                lag=input_lag(inputs, facts),
                end_sum=_end_sum(logs, facts, ends.get(task)),
            )
        )
    return tuple(found)


def _unseen(
    sizes: Mapping[int, int], sources: Mapping[int, tuple[str, ...]], seen: Iterable[TaskId]
) -> set[TaskId]:
    """Tasks that must exist; a partition runs in one form of a subtopology only."""
    numbers_of: dict[str, list[int]] = {}
    for number, topics in sources.items():
        for topic in topics:
            numbers_of.setdefault(topic, []).append(number)
    running: dict[int, set[int]] = {}
    for task in seen:
        running.setdefault(task.subtopology, set()).add(task.partition)
    found = set()
    for number, size in sizes.items():
        forms = {other for topic in sources.get(number, ()) for other in numbers_of[topic]}
        elsewhere = set().union(*(running.get(other, ()) for other in forms - {number}))
        found |= {TaskId(number, p) for p in range(size) if p not in elsewhere}
    return found


def _partitions(
    topics_of: Mapping[int, tuple[str, ...]], task: TaskId, facts: ClusterFacts
) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic, task.partition)
        for topic in topics_of.get(task.subtopology, ())
        if topic not in facts.topics or task.partition < facts.topics[topic].partitions
    )


def _own_ends(members: Sequence[MemberLook]) -> dict[TaskId, int]:
    """End offset sums of changelogs, reported by native members for the tasks that they run."""
    return {task: end for member in members for task, end in member.end_sums if end >= 0}


def _end_sum(logs: Sequence[TopicPartition], facts: ClusterFacts, own: int | None) -> int | None:
    ends = [facts.end_offsets[log] for log in logs if log in facts.end_offsets]
    return sum(ends) if logs and len(ends) == len(logs) else own


def input_lag(partitions: Iterable[TopicPartition], facts: ClusterFacts) -> int | None:
    """Records between committed and end offsets; None if no partition has both.

    Partitions without a committed offset are left out.
    """
    lags = [
        max(0, facts.end_offsets[partition] - facts.committed[partition])
        for partition in partitions
        if facts.committed.get(partition, NO_OFFSET) >= 0 and partition in facts.end_offsets
    ]
    return sum(lags) if lags else None


def look_at_clients(
    members: Sequence[MemberLook], tasks: Sequence[TaskLook]
) -> tuple[ClientLook, ...]:
    """Clients, each with its members, in the order of client ids."""
    parts: dict[str, list[MemberLook]] = {}
    for member in members:
        parts.setdefault(member.process, []).append(member)
    lag_by_task = {look.task: look.lag for look in tasks}
    end_by_task = {look.task: look.end_sum for look in tasks}
    clients = []
    for process, group in parts.items():
        group.sort(key=lambda member: member.described.member_id)
        active = _joined(member.answer.active for member in group)
        lags = [lag for task in active if (lag := lag_by_task[task]) is not None]
        warmups = [member.answer.warmup for member in group]
        known_warmups = [warmup for warmup in warmups if warmup is not None]
        clients.append(
            ClientLook(
                process=process,
                client=group[0].client,
                members=tuple(group),
                active=active,
                standby=_joined(member.answer.standby for member in group),
                warmup=_joined(known_warmups) if len(known_warmups) == len(warmups) else None,
                lag=sum(lags) if lags else None,
                state_lags=_state_lags(group, end_by_task),
            )
        )
    return tuple(sorted(clients, key=lambda client: (client.client, client.process)))


def _joined(parts: Iterable[tuple[TaskId, ...]]) -> tuple[TaskId, ...]:
    return tuple(sorted({task for part in parts for task in part}, key=task_order))


def _state_lags(
    members: Sequence[MemberLook], end_by_task: Mapping[TaskId, int | None]
) -> dict[TaskId, int | None]:
    found: dict[TaskId, int | None] = {}
    for member in members:
        for task, offset in member.sums:
            end = end_by_task.get(task)
            if offset != RUNNING:
                found[task] = None if offset < 0 or end is None else max(0, end - offset)
    return dict(sorted(found.items(), key=lambda pair: task_order(pair[0])))
