"""Rebalance summaries: start, end, outcome and moved tasks of each rebalance.

Adapters report events (`assignor.observe.events`). `RebalanceWatch` is an observer that combines
the events of one rebalance and calls hooks. A hook writes log lines (`log_lines.py`) or metrics
(`prometheus.py`); for anything else subclass `RebalanceHook`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from assignor.logs import line_logger
from assignor.observe.events import (
    AnswerHandled,
    AnswerRefused,
    AnswersDecided,
    AssignmentFailed,
    AssignmentTaken,
    MemberFailed,
    MembershipLost,
    Observation,
    RejoinRequested,
    SubscriptionWritten,
)
from encoding import TaskId, task_order

_log = line_logger(__name__)


class Outcome(StrEnum):
    """The result of a rebalance for this member."""

    SETTLED = "settled"
    """The member has its tasks and does not rejoin now."""
    WAITING = "waiting"
    """As settled, but no member has a task of some subtopologies: their topics do not exist yet."""
    STOPPED = "stopped"
    """As waiting, and the tasks run only once something is corrected; `why` says what."""
    VERSION = "version"
    """The member rejoins immediately to write another version (KIP-268)."""
    FOLLOWUP = "followup"
    """The member rejoins immediately for another reason, such as tasks that others still own."""
    ERROR = "error"
    """The leader sent an error and no tasks."""
    REFUSED = "refused"
    """The assignment could not be decoded or used; the member rejoins after a delay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStart:
    """A member sent a JoinGroup; `subscription_size` is in bytes."""

    used_version: int
    latest_supported_version: int
    subscription_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEnd:
    """A member received its assignment, and its application has been notified.

    Attributes:
        generation: generation of the group.
        outcome: the result; `why` is the reason, or "".
        used_version: version of the member's subscription.
        received_version: version of the assignment; 0 if it could not be decoded.
        next_version: version that the member writes next.
        commonly_supported_version: commonly supported version in the assignment.
        active_tasks, standby_tasks, warmup_tasks: the member's tasks; warm-ups are a subset of the
            standby tasks.
        gained_tasks, lost_tasks: active tasks that the member did not have before the rebalance,
            and those that it no longer has.
        subscription_size, assignment_size: in bytes.
        seconds: time from the first JoinGroup of this rebalance until the application was notified.
        joins: number of JoinGroups in this rebalance.
        is_leader: the member has computed the assignments of this generation.
    """

    generation: int
    outcome: Outcome
    why: str
    used_version: int
    received_version: int
    next_version: int
    commonly_supported_version: int
    active_tasks: tuple[TaskId, ...]
    standby_tasks: tuple[TaskId, ...]
    warmup_tasks: tuple[TaskId, ...]
    gained_tasks: tuple[TaskId, ...]
    lost_tasks: tuple[TaskId, ...]
    subscription_size: int
    assignment_size: int
    seconds: float
    joins: int
    is_leader: bool = False


class RebalanceHook:
    """Base class of hooks; its methods do nothing. Subclass it and override what you need.

    Methods are called on the client's thread or event loop and must be quick. Exceptions are
    logged and ignored.
    """

    def on_rebalance_start(self, start: RebalanceStart) -> None:
        """This member joins; called once per rebalance, even if the join is repeated."""

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """This member has received its assignment."""

    def on_assignment_completed(self, decided: AnswersDecided) -> None:
        """This member is the leader and has computed all assignments."""

    def on_assignment_error(self, why: str) -> None:
        """This member is the leader and found no valid assignment; the group rejoins."""

    def on_membership_lost(self, lost: MembershipLost) -> None:
        """The group continued without this member."""

    def on_member_failed(self, why: str) -> None:
        """This member cannot continue."""


