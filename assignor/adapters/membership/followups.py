"""Rejoins after an answer: now, later, or after a back-off, through the client's port."""

from assignor.adapters.membership.client import ClientPort
from assignor.adapters.membership.core import Taken
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from assignor.adapters.membership.reports import Reporter
from assignor.logs import line_logger
from assignor.observe import AnswerRefused, RejoinRequested
from assignor.rebalance import AskAgain, End, Rejoin, RejoinLater, Step
from probing import ClearSchedule, ReportError

_log = line_logger(__name__)


class Followups:
    """Carries out the steps that follow an answer.

    Without a client, a rejoin that is due now is reported; later ones are dropped.

    Args:
        reporter: where refused answers and repeated rejoins are reported.

    Attributes:
        client: port of the attached consumer; None before `connect`.
        timer: schedules rejoins; None before `connect`.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.client: ClientPort | None = None
        self.timer: FollowupTimer | None = None
        self._needs_new_answer = False
        self._replaced = ""

    def connect(self, client: ClientPort) -> None:
        """Use this client from now on."""
        self.client = client
        self.timer = FollowupTimer(client.request_rejoin, client.is_rebalancing, client.start_timer)

    def request_rejoin(self) -> None:
        """Have the client join again as soon as it can."""
        if self.client is None:
            self._reporter.report("a rejoin is due, but attach(consumer) was never called; call it")
            return
        self.client.request_rejoin()

    def request_new_answer(self) -> None:
        """Ask for a rebalance, again after each answer that arrives before the next join.

        For changes that the group's next answer must contain. The answer of a rebalance that runs
        now may have been decided before the change. Called on any thread.
        """
        self._needs_new_answer = True
        if self.timer is not None:
            self.timer.schedule(0)

    def begin_join(self) -> None:
        """Note that the member joins: the next answer is decided after every change so far."""
        self._needs_new_answer = False

    def answer_replaced(self, why: str) -> None:
        """Note why the client cannot take the next answer and takes an empty one; "": it can.

        The reason is reported in place of the failure of the empty answer.
        """
        self._replaced = why

    def answered(self) -> None:
        """Repeat an open `request_new_answer`, which steps of the answer may have replaced."""
        why, self._replaced = self._replaced, ""
        if why:
            self._reporter.report(why)
        if self._needs_new_answer:
            self.request_new_answer()

    def carry_out(self, step: Step, taken: Taken) -> None:
        """Do one step that follows the answer `taken`."""
        match step:
            case Rejoin(command=command):
                self._reporter.observe(
                    RejoinRequested(
                        rule=command.rule,
                        why=command.why,
                        used_version_before=taken.used_before,
                        used_version_after=taken.used_after,
                        for_version=taken.received.for_version,
                    )
                )
                self._rejoin(step)
            case RejoinLater(delay_ms=delay_ms) if self.timer is not None:
                self.timer.schedule(delay_ms)
            case ClearSchedule() if self.timer is not None:
                self.timer.clear()
            case ReportError() if taken.asks_for_shutdown:
                _log.info("the whole group was asked to stop, as request_shutdown does (KIP-671)")
            case ReportError(why=why):
                self._reporter.report(why)
            case AskAgain(why=why, wait_ms=wait_ms):
                why, self._replaced = self._replaced or why, ""
                if self.timer is not None and wait_ms:
                    self.timer.schedule(wait_ms)
                self._reporter.observe(AnswerRefused(generation=taken.generation, why=why))
                self._reporter.report(why)
            case End(why=why):
                why, self._replaced = self._replaced or why, ""
                self._reporter.fail(why)
            case _:
                pass

    def close(self) -> None:
        """Drop the pending rejoin and take no more."""
        if self.timer is not None:
            self.timer.close()

    def _rejoin(self, step: Rejoin) -> None:
        if self.timer is None or not step.wait_ms:
            self.request_rejoin()
            return
        # Schedule first: a listener that fails on the report must not prevent the rejoin.
        self.timer.schedule(step.wait_ms)
        self._reporter.report(
            f"{step.command.why}; {step.in_a_row} answers in a row requested a rejoin,"
            f" so this member waits {step.wait_ms / 1000:g} s; look at the leader's log"
        )
