"""Decision tables of the member: what it does about the two version numbers of an answer.

The first row that holds decides; the last row of every table always holds. Each member model has
its own table, built from named rows that models share. Sources: KIP-268 and the code of each
release.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from probing.member.events import NativeAnswer
from probing.releases import MemberModel
from probing.rules import Rule, Rules, always
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
    """Inputs of a row.

    Attributes:
        used: the version of the member's last subscription.
        received: the version of the answer.
        common: the answer's second number.
        error_code: of the answer.
        known: every Kafka version that the member reads and writes.
        led_supported: lowest version supported in the group, if this member led the rebalance.
        native_known: every native version that it writes; empty for Kafka's members.
        native: what a native leader added, None from a JVM leader.
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
        """Return the highest Kafka version that the member writes."""
        return max(self.known)

    @property
    def is_readable(self) -> bool:
        """Tell whether the answer can be read; one with a native part has been read already."""
        return self.native is not None or self.received in (*self.known, *self.native_known)

    @property
    def requested(self) -> int:
        """Return the version that a native leader asks for, limited to what the member knows.

        The used version, if the leader asks for none or the result is below version 3.
        """
        next_version = 0 if self.native is None else self.native.next_version
        version = greatest_known_version((*self.known, *self.native_known), at_most=next_version)
        return version if version and version >= EARLIEST_PROBEABLE_VERSION else self.used

    @property
    def leader_readable(self) -> int:
        """Return a version below the used one that the leader can read.

        The requested version, else the greatest known one up to the version of the answer.
        """
        if self.requested < self.used:
            return self.requested
        known = (*self.known, *self.native_known)
        return greatest_known_version(known, at_most=self.received) or self.used

    @property
    def offered(self) -> int:
        """Return the greatest known version that is not above the second number; 0 if none."""
        return greatest_known_version(self.known, at_most=self.common) or 0


class VersionStep(NamedTuple):
    """What a member does about the versions of an answer.

    Attributes:
        action: the action.
        writes: returns the version that it writes from now on.
    """

    action: Action
    writes: Callable[[VersionNumbers], int] = lambda n: n.used


VersionRule = Rule[VersionNumbers, VersionStep]

UNREADABLE: Final = VersionRule(
    name="unreadable answer",
    holds=lambda n: not n.is_readable,
    says=VersionStep(action=Action.REFUSE),
    why="the leader answered in version {received}, and this member reads up to {latest};"
    " upgrade the member, or start the group's newer members with upgrade.from",
)
ERROR_ANSWER: Final = VersionRule(
    name="error answer",
    holds=lambda n: n.error_code != 0,
    says=VersionStep(action=Action.REPORT),
    why="the leader answered with error {error_code} and no tasks; see the leader's report",
)
ABOVE_SENT: Final = VersionRule(
    name="answered above what was sent",
    holds=lambda n: n.received > n.used,
    says=VersionStep(action=Action.REFUSE),
    why="this member wrote version {used} and was answered in version {received}, which no leader"
    " may do; restart the member, with the upgrade.from of the group if it has one",
)
ABOVE_LATEST: Final = VersionRule(
    name="agreed above the latest known version",
    holds=lambda n: n.common > n.latest,
    says=VersionStep(action=Action.REFUSE),
    why="the leader names version {common} as supported by all members, this member supports"
    " {latest}; upgrade the leader (KAFKA-8649)",
)
TOO_OLD_TO_PROBE: Final = VersionRule(
    name="too old to probe",
    holds=lambda n: n.received < EARLIEST_PROBEABLE_VERSION,
    says=VersionStep(action=Action.KEEP),
    why="a member still writes version {received}, which has no version probing; write version"
    " {used} until that member is bounced without upgrade.from",
)
EVERY_MEMBER_UPGRADED: Final = VersionRule(
    name="every member is upgraded",
    holds=lambda n: n.common > n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.common),
    why="every member supports version {common}; raise the used version from {used} and rejoin",
)
OTHERS_WRITE_LOWER: Final = VersionRule(
    name="others still write lower",
    holds=lambda n: n.received < n.used == n.common,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.common),
    why="every member supports version {used}, but one wrote {received}; rejoin with {used}",
)
MEMBER_NOT_UPGRADED: Final = VersionRule(
    name="a member is not upgraded yet",
    holds=lambda n: n.received < n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.common),
    why="the group is limited to version {common}; lower the used version from {used} and rejoin",
)
SETTLED: Final = VersionRule(
    name="settled",
    holds=always,
    says=VersionStep(action=Action.KEEP),
    why="the group uses version {used}",
)

_LEADERS_NUMBER_NOW: Final = VersionRule(
    name="leader's number, now",
    holds=lambda n: EARLIEST_PROBEABLE_VERSION <= n.received < n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.common),
    why="this member wrote version {used}, the answer is in {received}; change to the leader's"
    " {common} and rejoin",
)
_LEADERS_NUMBER_NEXT_TIME: Final = VersionRule(
    name="leader's number, next time",
    holds=lambda n: n.received >= EARLIEST_PROBEABLE_VERSION and n.common > n.used,
    says=VersionStep(action=Action.NEXT_TIME, writes=lambda n: n.common),
    why="the leader supports version {common}; raise the used version from {used} at the next"
    " rebalance",
)

