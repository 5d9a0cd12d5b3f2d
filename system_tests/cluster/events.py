"""Events in the trace of a simulated cluster.

Checkers and printed lines use these events only. Nodes are named by lane: ``c0`` is a controller,
``b0`` a broker. Times are milliseconds of the simulated clock.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from probing.features import FinalizedLevels, LevelRange
from system_tests.cluster.machines.content import Dropped, Entry
from system_tests.cluster.machines.replica import Record


class Started(NamedTuple):
    """A node started: its release, the supported ranges, and the highest level it can read."""

    at_ms: int
    node: str
    release: str
    ranges: Mapping[str, LevelRange]
    reads: int
    setting: int | None


class Stopped(NamedTuple):
    """A node stopped; ``how`` is stop, kill or ended."""

    at_ms: int
    node: str
    how: str


class Activated(NamedTuple):
    """A controller became the active one."""

    at_ms: int
    node: str
    term: int


class Committed(NamedTuple):
    """A batch is committed: a majority of the quorum holds it. ``node`` noticed it first."""

    at_ms: int
    node: str
    offset: int
    records: tuple[Record, ...]


class Standing(StrEnum):
    """How the active controller regards a node."""

    REGISTERED = "is registered, fenced"
    REJECTED = "is rejected"
    UNFENCED = "is unfenced"
    SILENCED = "is fenced: its session expired"
    UNREGISTERED = "unregisters"


class Regarded(NamedTuple):
    """The standing of a node changes; `why`: it is rejected."""

    at_ms: int
    node: str
    standing: Standing
    why: str = ""


class Asked(NamedTuple):
    """An operator's request reached the active controller, which decided on it.

    Attributes:
        request: number of the request.
        levels: requested level by feature.
        kind: kind of the updates: upgrade, safe or unsafe downgrade.
        dry: the request is a dry run.
        error: error of the outcome, "NONE" if accepted.
        rule, why: first result with an error, else the first result.
        loses: levels whose content is lost.
        voters: live controllers with their ranges.
        epoch: epoch before the request.
    """

    at_ms: int
    node: str
    request: int
    levels: Mapping[str, int]
    kind: str
    dry: bool
    error: str
    rule: str
    why: str
    loses: tuple[str, ...]
    voters: Mapping[str, Mapping[str, LevelRange]]
    epoch: int


class Acknowledged(NamedTuple):
    """The operator received the response that a request is done."""

    at_ms: int
    request: int
    epoch: int


class SnapshotWritten(NamedTuple):
    """A node wrote a snapshot of everything before an offset."""

    at_ms: int
    node: str
    end_offset: int
    finalized: FinalizedLevels


class Rewritten(NamedTuple):
    """A node rewrote its state at new levels."""

    at_ms: int
    node: str
    finalized: FinalizedLevels
    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...]


class Loaded(NamedTuple):
    """A node loaded a snapshot: its own at start, or that of the active controller."""

    at_ms: int
    node: str
    finalized: FinalizedLevels
    end_offset: int
    entries: tuple[Entry, ...]


class Published(NamedTuple):
    """A node uses these levels from now on."""

    at_ms: int
    node: str
    finalized: FinalizedLevels


class Spoke(NamedTuple):
    """A node sends to a peer at this level from now on; ``peer`` "" means all peers."""

    at_ms: int
    node: str
    peer: str
    level: int


class Left(NamedTuple):
    """A node stops because of a level that it does not support."""

    at_ms: int
    node: str
    feature_why: str
    reaction: str


class Resigned(NamedTuple):
    """An active controller resigned."""

    at_ms: int
    node: str


class Rested(NamedTuple):
    """The cluster is at rest: the active controller, and the levels of all nodes."""

    at_ms: int
    active: str
    finalized: FinalizedLevels


class Restless(NamedTuple):
    """The cluster did not come to rest in time."""

    at_ms: int
    waited_ms: int
    why: str
