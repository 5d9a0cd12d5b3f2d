"""Events that a member receives, and the commands that it gets in return.

Every command carries the name of the rule that decided and a sentence for the log. Times are
milliseconds on the caller's clock; events carry them, no code here reads a clock.
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
"""Error codes of an answer; 0 is no error, any other number is handled like 3."""

INFORMATIVE_ERROR: Final = 2
"""The one error code that ends no member: Kafka's members log it and continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeAnswer:
    """What a native leader tells a native member in addition to Kafka's two version numbers.

    It is sent in the trailer behind an answer in a Kafka version, or in the body of a native
    answer. An answer with this part therefore comes from a native leader.

    Attributes:
        next_version: version to write at the next rebalance; 0 if the leader names none.
        subscription_read: whether the leader could read the body of the member's subscription. If
            not, it placed the tasks without the member's state, and the member rejoins once.
        levels: finalized levels of the group, with their epoch.
    """

    next_version: int = 0
    subscription_read: bool = True
    levels: FinalizedLevels = UNKNOWN_LEVELS


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentReceived:
    """An answer of the leader arrived.

    This includes an answer in a version that the member does not know: from version 3 on, the
    first eight bytes (two version numbers) are readable in every version.

    Attributes:
        received_version: the version that the answer is written in.
        commonly_supported_version: its second number; unknown (-1) for versions 1 and 2.
        error_code: 0, or why the answer has no tasks.
        host_missing: the member has an endpoint, the answer has a host map, and the host map does
            not contain the endpoint.
        next_rebalance_ms: when the leader wants the next rebalance; 0 now, by default never.
        now_ms: when the answer arrived.
        led_supported_version: for the member that led this rebalance, the lowest version supported
            in the group; None for all others. Only the model of the KIP's text uses it.
        native: what a native leader added; None if the leader is a JVM.
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
    """Time passed; the caller sends this at every poll."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsPolled:
    """A member is about to write or to lead, and takes in what its polls found (KIP-584, T3).

    `rejoin_for_levels` decides whether a poll leads to a rebalance.

    Attributes:
        polled: the newest levels found; ``UNKNOWN_LEVELS`` if no broker answered.
    """

    polled: FinalizedLevels


Event = AssignmentReceived | LevelsPolled | RebalanceStarted | TimePassed


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinNow:
    """Rejoin the group at once, writing ``used_version``."""

    used_version: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepVersion:
    """Keep writing ``used_version``: this answer does not change it."""

    used_version: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteNextTime:
    """Write ``used_version`` at the next rebalance; do not start one for it."""

    used_version: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreTasks:
    """Ignore the tasks of this answer, as members before 2.4 did (KAFKA-8972)."""

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
    """Cancel the scheduled follow-up rebalance, if there is one."""

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
    """Stop: this member or leader cannot continue; ``why`` says what to do.

    A native member refuses a single answer: it takes none of its tasks and rejoins after a
    back-off. It stops for good only if it does not support a finalized level.
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