class RebalanceWatch:
    """An observer that combines events into rebalances and calls hooks.

    Args:
        hooks: the hooks, called in this order.
        clock: a monotonic clock in seconds, such as `time.monotonic`.
    """

    def __init__(self, hooks: Sequence[RebalanceHook], clock: Callable[[], float]) -> None:
        self._hooks = tuple(hooks)
        self._clock = clock
        self._began_s = 0.0
        self._joins = 0
        self._wrote: SubscriptionWritten | None = None
        self._taken: AssignmentTaken | None = None
        self._rejoin: RejoinRequested | None = None
        self._refused = ""
        self._leads = False
        self._active: frozenset[TaskId] = frozenset()

    def __call__(self, observation: Observation) -> None:
        """Process one event."""
        match observation:
            case SubscriptionWritten():
                self._start(observation)
            case AssignmentTaken():
                self._taken = observation
            case RejoinRequested():
                self._rejoin = observation
            case AnswerRefused(why=why):
                self._refused = why
            case AnswerHandled(generation=generation):
                self._end(generation)
            case AnswersDecided():
                self._leads = True
                self._tell(lambda hook: hook.on_assignment_completed(observation))
            case AssignmentFailed(why=why):
                self._tell(lambda hook: hook.on_assignment_error(why))
            case MembershipLost():
                self._active = frozenset()
                self._tell(lambda hook: hook.on_membership_lost(observation))
            case MemberFailed(why=why):
                self._tell(lambda hook: hook.on_member_failed(why))

    def _start(self, wrote: SubscriptionWritten) -> None:
        self._wrote = wrote
        self._taken = self._rejoin = None
        self._refused = ""
        self._leads = False
        self._joins += 1
        if self._joins > 1:
            return
        self._began_s = self._clock()
        start = RebalanceStart(
            used_version=wrote.version,
            latest_supported_version=wrote.latest_supported_version,
            subscription_size=wrote.size,
        )
        self._tell(lambda hook: hook.on_rebalance_start(start))

    def _end(self, generation: int) -> None:
        wrote, taken = self._wrote, self._taken
        active = frozenset(() if taken is None else taken.active_tasks)
        outcome, why = self._outcome()
        used = 0 if wrote is None else wrote.version
        end = RebalanceEnd(
            generation=generation,
            outcome=outcome,
            why=why,
            used_version=used,
            received_version=0 if taken is None else taken.version,
            next_version=used if taken is None else taken.next_version,
            commonly_supported_version=0 if taken is None else taken.commonly_supported_version,
            active_tasks=tuple(sorted(active, key=task_order)),
            standby_tasks=() if taken is None else taken.standby_tasks,
            warmup_tasks=() if taken is None else taken.warmup_tasks,
            gained_tasks=tuple(sorted(active - self._active, key=task_order)),
            lost_tasks=tuple(sorted(self._active - active, key=task_order)),
            subscription_size=0 if wrote is None else wrote.size,
            assignment_size=0 if taken is None else taken.size,
            seconds=self._clock() - self._began_s if self._joins else 0.0,
            joins=self._joins,
            is_leader=self._leads,
        )
        self._active = active
        self._joins = 0
        self._tell(lambda hook: hook.on_rebalance_end(end))

    def _outcome(self) -> tuple[Outcome, str]:
        """Return the outcome and its reason; the first condition that holds decides."""
        taken, rejoin = self._taken, self._rejoin
        if self._refused:
            return Outcome.REFUSED, self._refused
        if taken is not None and taken.error_code:
            return Outcome.ERROR, f"error {taken.error_code}"
        if rejoin is not None:
            return (Outcome.VERSION if rejoin.for_version else Outcome.FOLLOWUP), rejoin.why
        if taken is not None and taken.waiting:
            which = f"no tasks in {_listed(taken.waiting)}"
            if taken.stopped:
                return Outcome.STOPPED, f"{which}: {'; '.join(taken.stopped)}"
            return Outcome.WAITING, f"{which}: topics are missing or unknown"
        return Outcome.SETTLED, ""

    def _tell(self, call: Callable[[RebalanceHook], None]) -> None:
        for hook in self._hooks:
            try:
                call(hook)
            except Exception:  # noqa: BLE001 an error in a hook must not affect the member
                _log.exception("hook %s failed; its exception is ignored", type(hook).__name__)


def _listed(subtopologies: Sequence[int]) -> str:
    many = "subtopology" if len(subtopologies) == 1 else "subtopologies"
    return f"{many} {', '.join(map(str, subtopologies))}"
