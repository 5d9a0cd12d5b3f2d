"""What can happen to a member, and what it is told to do: events in the past tense, commands.

Every command carries the name of the rule that fired and a sentence for the person who reads the
log. Times are milliseconds on the caller's clock, carried by the events: nothing here reads one.
"""

from dataclasses import dataclass
from typing import Final

from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.versions import NO_REBALANCE, UNKNOWN_VERSION

ERROR_NAMES: Final = {
    1: "INCOMPLETE_SOURCE_TOPIC_METADATA",
    2: "VERSION_PROBING",
    3: "ASSIGNMENT_ERROR",
    4: "SHUTDOWN_REQUESTED",
}
"""Error codes of an answer; 0 is no error, any other number is as bad as 3."""

INFORMATIVE_ERROR: Final = 2
"""The one error code that ends nobody: Kafka's members log it and go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeAnswer:
    """What a leader of ours says to a member of ours beside the two numbers of Kafka.

    It travels in the trailer behind an answer in a Kafka version, or in the body of a native one,
    so its presence alone says that the leader is ours.

    Attributes:
        next_version: what to write at the next rebalance; 0 when the leader does not say.
        subscription_read: whether the leader could read the body of the member's subscription;
            if not, the tasks were placed blindly and the member rejoins once.
        levels: finalized levels that the group goes by, with their epoch.
    """

    next_version: int = 0
    subscription_read: bool = True
    levels: FinalizedLevels = UNKNOWN_LEVELS


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentReceived:
    """An answer of the leader arrived.

    An answer in a version that the member does not know is an event too: its first eight bytes,
    the two numbers, can be read in every version from 3 on.

    Attributes:
        received_version: the version that the answer is written in.
        commonly_supported_version: its second number; unknown (-1) for versions 1 and 2.
        error_code: 0, or why there are no tasks in it.
        host_missing: the member has an endpoint, the answer a host map, and the one is not in
            the other.
        next_rebalance_ms: when the leader wants the next rebalance; 0 now, the default never.
        now_ms: when the answer arrived.
        led_supported_version: for the member that led this rebalance, the lowest version
            supported in the group; None for everyone else. Only the KIP's text asks for it.
        native: what a leader of ours added; None when the leader is a JVM.
    """

    received_version: int
    commonly_supported_version: int = UNKNOWN_VERSION
    error_code: int = 0
    host_missing: bool = False
    next_rebalance_ms: int = NO_REBALANCE
    now_ms: int = 0
    led_supported_version: int | None = None
    native: NativeAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStarted:
    """The group began a rebalance that this member takes part in."""

    now_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """The clock moved; sent as often as the caller polls."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsPolled:
    """A member looked where levels are kept (KIP-584, T3).

    Attributes:
        polled: what it found; ``UNKNOWN_LEVELS`` if nobody answered.
        leads: the member leads the group, so it is the one to start a rebalance.
    """

    polled: FinalizedLevels
    leads: bool


Event = AssignmentReceived | LevelsPolled | RebalanceStarted | TimePassed


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinNow:
    """Rejoin the group at once, writing ``used_version``."""

    used_version: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepVersion:
    """Go on with ``used_version``: this answer changes nothing about it."""

    used_version: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteNextTime:
    """Write ``used_version`` at the next rebalance, whenever that comes."""

    used_version: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreTasks:
    """Leave the tasks of this answer alone, as members before 2.4 did (KAFKA-8972)."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRebalance:
    """Rejoin at ``at_ms``."""

    at_ms: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSchedule:
    """Forget any follow-up that was scheduled: nothing more is to be done."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportError:
    """Tell the application that the leader answered with error ``code`` and no tasks."""

    code: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Stop: this member or leader cannot go on, and ``why`` says what to do about it.

    After an answer, a member of ours stops at that answer only: it takes none of its tasks and asks
    again after a back-off. It ends where a finalized level is one that it cannot meet.
    """

    rule: str
    why: str


Command = (
    RejoinNow
    | KeepVersion
    | WriteNextTime
    | IgnoreTasks
    | ScheduleRebalance
    | ClearSchedule
    | ReportError
    | Refuse
)