_UNUSABLE_NUMBER: Final = VersionRule(
    name="unusable second number",
    holds=lambda n: n.common < n.received < n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.received),
    why="the answer is in version {received} but names {common}, a lower one, as agreed; lower the"
    " used version from {used} to {received} and rejoin",
)
_OFFERED_ABOVE: Final = VersionRule(
    name="every member is upgraded",
    holds=lambda n: n.offered > n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.offered),
    why="every member supports version {common}; raise the used version from {used} to {offered}"
    " and rejoin",
)
_OFFERED_AGAIN: Final = VersionRule(
    name="others still write lower",
    holds=lambda n: n.received < n.used == n.offered,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.offered),
    why="every member supports version {used}, but one wrote {received}; rejoin with {used}",
)
_OFFERED_BELOW: Final = VersionRule(
    name="a member is not upgraded yet",
    holds=lambda n: n.received < n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.offered),
    why="the group is limited to version {common}; lower the used version from {used} to {offered}"
    " and rejoin",
)

_LATER_JVM_LEADER: Final = VersionRule(
    name="a later JVM leads",
    holds=lambda n: not n.is_readable and n.latest < n.received < n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.offered or n.latest),
    why="the answer is in version {received}, of which this member reads the two version numbers"
    " only; lower the used version from {used} to one that both know, and rejoin",
)
_SUBSCRIPTION_NOT_READ: Final = VersionRule(
    name="leader could not read the subscription",
    holds=lambda n: (
        n.native is not None and not n.native.subscription_read and n.leader_readable < n.used
    ),
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.leader_readable),
    why="the leader cannot read version {used} and placed this member without its state; write"
    " {leader_readable} and rejoin once",
)
_PIN_STAYS: Final = VersionRule(
    name="pin stays",
    holds=lambda n: n.native is not None and n.pinned,
    says=VersionStep(action=Action.KEEP),
    why="upgrade.from pins version {used}; remove it in the second rolling bounce",
)
_OTHER_VERSION_NAMED: Final = VersionRule(
    name="native leader names another version",
    holds=lambda n: n.native is not None and n.requested != n.used,
    says=VersionStep(action=Action.NEXT_TIME, writes=lambda n: n.requested),
    why="the leader asks for version {requested} from the next rebalance on; {used} was answered in"
    " {received}, no member rejoins for this",
)
_SETTLED_UNDER_NATIVE: Final = VersionRule(
    name="settled under a native leader",
    holds=lambda n: n.native is not None,
    says=VersionStep(action=Action.KEEP),
    why="the leader asks for version {used}, as written",
)

_LEADER_ENDS_UPGRADE: Final = VersionRule(
    name="leader ends the upgrade",
    holds=lambda n: n.led_supported is not None and n.received < n.latest <= n.led_supported,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.latest),
    why="every member supports version {latest}; the leader alone starts the last rebalance",
)
_RAISED_NEXT_TIME: Final = VersionRule(
    name="raised at the next rebalance",
    holds=lambda n: n.offered > n.used,
    says=VersionStep(action=Action.NEXT_TIME, writes=lambda n: n.offered),
    why="the leader supports version {common}; raise the used version from {used} at the next"
    " rebalance",
)
_LEADER_NOT_UPGRADED: Final = VersionRule(
    name="the leader is not upgraded yet",
    holds=lambda n: n.received < n.used and n.common < n.used,
    says=VersionStep(action=Action.REJOIN, writes=lambda n: n.common),
    why="the leader supports version {common}; lower the used version from {used} and rejoin",
)

_GUARDED_ROWS: Final = (
    UNREADABLE,
    ERROR_ANSWER,
    ABOVE_SENT,
    ABOVE_LATEST,
    TOO_OLD_TO_PROBE,
    EVERY_MEMBER_UPGRADED,
    OTHERS_WRITE_LOWER,
    MEMBER_NOT_UPGRADED,
    SETTLED,
)

MEMBER_RULES: Final[dict[MemberModel, Rules[VersionNumbers, VersionStep]]] = {
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
        _SUBSCRIPTION_NOT_READ,
        _PIN_STAYS,
        _OTHER_VERSION_NAMED,
        _SETTLED_UNDER_NATIVE,
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
        _RAISED_NEXT_TIME,
        _LEADER_NOT_UPGRADED,
        SETTLED,
    ),
}

DROPS_TASKS: Final = frozenset({MemberModel.UNGUARDED, MemberModel.GUARDED})
"""Models that ignore the tasks of an answer that makes them rejoin (KAFKA-8972)."""

HAS_FOLLOWUPS: Final = frozenset(
    {MemberModel.FOLLOWUP, MemberModel.FOLLOWUP_WAITS, MemberModel.NATIVE}
)
"""Models that rejoin if their host is missing, or at the time that the leader asked for."""

FIRES_DURING_REBALANCE: Final = frozenset({MemberModel.FOLLOWUP})
"""Models whose follow-up does not wait for a running rebalance to end (KAFKA-14382)."""

SURVIVES_ERRORS: Final = frozenset({MemberModel.NATIVE})
"""Models that report an error answer, refuse an answer that they cannot use, and stay in the group
to rejoin."""
