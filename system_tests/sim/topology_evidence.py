"""What the trace of a rolling change of the topology says up to a point, for its checkers.

The oracle knows the programs and follows the trace; it does not use the tables of `probing`. Tasks
have the numbers of the change (`forms_of`); a *unit* is a partition of a family of forms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from encoding import TaskId, TopicPartition
from system_tests.coordinator import EventKind, GroupEvent
from system_tests.sim.checkers import Evidence
from system_tests.sim.events import (
    LOSES_DISK,
    Answer,
    Answered,
    Ended,
    Happened,
    Happening,
    Settled,
    Started,
    Took,
)
from system_tests.sim.world.setup import INSTANCE
from system_tests.topology_changes import NEW_VERSION, OLD_VERSION, Form

_Unit = tuple[str, int]


@dataclass(slots=True, kw_only=True)
class TopologyEvidence(Evidence):
    """What a trace says of the change up to a point; members and tasks as for every group.

    Attributes:
        forms: of the change; partitions: of each topic.
        most_rebalances: that a step of the operator may cost; None: it is not checked.
        is_reliable: every live member gets its answers in time.
        carries: thread -> versions of the topology; joined_with: member id -> likewise, when it
            joined. A thread that was started again may have an older member in the group still.
        up: threads that run.
        reached: a leader has answered a group whose members want the new version.
        remembering: processes that took an answer since.
        generations: that were reached -> whether `reached` held.
        ran_new: units that ran in the new form and have to stay there.
        rebalances: generations since the group rested last.
        holders: threads that ran a changed subtopology when it rested last, and run since.
        held_back: not all members of the last generation carry the new version, but all the old.
    """

    task_of: Mapping[TopicPartition, TaskId] = field(default_factory=dict)
    forms: Sequence[Form]
    partitions: int
    most_rebalances: int | None = None
    is_reliable: bool = True
    carries: dict[str, tuple[int, ...]] = field(default_factory=dict)
    joined_with: dict[str, tuple[int, ...]] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    reached: bool = False
    remembering: set[str] = field(default_factory=set)
    generations: dict[int, bool] = field(default_factory=dict)
    ran_new: set[_Unit] = field(default_factory=set)
    rebalances: int = 0
    holders: set[str] = field(default_factory=set)
    held_back: bool = False

    def unit(self, task: TaskId) -> _Unit:
        """Return the family and the partition of a task."""
        return self.forms[task.subtopology].topic, task.partition

    def joined_versions(self, answer: Answer) -> tuple[int, ...]:
        """Return the versions that a member joined with."""
        return self.joined_with.get(answer.member_id, self.carries[answer.thread])

    def is_superseded(self, task: TaskId) -> bool:
        """Whether a task is of an old form that the new topology has another form of."""
        form = self.forms[task.subtopology]
        return form.versions == (OLD_VERSION,) and any(
            other.topic == form.topic and NEW_VERSION in other.versions for other in self.forms
        )

    def changed_holders(self) -> set[str]:
        """Return the threads that run a form of a changed subtopology."""
        changed = {form.topic for form in self.forms if form.versions == (OLD_VERSION,)} & {
            form.topic for form in self.forms if NEW_VERSION in form.versions
        }
        return {
            thread
            for thread in self.up
            if any(self.unit(task)[0] in changed for task in self.tasks.get(thread, ()))
        }

    def add(self, happening: Happening) -> None:
        """Add the next event."""
        Evidence.add(self, happening)
        taker = _TAKERS.get(type(happening))
        if taker is not None:
            taker(self, happening)


def process_of(thread: str) -> str:
    """Return the process of a thread: the letter of its lane."""
    return thread[:1]


def _take_started(evidence: TopologyEvidence, event: Started) -> None:
    evidence.carries[event.thread] = event.carries
    evidence.up.add(event.thread)


def _take_ended(evidence: TopologyEvidence, event: Ended) -> None:
    evidence.up.discard(event.thread)
    evidence.holders.discard(event.thread)


def _take_answered(evidence: TopologyEvidence, event: Answered) -> None:
    threads = [answer.thread for answer in event.answers]
    programs = [{*evidence.joined_versions(answer)} for answer in event.answers]
    live: set[int] = set().union(*programs)
    common = set.intersection(*programs)
    is_held_back = bool(common) and max(common) < max(live)
    evidence.held_back = is_held_back and not evidence.reached
    if NEW_VERSION in live:
        evidence.reached |= not is_held_back
    elif evidence.reached:
        remembering = evidence.remembering & {process_of(thread) for thread in threads}
        if not remembering or (
            len(remembering) == 1 and process_of(event.thread) not in remembering
        ):
            evidence.ran_new.clear()
            evidence.reached = bool(remembering)
    evidence.generations[event.generation] = evidence.reached


def _take_took(evidence: TopologyEvidence, event: Took) -> None:
    if not event.failure and evidence.generations.get(event.generation):
        evidence.remembering.add(process_of(event.thread))
    for task in event.active_tasks:
        if evidence.reached and OLD_VERSION not in evidence.forms[task.subtopology].versions:
            evidence.ran_new.add(evidence.unit(task))


def _take_happened(evidence: TopologyEvidence, event: Happened) -> None:
    if event.text == LOSES_DISK:
        evidence.remembering.discard(process_of(event.thread))


def _take_settled(evidence: TopologyEvidence, _: Settled) -> None:
    evidence.rebalances = 0
    evidence.holders = evidence.changed_holders()


def _take_group_event(evidence: TopologyEvidence, event: GroupEvent) -> None:
    if event.kind is EventKind.GENERATION_COMPLETED:
        evidence.rebalances += 1
    elif event.kind in (EventKind.MEMBER_JOINED, EventKind.MEMBER_REPLACED):
        thread = event.member_id.rpartition("-")[0].removesuffix(INSTANCE)
        evidence.joined_with[event.member_id] = evidence.carries[thread]


_TAKERS: dict[type, Callable[[TopologyEvidence, Any], None]] = {
    Started: _take_started,
    Ended: _take_ended,
    Answered: _take_answered,
    Took: _take_took,
    Happened: _take_happened,
    Settled: _take_settled,
    GroupEvent: _take_group_event,
}
