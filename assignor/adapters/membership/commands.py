"""Doing what probing asks for after an answer: rejoin now, later, or after a back-off."""

import time
from collections.abc import Sequence
from functools import partial

from assignor.adapters.membership.client import ClientPort, Reporting
from assignor.adapters.membership.rejoin_pace import RejoinPace
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from assignor.observe import AnswerRefused, Observer, RebalanceHook, RejoinRequested
from assignor.rebalance import LeaderSettings, Received, StreamsMember, TasksListener
from probing import ClearSchedule, Command, RejoinNow, ReportError, ScheduleRebalance


class Following(Reporting):
    """Carries commands out on the client, once there is one."""

    _leader: LeaderSettings
    _member: StreamsMember
    _generation: int

    def __init__(
        self,
        listener: TasksListener,
        observer: Observer | None,
        hooks: Sequence[RebalanceHook] | None,
    ) -> None:
        super().__init__(listener, observer, hooks)
        self._client: ClientPort | None = None
        self._timer: FollowupTimer | None = None
        self._pace = RejoinPace()

    def close(self) -> None:
        """Drop pending follow-ups; call it when the consumer is closed."""
        if self._timer is not None:
            self._timer.close()

    def _follow(self, received: Received, *, used_before: int) -> None:
        """Do what probing asks for, each command whatever became of the one before."""
        wait_ms = self._pace.wait_ms(received, now_ms=time.time() * 1000)
        for command in received.commands:
            self._guarded(partial(self._carry_out, command, received, used_before, wait_ms))
        if received.failure:
            self._guarded(partial(self._lead_astray, received.failure, wait_ms))

    def _carry_out(
        self, command: Command, received: Received, used_before: int, wait_ms: int
    ) -> None:
        match command:
            case RejoinNow():
                self._observe(
                    RejoinRequested(
                        rule=command.rule,
                        why=command.why,
                        used_version_before=used_before,
                        used_version_after=self._member.state.used_version,
                        for_version=received.for_version,
                    )
                )
                self._rejoin_after(wait_ms, command.why)
            case ScheduleRebalance() if self._timer is not None:
                self._timer.schedule(max(command.at_ms - time.time() * 1000, wait_ms))
            case ClearSchedule() if self._timer is not None:
                self._timer.clear()
            case ReportError():
                self._report(command.why)
            case _:
                pass

    def _rejoin_after(self, wait_ms: int, why: str) -> None:
        if self._timer is None or not wait_ms:
            self._rejoin_now()
            return
        # First: what a listener does with the report must not keep the timer from its work.
        self._timer.schedule(wait_ms)
        self._report(
            f"{why}; {self._pace.in_a_row} answers in a row asked for it, so this member waits"
            f" {wait_ms / 1000:g} s; look at the leader's log"
        )

    def _rejoin_now(self) -> None:
        if self._client is None:
            self._report("a rejoin is due, but attach(consumer) was never called; call it")
            return
        self._client.request_rejoin()

    def _lead_astray(self, why: str, wait_ms: int) -> None:
        """It could not be followed: an emulated release dies of it, ours asks again.

        But ours ends too where the group's level is one that it cannot meet.

        Args:
            why: a sentence.
            wait_ms: before asking again; 0 where a rejoin was asked for already.
        """
        if not self._leader.release.is_native or self._member.state.refusal is not None:
            self._fail(why)
            return
        if self._timer is not None and wait_ms:
            self._timer.schedule(wait_ms)
        self._observe(AnswerRefused(generation=self._generation, why=why))
        self._report(why)
