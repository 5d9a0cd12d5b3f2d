"""What a cluster of brokers and controllers leaves behind: one frozen value per thing, in order.

Checkers and printed lines are functions over these and see nothing else. Nodes are called by the
name of their lane: ``c0`` a controller, ``b0`` a broker, ``m0`` a member of the group. Times are
milliseconds of the simulated clock.
"""

from collections.abc import Mapping
from typing import NamedTuple

from probing.features import FinalizedLevels, LevelRange
from system_tests.cluster.machines import Dropped, Entry, Record


class Started(NamedTuple):
    """A node was started: its program, what that supports, and the highest level it can read."""

    at_ms: int
    node: str
    release: str
    ranges: Mapping[str, LevelRange]
    reads: int
    setting: int | None


class Stopped(NamedTuple):
    """A node is down: ``how`` is stop, kill, or ended."""

    at_ms: int
    node: str
    how: str


class Activated(NamedTuple):
    """A controller became the active one."""

    at_ms: int
    node: str
    term: int


class Committed(NamedTuple):
    """A batch is on a majority of the quorum, first noted by ``node``."""

    at_ms: int
    node: str
    offset: int
    records: tuple[Record, ...]


class Registered(NamedTuple):
    """A broker was told that it is registered, fenced for now."""

    at_ms: int
    node: str


class Rejected(NamedTuple):
    """A node was told that it may not come in."""

    at_ms: int
    node: str
    why: str


class Unfenced(NamedTuple):
    """The active controller lets clients use a broker."""

    at_ms: int
    node: str


class Silenced(NamedTuple):
    """The active controller has not heard of a node for a session: it is fenced."""

    at_ms: int
    node: str


class Asked(NamedTuple):
    """An operator's request reached the active controller, which decided at once.

    Attributes:
        request: number of the request.
        levels: level by feature that was asked for; kind: of the updates.
        dry: validate only.
        error: of the outcome; rule, why: of its first line that tells.
        loses: levels whose content is lost.
        voters: controllers that were known to be alive, with their ranges.
        epoch: before the request.
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
    """The operator was told that a request is done."""

    at_ms: int
    request: int
    epoch: int


class SnapshotWritten(NamedTuple):
    """A node wrote all that was before an offset."""

    at_ms: int
    node: str
    end_offset: int
    finalized: FinalizedLevels


class Rewritten(NamedTuple):
    """A node wrote its state again at new levels."""

    at_ms: int
    node: str
    finalized: FinalizedLevels
    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...]


class Loaded(NamedTuple):
    """A node took a snapshot: its own at start, or that of the active controller."""

    at_ms: int
    node: str
    finalized: FinalizedLevels
    end_offset: int
    entries: tuple[Entry, ...]


class Published(NamedTuple):
    """A node goes by these levels from now on."""

    at_ms: int
    node: str
    finalized: FinalizedLevels


class Spoke(NamedTuple):
    """A node sends to a peer at this level from now on; to all peers where ``peer`` is empty."""

    at_ms: int
    node: str
    peer: str
    level: int


class Left(NamedTuple):
    """A node ends because of a level that it does not support."""

    at_ms: int
    node: str
    feature_why: str
    reaction: str


class Unregistered(NamedTuple):
    """A broker's registration was given up."""

    at_ms: int
    node: str


class Resigned(NamedTuple):
    """An active controller gave up its office."""

    at_ms: int
    node: str


class Polled(NamedTuple):
    """The group leader asked a broker for levels."""

    at_ms: int
    member: str
    broker: str
    epoch: int
    rule: str


class Rebalanced(NamedTuple):
    """The group rebalances; ``cause`` is levels or membership."""

    at_ms: int
    leader: str
    cause: str
    finalized: FinalizedLevels


class Adopted(NamedTuple):
    """A member of the group goes by these levels from now on."""

    at_ms: int
    member: str
    finalized: FinalizedLevels


class MemberStarted(NamedTuple):
    """A member of the group starts, and knows no levels."""

    at_ms: int
    member: str


class Struck(NamedTuple):
    """A fault."""

    at_ms: int
    node: str
    what: str


class Did(NamedTuple):
    """A step of the operator, in words."""

    at_ms: int
    what: str


class Rested(NamedTuple):
    """The cluster came to rest: who is active, and at which levels everybody is."""

    at_ms: int
    active: str
    finalized: FinalizedLevels


class Restless(NamedTuple):
    """The cluster did not come to rest in time."""

    at_ms: int
    waited_ms: int
    why: str


Happening = (
    Started
    | Stopped
    | Activated
    | Committed
    | Registered
    | Rejected
    | Unfenced
    | Silenced
    | Asked
    | Acknowledged
    | SnapshotWritten
    | Rewritten
    | Loaded
    | Published
    | Spoke
    | Left
    | Unregistered
    | Resigned
    | Polled
    | Rebalanced
    | Adopted
    | MemberStarted
    | Struck
    | Did
    | Rested
    | Restless
)
