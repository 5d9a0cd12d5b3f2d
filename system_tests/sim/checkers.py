"""Safety rules, which no step may break: functions of the trace so far and of the next event.

`Evidence` holds what the trace says up to a point. A rule gets it and the next event, and returns a
sentence that says what is broken, or None. A search that branches copies the evidence with its
world. Rules about whole traces (liveness) are in `liveness`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from encoding import TaskId, TopicPartition
from system_tests.coordinator import EventKind, GroupEvent
from system_tests.engine import Broken, Checker, check_event, check_events
from system_tests.sim.events import (
    Answered,
    Cause,
    Ended,
    Gave,
    Happening,
    Rejoined,
    Settled,
    Started,
    Took,
)


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What a trace says up to a point.

    Attributes:
        task_of: every partition of the application -> the task that reads it.
        members: member ids that the coordinator counts as in the group.
        member_ids: thread -> its member id when it last took an answer.
        owned, tasks: thread -> what it runs.
        versions: thread -> what it reads and writes; natives: threads of native members.
        led_by_native: whether the last leader was a native member.
        cached: static members that were given the answer of before their restart.
        future: threads that had written above what the last leader reads.
    """

    task_of: Mapping[TopicPartition, TaskId]
    members: set[str] = field(default_factory=set)
    member_ids: dict[str, str] = field(default_factory=dict)
    owned: dict[str, set[TopicPartition]] = field(default_factory=dict)
    tasks: dict[str, set[TaskId]] = field(default_factory=dict)
    versions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    natives: set[str] = field(default_factory=set)
    led_by_native: bool = False
    cached: set[str] = field(default_factory=set)
    future: tuple[str, ...] = ()

    def copy(self) -> Self:
        """Return independent evidence with the same content."""
        return type(self)(
            task_of=self.task_of,
            members=self.members.copy(),
            member_ids=self.member_ids.copy(),
            owned=self.owned.copy(),  # the sets in it are replaced, and never changed
            tasks=self.tasks.copy(),
            versions=self.versions.copy(),
            natives=self.natives.copy(),
            led_by_native=self.led_by_native,
            cached=self.cached.copy(),
            future=self.future,
        )

    def in_group(self, thread: str) -> bool:
        """Whether the thread is a member now; one that expired is not, and is fenced."""
        return self.member_ids.get(thread, "") in self.members

    def add(self, happening: Happening) -> None:
        """Add the next event."""
        taker = _TAKERS.get(type(happening))
        if taker is not None:
            taker(self, happening)


def _take_started(evidence: Evidence, event: Started) -> None:
    evidence.versions[event.thread] = event.versions
    (evidence.natives.add if event.is_native else evidence.natives.discard)(event.thread)


def _take_ended(evidence: Evidence, event: Ended) -> None:
    evidence.owned.pop(event.thread, None)
    evidence.tasks.pop(event.thread, None)


def _take_took(evidence: Evidence, event: Took) -> None:
    evidence.member_ids[event.thread] = event.member_id
    evidence.owned[event.thread] = set(event.partitions)
    evidence.tasks[event.thread] = set(event.active_tasks)


def _take_gave(evidence: Evidence, event: Gave) -> None:
    owned, tasks = evidence.owned, evidence.tasks
    owned[event.thread] = owned.get(event.thread, set()).difference(event.partitions)
    tasks[event.thread] = tasks.get(event.thread, set()).difference(event.tasks)


def _take_answered(evidence: Evidence, event: Answered) -> None:
    evidence.led_by_native = event.leader_is_native
    evidence.future = event.future


def _take_group_event(evidence: Evidence, event: GroupEvent) -> None:
    match event.kind:
        case EventKind.GENERATION_COMPLETED | EventKind.GROUP_RELOADED:
            evidence.members = set(event.members)
            evidence.cached.clear()
        case EventKind.MEMBER_JOINED:
            evidence.members.add(event.member_id)
        case EventKind.MEMBER_REPLACED:
            evidence.members.add(event.member_id)
            evidence.cached.add(event.member_id)
        case EventKind.MEMBER_LEFT | EventKind.MEMBER_EXPIRED:
            evidence.members.discard(event.member_id)
        case EventKind.MEMBER_FENCED if event.member_id:
            evidence.members.discard(event.member_id)
        case _:
            pass


_TAKERS: dict[type, Callable[[Evidence, Any], None]] = {
    Started: _take_started,
    Ended: _take_ended,
    Took: _take_took,
    Gave: _take_gave,
    Answered: _take_answered,
    GroupEvent: _take_group_event,
}


def one_owner(evidence: Evidence, event: Took) -> str | None:
    """A partition is processed by one member of the group at a time.

    A thread that is no longer a member, and does not know it yet, is fenced when it commits. So
    neither the thread that takes the partition nor the one that has it counts then.
    """
    if event.member_id not in evidence.members:
        return None
    for thread, owned in evidence.owned.items():
        if thread != event.thread and not owned.isdisjoint(event.partitions):
            both = sorted(owned.intersection(event.partitions))
            if evidence.in_group(thread):
                return f"{event.thread} took {_named(both)}, which {thread} still processes"
    return None


def one_active(evidence: Evidence, event: Took) -> str | None:
    """A task is active on one member of the group at a time; as with partitions."""
    if event.member_id not in evidence.members:
        return None
    for thread, tasks in evidence.tasks.items():
        if thread != event.thread and not tasks.isdisjoint(event.active_tasks):
            both = sorted(tasks.intersection(event.active_tasks))
            if evidence.in_group(thread):
                return f"{event.thread} runs {', '.join(map(str, both))}, which {thread} runs too"
    return None


