"""Events of a simulation: one frozen value for each thing that happened.

The trace is a list of these and of the coordinator's `GroupEvent`s, in order. Checkers, costs and
printed lines are functions of the trace alone. Threads go by their names; times are milliseconds of
the simulated clock.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from encoding import HostInfo, TaskId, TopicPartition
from system_tests.coordinator import GroupEvent
from system_tests.sim.level_events import Adopted, Finalized, Looked

Partitions = tuple[TopicPartition, ...]
LOSES_DISK = "loses its state directory"
"""Text of the event after which a process remembers nothing."""


class Started(NamedTuple):
    """A thread of a process was started.

    `carries`: versions of the topology, where the topology is changed.
    """

    at_ms: int
    thread: str
    release: str
    upgrade_from: str | None
    versions: tuple[int, ...]
    is_native: bool
    latest_version: int
    carries: tuple[int, ...] = ()


class Ended(NamedTuple):
    """A thread ended, and runs nothing any more: `how` is stop, kill, or why it failed."""

    at_ms: int
    thread: str
    how: str
    failed: bool


class Wrote(NamedTuple):
    """A thread wrote a subscription for its next JoinGroup. `size` is in bytes."""

    at_ms: int
    thread: str
    used_version: int
    latest_supported_version: int
    size: int


class Answer(NamedTuple):
    """One member's part of what a leader decided; `size` is in bytes.

    `tasks`: active ones, by the numbers of the change of the topology; empty without a change.
    """

    member_id: str
    thread: str
    version: int
    commonly_supported_version: int
    content: str
    partitions: Partitions
    size: int
    tasks: tuple[TaskId, ...] = ()


class Answered(NamedTuple):
    """A leader answered its group.

    `used_versions` are the versions that the members wrote, in the order of `answers`; `withheld`
    are partitions that no member got, because their owner has yet to give them up.
    """

    at_ms: int
    thread: str
    generation: int
    leader_is_native: bool
    version: int
    commonly_supported_version: int
    rule: str
    future: tuple[str, ...]
    used_versions: tuple[int, ...]
    answers: tuple[Answer, ...]
    withheld: Partitions


class Took(NamedTuple):
    """A thread took an answer.

    `partitions` is what it runs from now on, `gained` what of it is new; `restored` counts the
    records of state that it has to read first, `restore_ms` for how long; `restore_limit_ms` is
    how long at most, where the leader prefers processes that are caught up. `failure` is why it
    cannot follow, or "".
    """

    at_ms: int
    thread: str
    member_id: str
    generation: int
    received_version: int
    commonly_supported_version: int
    used_before: int
    used_after: int
    error_code: int
    partitions: Partitions
    gained: Partitions
    active_tasks: tuple[TaskId, ...]
    standby_tasks: tuple[TaskId, ...]
    restored: int
    restore_ms: int
    restore_limit_ms: int
    failure: str


class Gave(NamedTuple):
    """A thread stopped processing these partitions, and with them these tasks."""

    at_ms: int
    thread: str
    partitions: Partitions
    tasks: tuple[TaskId, ...]


class Rejoined(NamedTuple):
    """A thread decided to rejoin; `cause` is one word of `Cause`, `rule` the row that fired."""

    at_ms: int
    thread: str
    cause: str
    rule: str
    used_before: int
    used_after: int


class Settled(NamedTuple):
    """The group is at rest: every thread is in the same generation."""

    at_ms: int
    generation: int
    leader: str
    used_versions: tuple[tuple[str, int], ...]


class Unsettled(NamedTuple):
    """The group did not settle in the time it was given."""

    at_ms: int
    within_ms: int
    why: str


class Happened(NamedTuple):
    """A fault, or an action of the operator that no other event covers."""

    at_ms: int
    thread: str
    text: str


class Hindrance(Enum):
    """How a fault delays a member."""

    STANDSTILL = "stands still"
    SLOW = "thinks before each sync"
    LOST = "notices a lost message"
    LATE = "waits for a late message"


class Hindered(NamedTuple):
    """A fault delays a member by this time; `ms` 0 ends a delay. It is not printed."""

    at_ms: int
    thread: str
    kind: Hindrance
    ms: int


Hosts = tuple[tuple[HostInfo, Partitions], ...]
"""Partitions that each host serves, sorted by host."""


def hosts_of(served: Iterable[tuple[HostInfo | None, Iterable[TopicPartition]]]) -> Hosts:
    """Return host -> partitions of members, without those that have no endpoint."""
    found: dict[HostInfo, set[TopicPartition]] = {}
    for endpoint, partitions in served:
        if endpoint is not None:
            found.setdefault(endpoint, set()).update(partitions)
    return tuple((host, tuple(sorted(found[host]))) for host in sorted(found))


class Given(NamedTuple):
    """What one member wrote to a leader, and its answer; `form`: of the routing view in the answer.

    `owned` are the partitions that it has not given up (KIP-429); `reported` is the view that it
    holds by its subscription, as epoch and checksum, `holds` the one that it does hold; None: none.
    """

    thread: str
    endpoint: HostInfo | None
    owned: Partitions
    reported: tuple[int, int] | None
    holds: tuple[int, int] | None
    partitions: Partitions
    standby_tasks: tuple[TaskId, ...]
    form: str


class Decided(NamedTuple):
    """What a leader made of its group, in a simulation with dimensions; follows an `Answered`.

    `active` and `standby` are the hosts of its members with what they were given. `names_stalled`:
    it warns of copies that made no progress, which it does not wait for.
    """

    at_ms: int
    generation: int
    leader_is_native: bool
    members: tuple[Given, ...]
    active: Hosts
    standby: Hosts
    names_stalled: bool


class Followed(NamedTuple):
    """A thread took an answer, in a simulation with dimensions; follows a `Took`.

    `decided` is what the leader of this generation decided, None if that is not known any more.
    `active` and `standby` are the routing that the thread goes by from now on; `has_view` says
    whether it holds a routing view; `is_followed`: the answer's tasks were taken.
    """

    at_ms: int
    thread: str
    is_native: bool
    is_followed: bool
    partitions: Partitions
    has_view: bool
    active: Hosts
    standby: Hosts
    decided: Decided | None


class AtRest(NamedTuple):
    """One thread of a group at rest: its tasks and routing; `answered` is the version it got.

    `endpoint` is None, too, where its subscription had no room for it. `hears_of_warmups`: it and
    the leader that answered it are native, so that its answer says which copies are warm-ups.
    """

    thread: str
    hears_of_warmups: bool
    process: int
    endpoint: HostInfo | None
    answered: int
    partitions: Partitions
    active_tasks: tuple[TaskId, ...]
    standby_tasks: tuple[TaskId, ...]
    warmup_tasks: tuple[TaskId, ...]
    active: Hosts
    standby: Hosts


class Rested(NamedTuple):
    """A group with dimensions has come to rest; follows a `Settled`.

    `standbys` and `warmups` are num.standby.replicas and max.warmup.replicas, None: copies are not
    checked. `has_room`: all routing fits the group's record. `is_quiet`: no follow-up is due, and
    the leader's own answer has room for one, which JVM leaders have from version 7 on, and it warns
    of no copies that it does not wait for.
    """

    at_ms: int
    members: tuple[AtRest, ...]
    standbys: int | None
    warmups: int
    has_room: bool
    is_quiet: bool


class Drained(NamedTuple):
    """The operator waited for follow-ups: `rounds` were needed, `bound` at most are promised."""

    at_ms: int
    rounds: int
    bound: int


Happening = (
    Started
    | Ended
    | Wrote
    | Answered
    | Took
    | Gave
    | Rejoined
    | Adopted
    | Looked
    | Finalized
    | Settled
    | Unsettled
    | Happened
    | Hindered
    | Decided
    | Followed
    | Rested
    | Drained
    | GroupEvent
)
"""One line of the trace."""


class Cause:
    """Why a member joins: the reason in its JoinGroup and in the coordinator's events."""

    STARTED = "started"
    STOPPED = "stopped"
    REBALANCE = "rebalance"
    VERSION = "version"
    FOLLOWUP = "follow-up"
    REVOKED = "revoked"
    LOST = "lost"
    RETRY = "retry"
    FORCED = "forced"
    LEVELS = "levels"
