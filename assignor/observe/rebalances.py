"""Rebalances as an operator counts them: when one began and ended, what came of it, what it moved.

Adapters report steps (`assignor.observe.events`). `RebalanceWatch` is an observer that puts the
steps of
one rebalance together and tells hooks. A hook is what writes a log line or counts a metric:
`log_lines.py`, `prometheus.py`, or a `RebalanceHook` of your own.
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
    """What came of a rebalance, for this member."""

    SETTLED = "settled"
    """It has its tasks, and nothing more is asked for now."""
    VERSION = "version"
    """It joins again at once to write another version (KIP-268)."""
    FOLLOWUP = "followup"
    """It joins again at once for something else: tasks wait for their owners, a host is missing."""
    ERROR = "error"
    """The leader answered with an error and no tasks."""
    REFUSED = "refused"
    """The answer could not be read or followed; it asks again after a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStart:
    """A member asked to join: the version that it wrote, and the bytes of its subscription."""

    used_version: int
    latest_supported_version: int
    subscription_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEnd:
    """A member was answered, and has told the application.

    Attributes:
        generation: of the group.
        outcome: what came of it; `why` is the reason, where there is one.
        used_version: that the subscription was written in; received_version: that of the answer, 0
            when it could not be read; next_version: to be written next.
        commonly_supported_version: the answer's second number.
        active_tasks, standby_tasks, warmup_tasks: what the member has now; warm-ups are some of
            the standby tasks.
        gained_tasks, lost_tasks: active tasks that it did not have after the rebalance before, and
            those that it has no more.
        subscription_size, assignment_size: in bytes.
        seconds: from the first JoinGroup of this rebalance until the application knew its tasks.
        joins: how many JoinGroups it took.
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


class RebalanceHook:
    """Does nothing; subclass it and override what is wanted.

    Called on the client's own thread or loop: be quick. What a method raises is logged.
    """

    def on_rebalance_start(self, start: RebalanceStart) -> None:
        """This member asks to join; not called again when a join has to be repeated."""

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """This member was answered."""

    def on_assignment_completed(self, decided: AnswersDecided) -> None:
        """This member leads, and has decided on everybody's answers."""

    def on_assignment_error(self, why: str) -> None:
        """This member leads, and has no valid answer; nothing is sent, and the group asks again."""

    def on_membership_lost(self, lost: MembershipLost) -> None:
        """The group went on without this member."""

    def on_member_failed(self, why: str) -> None:
        """This member cannot go on."""


class RebalanceWatch:
    """An observer that tells hooks about whole rebalances.

    Args:
        hooks: called in this order.
        clock: seconds that only grow, as `time.monotonic`.
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
        self._active: frozenset[TaskId] = frozenset()

    def __call__(self, observation: Observation) -> None:
        """Take one step of a rebalance."""
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
        )
        self._active = active
        self._joins = 0
        self._tell(lambda hook: hook.on_rebalance_end(end))

    def _outcome(self) -> tuple[Outcome, str]:
        """First row that holds, wins."""
        taken, rejoin = self._taken, self._rejoin
        if self._refused:
            return Outcome.REFUSED, self._refused
        if taken is not None and taken.error_code:
            return Outcome.ERROR, f"error {taken.error_code}"
        if rejoin is not None:
            return (Outcome.VERSION if rejoin.for_version else Outcome.FOLLOWUP), rejoin.why
        return Outcome.SETTLED, ""

    def _tell(self, call: Callable[[RebalanceHook], None]) -> None:
        for hook in self._hooks:
            try:
                call(hook)
            except Exception:  # noqa: BLE001 a hook's mistake is nobody else's
                _log.exception("the hook %s failed", type(hook).__name__)