def answered_within_used(evidence: Evidence, event: Answered) -> str | None:
    """No member is answered above the version that it wrote."""
    del evidence
    for answer, used in zip(event.answers, event.used_versions, strict=True):
        if 0 < used < answer.version:
            return (
                f"{answer.thread} wrote v{used} and was answered in v{answer.version} "
                f"({event.rule})"
            )
    return None


def answered_in_lowest(evidence: Evidence, event: Answered) -> str | None:
    """JVM members with tasks are answered in nothing above the lowest version that one wrote."""
    pairs = [
        (answer, used)
        for answer, used in zip(event.answers, event.used_versions, strict=True)
        if used > 0 and answer.thread not in evidence.natives
    ]
    lowest = min((used for _, used in pairs), default=0)
    for answer, _ in pairs:
        if answer.version > lowest and answer.content in ("normal", "previous"):
            return (
                f"{answer.thread} was answered in v{answer.version}, and the lowest version that a"
                f" JVM member wrote is v{lowest} ({event.rule})"
            )
    return None


def sets_what_it_speaks(evidence: Evidence, event: Took) -> str | None:
    """A member sets its used version only to one that it reads and writes."""
    known = evidence.versions.get(event.thread, ())
    if event.used_after in known:
        return None
    return (
        f"{event.thread} set its version to v{event.used_after} and knows {known[0]} to {known[-1]}"
    )


def answers_are_readable(evidence: Evidence, event: Took) -> str | None:
    """Every answer can be read and followed by the member that gets it."""
    del evidence
    return f"{event.thread} cannot follow its answer: {event.failure}" if event.failure else None


def nobody_is_refused(evidence: Evidence, event: Took) -> str | None:
    """No member is answered with an error."""
    del evidence
    return (
        f"{event.thread} was answered with error {event.error_code}" if event.error_code else None
    )


def nobody_dies(evidence: Evidence, event: Ended) -> str | None:
    """No thread ends unless an operator stops it."""
    del evidence
    return f"{event.thread} died: {event.how}" if event.failed else None


def nothing_is_forgotten(evidence: Evidence, event: Settled) -> str | None:
    """In a settled group every partition has an owner, and the owner runs its task."""
    del event
    task_of = evidence.task_of
    idle = sorted(task_of.keys() - set().union(*evidence.owned.values()))
    if idle:
        return f"the group is settled and no member processes {_named(idle)}"
    for thread, owned in sorted(evidence.owned.items()):
        wanted, running = (
            {task_of[partition] for partition in owned},
            evidence.tasks.get(thread, set()),
        )
        if wanted != running:
            return (
                f"the group is settled, and {thread} has the partitions of"
                f" {_tasks(wanted) or 'nothing'} and runs {_tasks(running) or 'nothing'}"
            )
    return None


def nobody_stays_future(evidence: Evidence, event: Settled) -> str | None:
    """In a settled group no member writes above what the leader reads, or its state is unknown."""
    del event
    if not evidence.future:
        return None
    return f"the group is settled, and its leader cannot read {', '.join(evidence.future)}"


def natives_do_not_rejoin(evidence: Evidence, event: Rejoined) -> str | None:
    """No native member rejoins only for a version under a native leader (beyond KIP-268).

    A member whose subscription the leader could not read rejoins once, with a lower version. The
    answer that a restarted static member is given was made before its restart, and may make it
    rejoin.
    """
    is_native = event.thread in evidence.natives and evidence.led_by_native
    is_cached = evidence.member_ids.get(event.thread) in evidence.cached
    is_excused = is_cached or event.thread in evidence.future
    if not is_native or is_excused or event.cause != Cause.VERSION:
        return None
    return f"{event.thread} rejoins under a native leader only to write v{event.used_after}"


SAFETY: Final = (
    Checker("one owner", one_owner, (Took,)),
    Checker("one active", one_active, (Took,)),
    Checker("answered within used", answered_within_used, (Answered,)),
    Checker("answered in the lowest", answered_in_lowest, (Answered,)),
    Checker("sets what it speaks", sets_what_it_speaks, (Took,)),
    Checker("answers are readable", answers_are_readable, (Took,)),
    Checker("nobody is refused", nobody_is_refused, (Took,)),
    Checker("nobody dies", nobody_dies, (Ended,)),
    Checker("nothing is forgotten", nothing_is_forgotten, (Settled,)),
    Checker("nobody stays future", nobody_stays_future, (Settled,)),
    Checker("natives do not rejoin", natives_do_not_rejoin, (Rejoined,)),
)
"""Every rule of safety, in the order in which they are asked."""


def check_step(evidence: Evidence, happening: Happening) -> list[Broken]:
    """Check one event by every rule, then add it to the evidence."""
    broken = check_event(evidence, happening, SAFETY)
    evidence.add(happening)
    return broken


def check_trace(
    trace: Iterable[Happening],
    task_of: Mapping[TopicPartition, TaskId],
    rules: Iterable[Checker] = SAFETY,
) -> list[Broken]:
    """Check every event of a trace, from its first, by every rule."""
    return check_events(trace, Evidence(task_of=task_of), rules)


def _tasks(tasks: Iterable[TaskId]) -> str:
    return ", ".join(map(str, sorted(tasks)))


def _named(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in partitions)
