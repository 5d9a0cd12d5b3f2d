"""The group as its members report it, and what "settled" means.

Reports of a former incarnation may be read late, after its successor started; their records are
counted, and they change nothing else here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    RecordsProcessed,
    RejoinRequested,
    Report,
    SubscriptionWritten,
)


class Presence(Enum):
    """Whether a member's process runs."""

    DOWN = "down"
    UP = "up"
    FAILED = "failed"


@dataclass(slots=True)
class MemberView:
    """A member of the experiment, through all its incarnations."""

    name: str
    presence: Presence = Presence.DOWN
    incarnation: int = -1
    release: str = ""
    upgrade_from: str | None = None
    used_version: int | None = None
    latest_supported_version: int | None = None
    generation: int | None = None
    active_tasks: tuple[str, ...] = ()
    standby_tasks: tuple[str, ...] = ()
    owned: set[int] = field(default_factory=set)
    rejoin_pending: bool = False
    leaving: bool = False
    records: int = 0
    why_failed: str | None = None


@dataclass(slots=True)
class GroupView:
    """The members, the leader, and when the group last changed.

    Attributes:
        members: by name, in order.
        leader: name of the member that decided last, or None.
        decision: the last one of a leader, or None.
        changed_ms: monotonic milliseconds of the last event, but for processed records.
    """

    members: dict[str, MemberView]
    leader: str | None = None
    decision: AnswersDecided | None = None
    changed_ms: float = 0.0

    @classmethod
    def of(cls, names: Sequence[str]) -> "GroupView":
        """Return a view with all members down."""
        return cls(members={name: MemberView(name=name) for name in names})

    @property
    def alive(self) -> tuple[MemberView, ...]:
        """Members whose process runs, in order."""
        return tuple(m for m in self.members.values() if m.presence is Presence.UP)

    @property
    def generation(self) -> int | None:
        """The newest generation that a running member has taken; None without any."""
        return max((m.generation for m in self.alive if m.generation is not None), default=None)

    def note_start(
        self, name: str, *, incarnation: int, release: str, upgrade_from: str | None, at_ms: float
    ) -> None:
        """Note that a process was started; it knows nothing of its former incarnation."""
        self.members[name] = MemberView(
            name=name,
            presence=Presence.UP,
            incarnation=incarnation,
            release=release,
            upgrade_from=upgrade_from,
            records=self.members[name].records,
        )
        self.changed_ms = at_ms

    def note_end(self, name: str, *, incarnation: int, failed: bool, at_ms: float) -> None:
        """Note that a process has ended."""
        member = self.members[name]
        if member.incarnation != incarnation:
            return
        member.presence = Presence.FAILED if failed else Presence.DOWN
        member.owned.clear()
        member.active_tasks = member.standby_tasks = ()
        member.rejoin_pending = False
        if self.leader == name:
            self.leader = None
        self.changed_ms = at_ms

    def apply(self, report: Report) -> None:
        """Update the view with one report."""
        member = self.members[report.member]
        if isinstance(report.event, RecordsProcessed):
            member.records += report.event.last_offset - report.event.first_offset + 1
            return
        if report.incarnation != member.incarnation:
            return
        match report.event:
            case SubscriptionWritten(version=version, latest_supported_version=latest):
                member.used_version, member.latest_supported_version = version, latest
                member.rejoin_pending = True
            case AnswersDecided():
                self.leader, self.decision = report.member, report.event
            case AssignmentTaken() as taken:
                member.generation = taken.generation
                member.used_version = taken.next_version
                member.active_tasks = taken.active_tasks
                member.standby_tasks = taken.standby_tasks
                member.rejoin_pending = False
            case RejoinRequested(used_version_after=version):
                member.used_version = version
                member.rejoin_pending = True
            case PartitionsAssigned(partitions=partitions):
                member.owned.update(partitions)
            case PartitionsRevoked(partitions=partitions) | PartitionsLost(partitions=partitions):
                member.owned.difference_update(partitions)
            case MemberFailed(why=why):
                member.why_failed = why
            case _:
                return
        self.changed_ms = max(self.changed_ms, report.at_ms)


def unsettled_reason(
    group: GroupView, *, partitions: int, now_ms: float, quiet_ms: float
) -> str | None:
    """Return why the group is not settled; None if it is.

    Settled: every running member has taken the same generation, none waits for another rebalance,
    every partition has one owner among them, and nothing has changed for `quiet_ms`.
    """
    alive = group.alive
    if not alive:
        return "no member runs"
    fresh = [m.name for m in alive if m.generation is None]
    if fresh:
        return f"{', '.join(fresh)} has no assignment yet"
    rejoining = [m.name for m in alive if m.rejoin_pending]
    if rejoining:
        return f"{', '.join(rejoining)} waits for a rebalance"
    behind = [f"{m.name} in {m.generation}" for m in alive if m.generation != group.generation]
    if behind:
        return f"generations differ: {', '.join(behind)}, newest {group.generation}"
    owned = sorted(partition for m in alive for partition in m.owned)
    if owned != list(range(partitions)):
        return f"partitions owned are {owned}, not 0 to {partitions - 1}"
    if now_ms - group.changed_ms < quiet_ms:
        return f"the last change was {now_ms - group.changed_ms:.0f} ms ago"
    return None
