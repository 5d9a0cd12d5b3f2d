"""The member's tables: from the two numbers of an answer to what the member does about them.

First row that holds, wins; the last row of every table always holds. One table per member model,
put together from named rows, so that what two releases share is written once. The KIP is KIP-268;
each model was read from the sources of its releases.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from probing.member.events import NativeAnswer
from probing.releases import MemberModel
from probing.versions import EARLIEST_PROBEABLE_VERSION, greatest_known_version


class Action(StrEnum):
    """What a row asks for."""

    REFUSE = "refuse"
    REPORT = "report the error"
    KEEP = "keep the version"
    NEXT_TIME = "write it next time"
    REJOIN = "write it and rejoin now"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionNumbers:
    """What a row may look at.

    Attributes:
        used: the version of the member's last subscription.
        received: the version of the answer.
        common: the answer's second number.
        error_code: of the answer.
        known: every version of Kafka's that the member reads and writes.
        led_supported: lowest version supported in the group, if this member led the rebalance.
        native_known: every version of ours that it writes; none for Kafka's members.
        native: what a leader of ours said, None from a JVM leader.
        pinned: ``upgrade.from`` pins the used version.
    """

    used: int
    received: int
    common: int
    error_code: int
    known: tuple[int, ...]
    led_supported: int | None
    native_known: tuple[int, ...] = ()
    native: NativeAnswer | None = None
    pinned: bool = False

    @property
    def latest(self) -> int:
        """Return the highest version of Kafka's that the member writes."""
        return max(self.known)

    @property
    def is_readable(self) -> bool:
        """Tell whether the answer can be read; what a leader of ours said could be, or is None."""
        return self.native is not None or self.received in (*self.known, *self.native_known)

    @property
    def told(self) -> int:
        """Return what a leader of ours tells the member to write, as far as the member can.

        The greatest known version up to the one told; the used version when nothing is told, or
        nothing that can be probed with.
        """
        next_version = 0 if self.native is None else self.native.next_version
        version = greatest_known_version((*self.known, *self.native_known), at_most=next_version)
        return version if version and version >= EARLIEST_PROBEABLE_VERSION else self.used

    @property
    def told_to_read(self) -> int:
        """Return a version below the used one that the leader can read: as told, or as received."""
        if self.told < self.used:
            return self.told
        known = (*self.known, *self.native_known)
        return greatest_known_version(known, at_most=self.received) or self.used

    @property
    def offered(self) -> int:
        """Return the greatest known version that is not above the second number, else 0."""
        return greatest_known_version(self.known, at_most=self.common) or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRule:
    """One row: when it holds, what to do, which version to write, and the sentence for people.

    ``why`` is a format string over the attributes of ``VersionNumbers``.
    """

    name: str
    holds: Callable[[VersionNumbers], bool]
    action: Action
    why: str
    speaks: Callable[[VersionNumbers], int] = lambda n: n.used


UNREADABLE: Final = VersionRule(
    name="unreadable answer",
    holds=lambda n: not n.is_readable,
    action=Action.REFUSE,
    why="the leader answered in version {received}, and this member reads up to {latest};"
    " upgrade the member, or start the group's newer members with upgrade.from",
)
ERROR_ANSWER: Final = VersionRule(
    name="error answer",
    holds=lambda n: n.error_code != 0,
    action=Action.REPORT,
    why="the leader answered with error {error_code} and no tasks; see the leader's report",
)
ABOVE_SENT: Final = VersionRule(
    name="answered above what was sent",
    holds=lambda n: n.received > n.used,
    action=Action.REFUSE,
    why="this member wrote version {used} and was answered in version {received}, which no leader"
    " may do; restart the member, with the upgrade.from of the group if it has one",
)
ABOVE_LATEST: Final = VersionRule(
    name="agreed above what we speak",
    holds=lambda n: n.common > n.latest,
    action=Action.REFUSE,
    why="the leader says that everybody supports version {common}, and this member supports"
    " {latest}; upgrade the leader (KAFKA-8649)",
)
TOO_OLD_TO_PROBE: Final = VersionRule(
    name="too old to probe",
    holds=lambda n: n.received < EARLIEST_PROBEABLE_VERSION,
    action=Action.KEEP,
    why="somebody still writes version {received}, which cannot probe; write version {used} until"
    " that member is bounced without upgrade.from",
)
EVERYONE_BOUNCED: Final = VersionRule(
    name="everyone has been bounced",
    holds=lambda n: n.common > n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.common,
    why="every member supports version {common} now; go up from {used} and rejoin",
)
SAY_IT_AGAIN: Final = VersionRule(
    name="others still write lower",
    holds=lambda n: n.received < n.used == n.common,
    action=Action.REJOIN,
    speaks=lambda n: n.common,
    why="every member supports version {used}, but the answer came in {received}; say it again",
)
SOMEBODY_LOWER: Final = VersionRule(
    name="somebody has not been bounced",
    holds=lambda n: n.received < n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.common,
    why="the group can go up to version {common} for now; come down from {used} and rejoin",
)
SETTLED: Final = VersionRule(
    name="settled",
    holds=lambda n: True,  # noqa: ARG005 the last row always holds
    action=Action.KEEP,
    why="version {used} is what the group speaks",
)

