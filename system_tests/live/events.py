"""What a member process reports: one event per line of JSON on its standard output.

The orchestrator reads these lines and nothing else; no check greps a log. What the assignor
observes is reported as it is; the other events are defined here. `Event` lists them all: the
`event` key of a line is the name of the class, and the other keys are its fields. Times are
`time.monotonic()` in milliseconds, which on Linux is one clock for all processes of a machine.

Ownership is reported so that an interval is never shorter than the truth: `PartitionsAssigned` is
stamped before the first record may be processed, `PartitionsRevoked` after the last one was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from assignor.observe import AnswersDecided, MemberFailed, RejoinRequested, SubscriptionWritten
from system_tests.json_lines import LineError, read_fields, read_object, write_line

__all__ = [
    "EVENTS",
    "AnswersDecided",
    "AssignmentTaken",
    "ClientRebootstrapped",
    "Event",
    "HostsReported",
    "MemberFailed",
    "MemberReady",
    "MemberStarted",
    "MemberStopped",
    "OffsetsCommitted",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
    "RecordsProcessed",
    "RejoinRequested",
    "Report",
    "ReportError",
    "StateChanged",
    "SubscriptionWritten",
    "TasksChanged",
    "read_report",
    "write_report",
]


class ReportError(ValueError):
    """A line on a member's standard output is not one of its events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStarted:
    """The process runs."""

    pid: int
    release: str
    upgrade_from: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReady:
    """The consumer is built and about to join."""

    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentTaken:
    """The member took its assignment; tasks as text, `0_1`; `size` in bytes."""

    generation: int
    version: int
    commonly_supported_version: int
    active_tasks: tuple[str, ...]
    standby_tasks: tuple[str, ...]
    error_code: int
    next_version: int
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsAssigned:
    """From now on the member may process these partitions."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRevoked:
    """The member no longer processes these partitions; it gave them up in a rebalance."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsLost:
    """The member no longer processes these partitions; the group had removed it before."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsProcessed:
    """A batch of one partition was processed: offsets first to last, both included."""

    partition: int
    first_offset: int
    last_offset: int
    began_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsCommitted:
    """The member committed these next offsets, as sorted (partition, offset) pairs."""

    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRebootstrapped:
    """The client went back to its bootstrap servers; `rule` as in `probing.rebootstrap`."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStopped:
    """The member ended cleanly: its consumer is closed and has left the group."""

    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """A JVM member is in another `KafkaStreams.State`."""

    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksChanged:
    """A JVM member runs other tasks."""

    active_tasks: tuple[str, ...]
    standby_tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsReported:
    """Endpoint -> "active" and "standby" -> partitions, as the member would route queries."""

    hosts: Mapping[str, Mapping[str, tuple[str, ...]]]


Event = (
    MemberStarted
    | MemberReady
    | SubscriptionWritten
    | AnswersDecided
    | AssignmentTaken
    | RejoinRequested
    | PartitionsAssigned
    | PartitionsRevoked
    | PartitionsLost
    | RecordsProcessed
    | OffsetsCommitted
    | ClientRebootstrapped
    | MemberStopped
    | MemberFailed
    | StateChanged
    | TasksChanged
    | HostsReported
)

EVENTS: Mapping[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
"""Each event by its kind, the `event` key of its line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An event, with its member and its time.

    Attributes:
        member: its name, "a", "b", ..., the same after a restart.
        incarnation: how many times this member had been started before, from 0.
        at_ms: monotonic milliseconds.
        event: what happened.
    """

    member: str
    incarnation: int
    at_ms: float
    event: Event


def write_report(event: Event, *, at_ms: float) -> str:
    """Write one line, without its end; the reader knows the member by its pipe."""
    return write_line(event, event=type(event).__name__, at_ms=round(at_ms, 3))


def read_report(line: str, *, member: str, incarnation: int) -> Report:
    """Read one line of a member's standard output.

    Raises:
        ReportError: the line is not JSON, names no known event, or its fields are not the event's.
    """
    try:
        at_ms, event = _read_event(line)
    except LineError as error:
        raise ReportError(f"member {member} wrote a line that is no event: {error}") from error
    return Report(member=member, incarnation=incarnation, at_ms=at_ms, event=event)


def _read_event(line: str) -> tuple[float, Event]:
    found = read_object(line)
    kind, at_ms = EVENTS.get(str(found.pop("event", None))), found.pop("at_ms", None)
    if kind is None:
        raise LineError(f"no known event: {line[:200]!r}")
    if not isinstance(at_ms, int | float):
        raise LineError(f"{kind.__name__}.at_ms must be milliseconds, not {at_ms!r}")
    return float(at_ms), read_fields(kind, found)
