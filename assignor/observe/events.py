"""Events that an adapter reports during a rebalance, for traces, metrics and tests.

An observer is any callable that takes one event. It runs on the client's thread, so it must be
quick. An exception that it raises is logged and ignored.
"""

from collections.abc import Callable
from dataclasses import dataclass

from encoding import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionWritten:
    """The member sent a subscription in a JoinGroup request. `size` is in bytes."""

    version: int
    latest_supported_version: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersDecided:
    """This member is the leader and has computed the assignments of all members.

    `joined` lists (member id, used version, latest supported version) of every readable member.
    `empty_members` get no tasks because of their version. `next_version` is the version that native
    members without a pin have to write next; 0 if there are none. `placed_tasks` and
    `placed_standbys` are numbers of assigned tasks; `moved_tasks` is the number of active tasks
    that move to another client. `waiting_members` get some tasks later, after the cooperative
    owners have revoked them. `waiting_partitions` is the number of partitions that no member runs,
    as none of them has the form that their subtopology has reached. `size` is the size of all
    assignments in bytes, `seconds` the time to compute them.
    """

    version: int
    commonly_supported_version: int
    members: int
    rule: str
    why: str
    version_probing: bool
    future_members: tuple[str, ...]
    quarantined_members: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    joined: tuple[tuple[str, int, int], ...] = ()
    empty_members: tuple[str, ...] = ()
    next_version: int = 0
    placed_tasks: int = 0
    placed_standbys: int = 0
    moved_tasks: int = 0
    waiting_members: tuple[str, ...] = ()
    waiting_partitions: int = 0
    size: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentTaken:
    """The member accepted an assignment.

    `error_code` is as in `encoding.AssignorError`. `next_version` is the version that this member
    writes next. `warmup_tasks` is a subset of the standby tasks. `size` is the size of the
    assignment in bytes. `waiting` are subtopologies of this member of which no member has a task;
    `stopped` says what has to be done for them, empty while they may only wait for new topics.
    """

    generation: int
    version: int
    commonly_supported_version: int
    active_tasks: tuple[TaskId, ...]
    standby_tasks: tuple[TaskId, ...]
    error_code: int
    next_version: int
    warmup_tasks: tuple[TaskId, ...] = ()
    size: int = 0
    waiting: tuple[int, ...] = ()
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRefused:
    """The member rejected the assignment of a generation; it rejoins later."""

    generation: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHandled:
    """The member has processed the assignment of a generation and called the listener."""

    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentFailed:
    """This member is the leader and found no valid assignment; nothing was sent."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipLost:
    """The group continued without this member: other members already run its tasks.

    Attributes:
        active_tasks: that it had.
        is_logged: the log says why: the application took too long between two polls.
    """

    active_tasks: tuple[TaskId, ...]
    is_logged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinRequested:
    """The member requested another rebalance; `for_version`: only to change its version."""

    rule: str
    why: str
    used_version_before: int
    used_version_after: int
    for_version: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFailed:
    """The member cannot continue; `why` is one sentence."""

    why: str


Observation = (
    SubscriptionWritten
    | AnswersDecided
    | AssignmentTaken
    | AnswerRefused
    | AnswerHandled
    | AssignmentFailed
    | MembershipLost
    | RejoinRequested
    | MemberFailed
)
Observer = Callable[[Observation], None]
