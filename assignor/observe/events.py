"""What an adapter reports while a rebalance runs: frozen values, for traces, metrics and tests.

An observer is any callable that takes one of them. It runs on the client's own thread, so it must
be quick; what it raises is logged and goes no further.
"""

from collections.abc import Callable
from dataclasses import dataclass

from encoding import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionWritten:
    """A subscription went out with a JoinGroup. `size` is in bytes."""

    version: int
    latest_supported_version: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersDecided:
    """This member led: the version of all answers, the rule that fired, who stood out.

    `joined` lists (member id, used version, latest supported version) of every readable member;
    `empty_members` are those answered without tasks because of their version; `next_version` is
    what native members without a pin are told to write next, 0 where there are none.
    `placed_tasks` and `placed_standbys` count what was handed out, `moved_tasks` the active ones
    that leave the client they ran on; `waiting_members` get some of theirs only after their
    cooperative owners have given them up. `size` is of all answers, in bytes, and `seconds` is what
    deciding took.
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
    size: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentTaken:
    """An assignment was decoded and taken.

    `error_code` as in `encoding.AssignorError`; `next_version` is what this member writes next;
    `warmup_tasks` are some of the standby tasks; `size` is of the answer, in bytes.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRefused:
    """The answer of a generation could not be followed; the member asks again later."""

    generation: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHandled:
    """The answer of a generation is dealt with: what follows is asked for, the listener told."""

    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentFailed:
    """This member led and had no valid answer; nothing was sent."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipLost:
    """The group went on without this member: its tasks run elsewhere already."""

    active_tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinRequested:
    """The member asked for another rebalance; `for_version`: only because of the version."""

    rule: str
    why: str
    used_version_before: int
    used_version_after: int
    for_version: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFailed:
    """The member cannot go on as its release behaves; `why` is one sentence."""

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
