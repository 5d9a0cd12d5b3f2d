"""Problems and risks of a streams group, as sentences for operators, worst first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import Final

from assignor.inspection.offsets import beyond_ends
from assignor.inspection.routing import NAMES_SHOWN, few
from assignor.inspection.streams_groups.values import (
    EMPTY,
    STABLE,
    DescribedStreamsGroup,
    StreamsGroupLook,
    StreamsSubtopology,
    StreamsTask,
    sorted_tasks,
)
from assignor.inspection.values import Finding
from encoding import shown

_Rule = Callable[[StreamsGroupLook], Iterator[str]]
_STOPPED_EPOCH: Final = -2  # a static member that stopped, and may come back; -1: it leaves
_WITHOUT_RULES: Final = frozenset({"Dead", "Unknown"})


def streams_findings(look: StreamsGroupLook) -> tuple[Finding, ...]:
    """Return every finding, in the order of the rules."""
    return tuple(
        Finding(kind=kind, sentence=sentence) for kind, rule in _RULES for sentence in rule(look)
    )


def _not_ready(look: StreamsGroupLook) -> Iterator[str]:
    yield from look.waits_for


def _owned_twice(look: StreamsGroupLook) -> Iterator[str]:
    shared = sorted_tasks(task for task, names in _owners(look).items() if len(names) > 1)
    if shared:
        yield f"task {few(list(map(str, shared)))} runs on more than one member"


def _stopped(look: StreamsGroupLook) -> Iterator[str]:
    """Static members that stopped: they keep their tasks until their sessions expire (KIP-1071)."""
    names = [
        look.client_names[member.member_id]
        for member in look.group.members
        if member.member_epoch == _STOPPED_EPOCH
    ]
    if names:
        yield (
            f"static members that stopped (epoch {_STOPPED_EPOCH}): {few(names)}; their tasks run"
            " nowhere until they start with the same group.instance.id, or leave, at most"
            " streams.session.timeout.ms (45 s by default) after their last heartbeats"
        )


def _impossible(look: StreamsGroupLook) -> Iterator[str]:
    """Values that no coordinator has at the same time (`StreamsGroup` of Kafka 4.3.1)."""
    if look.group.state in _WITHOUT_RULES:
        return
    for what in _contradictions(look.group, look.client_names):
        yield (
            f"no coordinator has a group with {what}: inspect it again, and check what listens at"
            " the bootstrap server"
        )


def _contradictions(group: DescribedStreamsGroup, names: Mapping[str, str]) -> Iterator[str]:
    members, group_epoch = group.members, group.group_epoch
    for name, epoch in (("group", group_epoch), ("assignment", group.assignment_epoch)):
        if epoch < 0:
            yield f"{name} epoch {epoch}"
    yield from _negative_topology_epochs(group, names)
    if group.assignment_epoch > group_epoch:
        yield f"assignment epoch {group.assignment_epoch} above group epoch {group_epoch}"
    odd = [m for m in members if not _STOPPED_EPOCH <= m.member_epoch <= max(0, group_epoch)]
    if odd:
        listed = few([f"{names[m.member_id]} ({m.member_epoch})" for m in odd])
        yield f"group epoch {group_epoch} and the member epoch of {listed}"
    if group.state == EMPTY and members:
        yield f"state {EMPTY} and {len(members)} members"
    elif group.state != EMPTY and not members:
        yield f"state {group.state} and no members"
    if group.state == STABLE and group.subtopologies is None:
        held = sum(len(m.current.active) + len(m.target.active) for m in members)
        if held:
            yield f"state {STABLE} and active tasks, but no topology"
    yield from _impossible_tasks(group, names)


def _impossible_tasks(group: DescribedStreamsGroup, names: Mapping[str, str]) -> Iterator[str]:
    counts = Counter(task for member in group.members for task in member.target.active)
    twice = sorted_tasks(task for task, number in counts.items() if number > 1)
    if twice:
        yield f"task {few(list(map(str, twice)))} active in the target assignments of two members"
    for member in group.members:
        for kind, tasks in (("current", member.current), ("target", member.target)):
            both = set(tasks.active).intersection((*tasks.standby, *tasks.warmup))
            if both:
                listed = few(list(map(str, sorted_tasks(both))))
                name = shown(names[member.member_id])
                yield f"task {listed} active and a copy in the {kind} assignment of {name}"


def _negative_topology_epochs(
    group: DescribedStreamsGroup, names: Mapping[str, str]
) -> Iterator[str]:
    if group.topology_epoch is not None and group.topology_epoch < 0:
        yield f"topology epoch {group.topology_epoch}"
    odd = [m for m in group.members if m.topology_epoch < 0]
    if odd:
        listed = few([f"{names[m.member_id]} ({m.topology_epoch})" for m in odd])
        yield f"a negative topology epoch of {listed}"


def _not_owned(look: StreamsGroupLook) -> Iterator[str]:
    owners = _owners(look)
    holders = {
        task: look.client_names[member.member_id]
        for member in look.group.members
        for task in look.to_stop[member.member_id]
    }
    for member in look.group.members:
        waiting = [task for task in look.to_start[member.member_id] if task not in owners]
        held = [task for task in look.to_start[member.member_id] if task in owners]
        name = shown(look.client_names[member.member_id])
        if waiting and member.member_epoch != _STOPPED_EPOCH:
            yield (
                f"task {few([str(task) for task in waiting])} runs nowhere: {name} gets it with"
                " its next heartbeat"
            )
        if held:
            names = few(sorted({holders.get(task, "another member") for task in held}))
            yield (
                f"task {few([str(task) for task in held])} moves to {name} when {names} has"
                " stopped it"
            )


def _unassigned(look: StreamsGroupLook) -> Iterator[str]:
    """Tasks of the topology that no target assignment has."""
    if not look.group.members or look.waits_for:
        return
    sizes = _task_counts(look)
    wanted: dict[str, set[int]] = defaultdict(set)
    for member in look.group.members:
        for task in member.target.active:
            if task.partition < sizes.get(task.subtopology, 0):
                wanted[task.subtopology].add(task.partition)
    # The tasks are counted, not listed: the broker and the topics decide how many there are.
    left_out = {name: size - len(wanted[name]) for name, size in sizes.items()}
    total = sum(left_out.values())
    if total:
        names = list(map(str, islice(_missing_tasks(left_out, wanted), NAMES_SHOWN)))
        yield f"task {few(names, total)} is in no member's target assignment"


def _topology_epoch(look: StreamsGroupLook) -> Iterator[str]:
    epoch = look.group.topology_epoch
    stale = [
        f"{look.client_names[member.member_id]} ({member.topology_epoch})"
        for member in look.group.members
        if epoch is not None and member.topology_epoch != epoch
    ]
    if stale:
        yield (
            f"{few(stale)} has another topology epoch than the group ({epoch}): brokers up to 4.4"
            " do not update the topology of a group with members; stop all members, then start"
            " them with one program"
        )


def _source_topics(look: StreamsGroupLook) -> Iterator[str]:
    """Source topics that are gone although the coordinator has not noticed it, or has no member."""
    sizes = look.facts.partitions
    if sizes is None or look.waits_for:
        return
    missing = [
        topic
        for part in look.group.subtopologies or ()
        for topic in part.source_topics
        if topic not in sizes
    ]
    if missing:
        yield (
            f"source topic {few(sorted(set(missing)))} does not exist, or you may not describe it:"
            " members end with MissingSourceTopicException; create it before they start"
        )


def _internal_topics(look: StreamsGroupLook) -> Iterator[str]:
    sizes = look.facts.partitions
    if sizes is None or look.waits_for:
        return
    for part in look.group.subtopologies or ():
        for row in (*part.repartition_source_topics, *part.state_changelog_topics):
            found = sizes.get(row.name, 0)
            if not found:
                yield (
                    f"internal topic {shown(row.name)} does not exist, or you may not describe it;"
                    " the broker creates it once the source topics exist"
                )
            elif row.partitions and found != row.partitions:
                yield (
                    f"internal topic {shown(row.name)} has {found} partitions and needs"
                    f" {row.partitions}"
                )


def changelog_counts(part: StreamsSubtopology, sizes: Mapping[str, int]) -> Iterator[str]:
    """Changelogs with another number of partitions than their subtopology has tasks."""
    tasks = max((sizes.get(topic, 0) for topic in part.input_topics), default=0)
    # A number that the group's own topology does not expect is another finding.
    odd = [
        f"{row.name} ({found})"
        for row in part.state_changelog_topics
        if (found := sizes.get(row.name, tasks)) != tasks and row.partitions in (0, found)
    ]
    if odd and tasks:
        yield (
            f"subtopology {shown(part.subtopology_id)} reads topics of {tasks} partitions, and its"
            f" changelogs have other numbers: {few(odd)}; partitions were added or a topic was"
            " created again: reset the application, or move it to a new topic"
        )


def _partition_counts(look: StreamsGroupLook) -> Iterator[str]:
    if look.facts.partitions is not None and not look.waits_for:
        for part in look.group.subtopologies or ():
            yield from changelog_counts(part, look.facts.partitions)


def _classic(look: StreamsGroupLook) -> Iterator[str]:
    names = [
        look.client_names[member.member_id] for member in look.group.members if member.is_classic
    ]
    if names:
        yield f"{few(names)} uses the classic protocol"


def _uncommitted(look: StreamsGroupLook) -> Iterator[str]:
    rows = [row for row in look.offsets if row.committed is None]
    if rows and not look.facts.unknown:
        listed = [f"{row.partition.topic}-{row.partition.partition}" for row in rows]
        yield (
            f"{few(listed)} has no committed offset; its lag is counted from the first record,"
            " as Kafka's tool does"
        )


def _beyond_end(look: StreamsGroupLook) -> Iterator[str]:
    """Committed offsets of records that the partitions do not have."""
    return beyond_ends((row.partition, row.committed, row.end) for row in look.offsets)


def _unread_facts(look: StreamsGroupLook) -> Iterator[str]:
    yield from look.facts.unknown


def _owners(look: StreamsGroupLook) -> dict[StreamsTask, list[str]]:
    owners: dict[StreamsTask, list[str]] = defaultdict(list)
    for member in look.group.members:
        for task in member.current.active:
            owners[task].append(look.client_names[member.member_id])
    return owners


def _task_counts(look: StreamsGroupLook) -> dict[str, int]:
    """Return the number of tasks by subtopology: the partitions of its largest input topic."""
    sizes = look.facts.partitions
    if sizes is None:
        return {}
    return {
        part.subtopology_id: max((sizes.get(topic, 0) for topic in part.input_topics), default=0)
        for part in look.group.subtopologies or ()
    }


def _missing_tasks(
    left_out: Mapping[str, int], wanted: Mapping[str, set[int]]
) -> Iterator[StreamsTask]:
    """Yield the tasks that no target assignment has, in the order of tasks."""
    for first in sorted(StreamsTask(name, 0) for name, more in left_out.items() if more):
        name = first.subtopology
        free = (number for number in count() if number not in wanted[name])
        yield from (StreamsTask(name, number) for number in islice(free, left_out[name]))


_RULES: Final[tuple[tuple[str, _Rule], ...]] = (
    ("not-ready", _not_ready),
    ("impossible", _impossible),
    ("owned-twice", _owned_twice),
    ("stopped-member", _stopped),
    ("not-owned", _not_owned),
    ("unassigned", _unassigned),
    ("topology-differs", _topology_epoch),
    ("source-topic", _source_topics),
    ("internal-topic", _internal_topics),
    ("partition-counts", _partition_counts),
    ("classic-member", _classic),
    ("uncommitted", _uncommitted),
    ("beyond-end", _beyond_end),
    ("not-told", _unread_facts),
)
