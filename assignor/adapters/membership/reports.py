"""What a member reports: to its listener, to observers and hooks, and to the log."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from assignor.embedding import ListenerFailed, is_interrupt
from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.logs import line_logger
from assignor.observe import (
    AnswersDecided,
    AssignmentFailed,
    AssignmentTaken,
    LoggingHook,
    MemberFailed,
    MembershipLost,
    Observation,
    Observer,
    Outcome,
    RebalanceEnd,
    RebalanceHook,
    RebalanceWatch,
)
from assignor.rebalance import (
    GroupAnswer,
    LeaderSettings,
    PartitionsByTask,
    Taken,
    TasksHeld,
    TasksListener,
    waiting_subtopologies,
)
from assignor.topology import Subtopology
from encoding import RebalanceError, shown, task_order
from probing import Content

_log = line_logger(__name__)

_KEPT_FAILURES = 20
# A member that gives up a task joins again with its next poll, and others hear of that by a
# heartbeat, every 3 s by default.
_HANDOVER_S = 10.0


class FirstTasks(RebalanceHook):
    """Whether a member has the tasks that the group gives it, after its first answers.

    The first answers may give none, and better ones follow at once: the first leader does not know
    the topics yet, and in a cooperative group other members give up the tasks first. Meanwhile
    a member may have standby tasks already, so only active tasks count at once.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # Since when it has active tasks, and since when an answer stands that asks for no other.
        self._held_s = self._stands_s = inf

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """Note active tasks, and an answer after which no other one follows."""
        if end.outcome is Outcome.SETTLED:
            self._stands_s = min(self._stands_s, self._clock())
        if end.active_tasks and end.outcome in {Outcome.SETTLED, Outcome.FOLLOWUP}:
            self._held_s = min(self._held_s, self._clock())

    def on_membership_lost(self, lost: MembershipLost) -> None:  # noqa: ARG002 whatever it had
        """Begin anew."""
        self._held_s = self._stands_s = inf

    def has_them(self, *, may_wait: bool) -> bool:
        """Return whether it has its tasks; no active ones, after a while if it `may_wait`."""
        return self._clock() >= min(self._held_s, self._stands_s + _HANDOVER_S * may_wait)


