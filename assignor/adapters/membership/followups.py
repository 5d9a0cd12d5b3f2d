"""What follows an answer: rejoins now or at a point in time, never while a rebalance is running.

A request that falls into a running rebalance would be lost with it or start an endless chain
(KAFKA-14382), so the timer waits until the member is stable.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial

from assignor.adapters.membership.port import Cancellable, ClientPort
from assignor.adapters.membership.reports import Reporter
from assignor.embedding import ProcessDirectory
from assignor.logs import line_logger
from assignor.observe import AnswerRefused, RejoinRequested
from assignor.rebalance import (
    AskAgain,
    End,
    Member,
    Rejoin,
    RejoinLater,
    Step,
    Taken,
    answered_persistent_version,
)
from probing import ClearSchedule, ReportError
from probing.features import PERSISTENT_METADATA

_log = line_logger(__name__)

_RETRY_S = 0.1


def in_a_thread(delay_s: float, call: Callable[[], None]) -> Cancellable:
    """Call `call` from a thread of its own, for clients without an event loop."""
    timer = threading.Timer(min(delay_s, threading.TIMEOUT_MAX), call)
    timer.daemon = True
    timer.name = "followup-rebalance"
    timer.start()
    return timer


class RejoinTimer:
    """At most one pending request; a later one replaces the earlier one. Callable on any thread.

    Args:
        report: called with a sentence if a rejoin is due now and there is no port.

    Attributes:
        port: of the attached consumer; nothing is scheduled before there is one.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self.port: ClientPort | None = None
        self._lock = threading.Lock()
        self._timer: Cancellable | None = None
        # Of the pending request: a call that has begun already cannot be cancelled any more.
        self._number = 0
        self._closed = self._needs_new_answer = False

    def request_rejoin(self) -> None:
        """Let the client join again as soon as it can."""
        if self.port is None:
            self._report("a rejoin is due, but attach(consumer) was never called; call it")
        else:
            self.port.request_rejoin()

    def schedule(self, delay_ms: float) -> None:
        """Ask for a rebalance in `delay_ms`; replaces what was scheduled before."""
        with self._lock:
            self._replace(max(0.0, delay_ms) / 1000)

    def request_new_answer(self) -> None:
        """Ask for a rebalance, again after each answer that arrives before the next join.

        For changes that the group's next answer must contain. The answer of a rebalance that runs
        now may have been decided before the change.
        """
        self._needs_new_answer = True
        self.schedule(0)

    def begin_join(self) -> None:
        """Note that the member joins: the next answer is decided after every change so far."""
        self._needs_new_answer = False

    def answered(self) -> None:
        """Repeat an open `request_new_answer`, which steps of the answer may have replaced."""
        if self._needs_new_answer:
            self.schedule(0)

    def clear(self) -> None:
        """Drop a pending request."""
        with self._lock:
            self._cancel()

    def close(self) -> None:
        """Drop a pending request and take no more."""
        with self._lock:
            self._closed = True
            self._cancel()

    def _cancel(self) -> None:
        self._number += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _replace(self, delay_s: float) -> None:
        self._cancel()
        if self.port is not None and not self._closed:
            self._timer = self.port.start_timer(delay_s, partial(self._fire, self._number))

    def _fire(self, number: int) -> None:
        with self._lock:
            if self.port is None or number != self._number:
                return  # dropped or replaced while this call waited for the lock
            if self.port.is_rebalancing():
                self._replace(_RETRY_S)
                return
            self._timer = None
        self.port.request_rejoin()


def follow(
    taken: Taken, steps: Sequence[Step], replaced: str, timer: RejoinTimer, reporter: Reporter
) -> None:
    """Do what an answer asks for, each step whatever became of the one before.

    Args:
        taken: what taking the answer changed.
        steps: what it asks for, in order.
        replaced: why the client took an empty answer in place of it, or "". It is reported in place
            of the failure of the empty answer.
        timer: of the member.
        reporter: of the member.
    """
    for step in steps:
        reporter.guarded(partial(_carry_out, step, taken, replaced, timer, reporter))
    if replaced and not any(isinstance(step, AskAgain | End) for step in steps):
        reporter.report(replaced)
    timer.answered()


def _carry_out(
    step: Step, taken: Taken, replaced: str, timer: RejoinTimer, reporter: Reporter
) -> None:
    match step:
        case Rejoin(command=command):
            reporter.observe(
                RejoinRequested(
                    rule=command.rule,
                    why=command.why,
                    used_version_before=taken.used_before,
                    used_version_after=taken.used_after,
                    for_version=taken.received.for_version,
                )
            )
            _rejoin(step, timer, reporter)
        case RejoinLater(delay_ms=delay_ms):
            timer.schedule(delay_ms)
        case ClearSchedule():
            timer.clear()
        case ReportError() if taken.asks_for_shutdown:
            _log.info("the whole group was asked to stop, as request_shutdown does (KIP-671)")
        case ReportError(why=why):
            reporter.report(why)
        case AskAgain(why=why, wait_ms=wait_ms):
            if wait_ms:
                timer.schedule(wait_ms)
            reporter.observe(AnswerRefused(generation=taken.generation, why=replaced or why))
            reporter.report(replaced or why)
        case End(why=why):
            reporter.fail(replaced or why)


def _rejoin(step: Rejoin, timer: RejoinTimer, reporter: Reporter) -> None:
    if timer.port is None or not step.wait_ms:
        timer.request_rejoin()
        return
    # Schedule first: a listener that fails on the report must not prevent the rejoin.
    timer.schedule(step.wait_ms)
    reporter.report(
        f"{step.command.why}; {step.in_a_row} answers in a row requested a rejoin,"
        f" so this member waits {step.wait_ms / 1000:g} s; look at the leader's log"
    )


def remember(taken: Taken, member: Member, directory: ProcessDirectory, reporter: Reporter) -> None:
    """Keep version, reached versions and format of an answer in the state directory.

    The version is written only when it changes; a restart then needs no rebalance for it.
    """
    reporter.guarded(lambda: directory.remember(taken.used_after))
    reporter.guarded(lambda: directory.remember_reached(member.topology.reached))
    level = member.state.levels.level_of(PERSISTENT_METADATA)
    if level == 0 and taken.received.assignment is not None:
        level = answered_persistent_version(taken.received.assignment)
    if level > 0:
        reporter.guarded(lambda: directory.follow(level))
