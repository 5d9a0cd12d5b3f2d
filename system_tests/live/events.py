"""What a member process reports: one event per line of JSON on its standard output.

The orchestrator reads these lines and nothing else; no check greps a log. What the assignor
observes is reported as it is; the rest is defined here. Each event is a frozen
dataclass whose name is its `event` field on the wire. Times are `time.monotonic()` in milliseconds,
which on Linux is one clock for all processes of a machine.

Ownership is reported so that an interval is never shorter than the truth: `PartitionsAssigned` is
stamped before the first record may be processed, `PartitionsRevoked` after the last one was.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from assignor.observe import AnswersDecided, MemberFailed, RejoinRequested, SubscriptionWritten

__all__ = [
    "EVENTS",
    "AnswersDecided",
    "AssignmentTaken",
    "BeganAgain",
    "Event",
    "HostsTold",
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
    """The member took its answer; tasks as text, `0_1`; `size` is of the answer, in bytes."""

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
    """The member has stopped to process these partitions and handed them back."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsLost:
    """The member has stopped to process these partitions; the group had thrown it out before."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsProcessed:
    """One batch of one partition: offsets first to last, both included; began at `began_ms`."""

    partition: int
    first_offset: int
    last_offset: int
    began_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsCommitted:
    """The group has the next offsets to read, as (partition, offset) pairs, sorted."""

    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeganAgain:
    """The client went back to its bootstrap servers; `rule` as in `probing.rebootstrap.machine`."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStopped:
    """Clean end: the consumer is closed and has left the group."""

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
class HostsTold:
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
    | BeganAgain
    | MemberStopped
    | MemberFailed
    | StateChanged
    | TasksChanged
    | HostsTold
)

EVENTS: Mapping[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        MemberStarted,
        MemberReady,
        SubscriptionWritten,
        AnswersDecided,
        AssignmentTaken,
        RejoinRequested,
        PartitionsAssigned,
        PartitionsRevoked,
        PartitionsLost,
        RecordsProcessed,
        OffsetsCommitted,
        BeganAgain,
        MemberStopped,
        MemberFailed,
        StateChanged,
        TasksChanged,
        HostsTold,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An event with who and when.

    Attributes:
        member: name of the lane, "a", "b", ...; it outlives restarts.
        incarnation: how many times this member had been started before, from 0.
        at_ms: monotonic milliseconds.
        event: what happened.
    """

    member: str
    incarnation: int
    at_ms: float
    event: Event


def write_report(event: Event, *, at_ms: float) -> str:
    """Write one line, without its end; who it is from is known by whose pipe it comes through."""
    head = {"event": type(event).__name__, "at_ms": round(at_ms, 3)}
    return json.dumps(head | asdict(event), separators=(",", ":"))


def read_report(line: str, *, member: str, incarnation: int) -> Report:
    """Read one line of a member's standard output.

    Raises:
        ReportError: the line is not JSON, names no known event, or its fields are not the event's.
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ReportError(
            f"member {member} wrote a line that is not JSON: {line[:200]!r}"
        ) from error
    if not isinstance(found, dict) or found.get("event") not in EVENTS:
        raise ReportError(f"member {member} wrote no known event: {line[:200]!r}")
    kind = EVENTS[found.pop("event")]
    at_ms = found.pop("at_ms", None)
    names = {field.name for field in fields(kind)}
    if not isinstance(at_ms, int | float) or set(found) != names:
        raise ReportError(
            f"member {member} wrote {kind.__name__} with fields {sorted(found)}; "
            f"it has at_ms and {sorted(names)}"
        )
    values: dict[str, Any] = {name: _frozen(value) for name, value in found.items()}
    return Report(member=member, incarnation=incarnation, at_ms=float(at_ms), event=kind(**values))


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