class Reporter:
    """Calls listener, observer, hooks and log; what they raise is logged and goes no further.

    Args:
        listener: of the application.
        observer: called with every observation, or None.
        hooks: called with whole rebalances, after a `LoggingHook` if none of them is one.

    Attributes:
        listener: as given.
        observer: as given.
        first_tasks: whether the group has given the member its tasks.
        failed: why the member ended, or None while it runs.
        failures: the last 20 failures, as sentences.
    """

    def __init__(
        self,
        listener: TasksListener,
        observer: Observer | None = None,
        hooks: Sequence[RebalanceHook] = (),
    ) -> None:
        self.listener = listener
        self.observer = observer
        self.first_tasks = FirstTasks(time.monotonic)
        logs = any(isinstance(hook, LoggingHook) for hook in hooks)
        hooks = (self.first_tasks, *(() if logs else (LoggingHook(),)), *hooks)
        self._hooks = RebalanceWatch(hooks, time.monotonic)
        self.failed: str | None = None
        self.failures: list[str] = []
        self._listener_failed: tuple[str, BaseException] | None = None
        self._waits: frozenset[str] = frozenset()

    def check_offsets(self, settings: LeaderSettings) -> None:
        """Warn of standbys that the listener does not report."""
        has_changelogs = any(part.changelog_topics for part in settings.subtopologies)
        has_offsets = self.listener.reports_offsets or not has_changelogs
        if settings.config.num_standby_replicas and not has_offsets:
            _log.warning(
                "num_standby_replicas is set, but the listener reports no offsets, so no standby of"
                " this member ever counts as caught up: keep the state in TaskStores, or override"
                " task_offsets"
            )

    def fail(self, why: str) -> None:
        """Keep and report why the member ends: `failed` has the reason."""
        self.failed = why
        self.observe(MemberFailed(why=why))
        self.report(why)

    def report(self, why: str) -> None:
        """Report a failure to log and listener; called on any thread."""
        _log.error("%s", why)
        self._keep(why)
        self.guarded(lambda: self.listener.on_error(why))

    def report_waits(self, sentences: Sequence[str]) -> None:
        """Report what a leader's tasks wait for, as far as the answer before did not say it."""
        new = [sentence for sentence in sentences if sentence not in self._waits]
        self._waits = frozenset(sentences)
        for sentence in new:
            self.report(sentence)

    def observe(self, observation: Observation) -> None:
        """Pass an observation to hooks and observer."""
        self.guarded(lambda: self._hooks(observation))
        if self.observer is not None:
            observer = self.observer
            self.guarded(lambda: observer(observation))

    def observe_taken(
        self,
        taken: Taken,
        subtopologies: Sequence[Subtopology],
        *,
        size: int,
        stopped: tuple[str, ...],
    ) -> None:
        """Pass on that the member took an assignment, unless it cannot be read.

        Args:
            taken: what it changed.
            subtopologies: of the member.
            size: bytes of the assignment.
            stopped: what has to be corrected before all tasks run.
        """
        assignment, held = taken.received.assignment, taken.held
        if assignment is None:
            return
        self.observe(
            AssignmentTaken(
                generation=taken.generation,
                version=assignment.version,
                commonly_supported_version=assignment.commonly_supported_version,
                active_tasks=tuple(sorted(held.active, key=task_order)),
                standby_tasks=tuple(sorted(held.standby, key=task_order)),
                error_code=assignment.error_code,
                next_version=taken.used_after,
                warmup_tasks=tuple(sorted(held.warmup, key=task_order)),
                size=size,
                waiting=waiting_subtopologies(assignment.native, subtopologies),
                stopped=stopped,
            )
        )

    def report_given_up(self, tasks: TasksHeld, *, is_lost: bool, is_logged: bool) -> None:
        """Tell the listener, and observers of what is lost, that tasks are given up before a join.

        Args:
            tasks: all tasks of the member; none if what is lost was given up before.
            is_lost: other members may run them already.
            is_logged: the log says already why.
        """
        revoke = self.listener.on_tasks_revoked
        if is_lost:
            lost = tuple(sorted(tasks.active, key=task_order))
            self.observe(MembershipLost(active_tasks=lost, is_logged=is_logged))
            revoke = self.listener.on_tasks_lost
        self.call_listener(revoke, tasks.active, tasks.standby)

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Report why a leader has no answers, in a block.

        Raises:
            LeaderRefused: as the block did; the member has failed.
            RebalanceError, MemoryError: as the block did.
            TaskAssignmentError: the block has raised anything else: a defect of a client, a
                strategy or a resource.
        """
        try:
            yield
        except LeaderRefused as error:
            self.fail(str(error))
            raise
        except RebalanceError as error:
            self._report_no_answer(str(error))
            raise
        except MemoryError:
            raise
        except Exception as error:
            why = (
                f"the leader failed, {type(error).__name__}: {shown(error)}; the group joins again"
            )
            self._report_no_answer(why)
            raise TaskAssignmentError(why) from error

    def _report_no_answer(self, why: str) -> None:
        self.observe(AssignmentFailed(why=why))
        self.report(why)

    def call_listener(self, method: Callable[..., None], *tasks: PartitionsByTask) -> None:
        """Tell the listener what becomes of tasks; as `guarded`, and kept for the loop that polls.

        An application whose listener has failed may lack what its tasks need, such as their state.
        """

        def call() -> None:
            try:
                method(*tasks)
            except (Exception, SystemExit) as error:
                self._listener_failed = self._listener_failed or (method.__name__, error)
                raise

        self.guarded(call)

    def raise_listener_error(self) -> None:
        """Raise the first error of `call_listener` since the last call of this, if there is one.

        Raises:
            ListenerFailed: there is one.
        """
        failed, self._listener_failed = self._listener_failed, None
        if failed is not None:
            if isinstance(failed[1], Exception) and is_interrupt(failed[1]):
                raise failed[1]
            raise ListenerFailed(*failed) from failed[1]

    def guarded(self, step: Callable[[], None]) -> None:
        """Do a step; keep and log what it raises, so that the next step is done all the same.

        A SystemExit too: out of a callback it would end the client's thread, not the application.

        Raises:
            KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, MemoryError: as the step did.
        """
        try:
            step()
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 the client's own bookkeeping is next
            _log.exception("a rebalance step failed")
            self._keep(shown(f"{type(error).__name__}: {error}"))

    def _keep(self, sentence: str) -> None:
        self.failures = [*self.failures[1 - _KEPT_FAILURES :], sentence]


def decided(answer: GroupAnswer, *, seconds: float) -> AnswersDecided:
    """Return the observation of what the leader decided, and how long that took."""
    decision = answer.decision
    answers = answer.answers.values()
    return AnswersDecided(
        version=decision.version,
        commonly_supported_version=decision.commonly_supported_version,
        members=len(answer.answers),
        rule=decision.rule,
        why=decision.why,
        version_probing=decision.version_probing,
        future_members=decision.future_members,
        quarantined_members=tuple(sorted(answer.quarantined)),
        warnings=answer.warnings,
        joined=answer.joined,
        next_version=decision.next_version,
        empty_members=tuple(
            member.member_id for member in decision.answers if member.content is Content.EMPTY
        ),
        placed_tasks=sum(len(set(each.assignment.active_tasks)) for each in answers),
        placed_standbys=sum(len(each.assignment.standby_tasks) for each in answers),
        moved_tasks=answer.moved_tasks,
        waiting_members=tuple(sorted(answer.withheld)),
        waiting_partitions=answer.waiting_tasks,
        size=sum(len(each.user_data) for each in answers),
        seconds=seconds,
    )