_LEADERS_NUMBER_NOW: Final = VersionRule(
    name="leader's number, now",
    holds=lambda n: EARLIEST_PROBEABLE_VERSION <= n.received < n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.common,
    why="wrote version {used}, was answered in {received}; take the leader's {common} and rejoin",
)
_LEADERS_NUMBER_NEXT_TIME: Final = VersionRule(
    name="leader's number, next time",
    holds=lambda n: n.received >= EARLIEST_PROBEABLE_VERSION and n.common > n.used,
    action=Action.NEXT_TIME,
    speaks=lambda n: n.common,
    why="the leader supports version {common}; go up from {used} at the next rebalance",
)

_UNUSABLE_NUMBER: Final = VersionRule(
    name="unusable second number",
    holds=lambda n: n.common < n.received < n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.received,
    why="the answer came in version {received} and names {common} as agreed, which cannot be; come"
    " down from {used} to {received} and rejoin",
)
_OFFERED_ABOVE: Final = VersionRule(
    name="everyone has been bounced",
    holds=lambda n: n.offered > n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.offered,
    why="every member supports version {common} now; go up from {used} to {offered} and rejoin",
)
_OFFERED_AGAIN: Final = VersionRule(
    name="others still write lower",
    holds=lambda n: n.received < n.used == n.offered,
    action=Action.REJOIN,
    speaks=lambda n: n.offered,
    why="every member supports version {used}, but the answer came in {received}; say it again",
)
_OFFERED_BELOW: Final = VersionRule(
    name="somebody has not been bounced",
    holds=lambda n: n.received < n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.offered,
    why="the group can go up to version {common} for now; come down from {used} to {offered} and"
    " rejoin",
)

_LATER_JVM_LEADER: Final = VersionRule(
    name="a later JVM leads",
    holds=lambda n: not n.is_readable and n.latest < n.received < n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.offered or n.latest,
    why="the answer came in version {received}, which only its two numbers can be read of; come"
    " down from {used} to what this member and a JVM both know, and rejoin",
)
_BODY_NOT_READ: Final = VersionRule(
    name="leader could not read us",
    holds=lambda n: (
        n.native is not None and not n.native.subscription_read and n.told_to_read < n.used
    ),
    action=Action.REJOIN,
    speaks=lambda n: n.told_to_read,
    why="the leader placed this member blindly, since it cannot read version {used}; write"
    " {told_to_read} and rejoin, this once",
)
_PIN_STAYS: Final = VersionRule(
    name="pin stays",
    holds=lambda n: n.native is not None and n.pinned,
    action=Action.KEEP,
    why="upgrade.from pins version {used}; take it out in the second rolling bounce",
)
_TOLD_NEXT_TIME: Final = VersionRule(
    name="told by a leader of ours",
    holds=lambda n: n.native is not None and n.told != n.used,
    action=Action.NEXT_TIME,
    speaks=lambda n: n.told,
    why="the leader asks for version {told} from the next rebalance on, whenever that comes; {used}"
    " was answered in {received} and nobody has to rejoin for it",
)
_SETTLED_WITH_US: Final = VersionRule(
    name="settled under a leader of ours",
    holds=lambda n: n.native is not None,
    action=Action.KEEP,
    why="version {used} is what the leader wants to be written",
)

_LEADER_ENDS_UPGRADE: Final = VersionRule(
    name="leader ends the upgrade",
    holds=lambda n: n.led_supported is not None and n.received < n.latest <= n.led_supported,
    action=Action.REJOIN,
    speaks=lambda n: n.latest,
    why="every member supports version {latest}, and the leader alone starts the last rebalance",
)
_LIFT_IN_PASSING: Final = VersionRule(
    name="lifted in passing",
    holds=lambda n: n.offered > n.used,
    action=Action.NEXT_TIME,
    speaks=lambda n: n.offered,
    why="the leader supports version {common}; go up from {used} at the next rebalance",
)
_LEADER_LOWER: Final = VersionRule(
    name="leader has not been bounced",
    holds=lambda n: n.received < n.used and n.common < n.used,
    action=Action.REJOIN,
    speaks=lambda n: n.common,
    why="the leader supports version {common}; come down from {used} and rejoin",
)

_GUARDED_ROWS: Final = (
    UNREADABLE,
    ERROR_ANSWER,
    ABOVE_SENT,
    ABOVE_LATEST,
    TOO_OLD_TO_PROBE,
    EVERYONE_BOUNCED,
    SAY_IT_AGAIN,
    SOMEBODY_LOWER,
    SETTLED,
)

MEMBER_RULES: Final[dict[MemberModel, tuple[VersionRule, ...]]] = {
    MemberModel.NO_PROBING: (UNREADABLE, SETTLED),
    MemberModel.UNGUARDED: (
        UNREADABLE,
        ERROR_ANSWER,
        ABOVE_SENT,
        _LEADERS_NUMBER_NOW,
        _LEADERS_NUMBER_NEXT_TIME,
        SETTLED,
    ),
    MemberModel.GUARDED: _GUARDED_ROWS,
    MemberModel.TASKS_KEPT: _GUARDED_ROWS,
    MemberModel.FOLLOWUP: _GUARDED_ROWS,
    MemberModel.FOLLOWUP_WAITS: _GUARDED_ROWS,
    MemberModel.NATIVE: (
        _LATER_JVM_LEADER,
        UNREADABLE,
        ERROR_ANSWER,
        _BODY_NOT_READ,
        _PIN_STAYS,
        _TOLD_NEXT_TIME,
        _SETTLED_WITH_US,
        ABOVE_SENT,
        TOO_OLD_TO_PROBE,
        _UNUSABLE_NUMBER,
        _OFFERED_ABOVE,
        _OFFERED_AGAIN,
        _OFFERED_BELOW,
        SETTLED,
    ),
    MemberModel.KIP_TEXT: (
        UNREADABLE,
        ABOVE_SENT,
        TOO_OLD_TO_PROBE,
        _LEADER_ENDS_UPGRADE,
        _LIFT_IN_PASSING,
        _LEADER_LOWER,
        SETTLED,
    ),
}

DROPS_TASKS: Final = frozenset({MemberModel.UNGUARDED, MemberModel.GUARDED})
"""Models that leave the tasks of an answer alone when it makes them rejoin (KAFKA-8972)."""

HAS_FOLLOWUPS: Final = frozenset(
    {MemberModel.FOLLOWUP, MemberModel.FOLLOWUP_WAITS, MemberModel.NATIVE}
)
"""Models that rejoin for a missing host or at the time that the leader asked for."""

FIRES_DURING_REBALANCE: Final = frozenset({MemberModel.FOLLOWUP})
"""Models whose follow-up does not wait for a running rebalance to end (KAFKA-14382)."""

SURVIVES_ERRORS: Final = frozenset({MemberModel.NATIVE})
"""Models that report an error answer, refuse one that they cannot take, and stay in the group: the
next leader, or the next answer, may be better."""


def first_rule(model: MemberModel, numbers: VersionNumbers) -> VersionRule:
    """Return the first row of the model's table that holds."""
    return next(rule for rule in MEMBER_RULES[model] if rule.holds(numbers))
