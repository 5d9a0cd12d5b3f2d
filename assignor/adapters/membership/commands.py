"""Doing what probing asks for after an answer: rejoin now, later, or after a back-off."""

import time
from collections.abc import Sequence
from functools import partial

from assignor.adapters.membership.client import ClientPort, Reporting
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from assignor.observe import AnswerRefused, Observer, RebalanceHook, RejoinRequested
from assignor.rebalance import (
    NEW_PACE,
    AskAgain,
    DropRejoin,
    End,
    LeaderSettings,
    Received,
    Rejoin,
    RejoinLater,
    RejoinPace,
    Report,
    Step,
    StreamsMember,
    TasksListener,
    steps_after,
)


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
        self._pace: RejoinPace | None = NEW_PACE

    def close(self) -> None:
        """Drop pending follow-ups; call it when the consumer is closed."""
        if self._timer is not None:
            self._timer.close()

    def _follow(self, received: Received, *, used_before: int) -> None:
        """Do what probing asks for, each step whatever became of the one before."""
        # A member of ours ends too where the group's level is one that it cannot meet.
        survives = self._leader.release.is_native and self._member.state.refusal is None
        self._pace, steps = steps_after(
            received, self._pace, now_ms=time.time() * 1000, survives=survives
        )
        for step in steps:
            self._guarded(partial(self._carry_out, step, received, used_before))

    def _carry_out(self, step: Step, received: Received, used_before: int) -> None:
        match step:
            case Rejoin(command=command):
                self._observe(
                    RejoinRequested(
                        rule=command.rule,
                        why=command.why,
                        used_version_before=used_before,
                        used_version_after=self._member.state.used_version,
                        for_version=received.for_version,
                    )
                )
                self._rejoin_after(step)
            case RejoinLater(delay_ms=delay_ms) if self._timer is not None:
                self._timer.schedule(delay_ms)
            case DropRejoin() if self._timer is not None:
                self._timer.clear()
            case Report(why=why):
                self._report(why)
            case AskAgain(why=why, wait_ms=wait_ms):
                if self._timer is not None and wait_ms:
                    self._timer.schedule(wait_ms)
                self._observe(AnswerRefused(generation=self._generation, why=why))
                self._report(why)
            case End(why=why):
                self._fail(why)
            case _:
                pass

    def _rejoin_after(self, step: Rejoin) -> None:
        if self._timer is None or not step.wait_ms:
            self._rejoin_now()
            return
        # First: what a listener does with the report must not keep the timer from its work.
        self._timer.schedule(step.wait_ms)
        self._report(
            f"{step.command.why}; {step.in_a_row} answers in a row asked for it, so this member"
            f" waits {step.wait_ms / 1000:g} s; look at the leader's log"
        )

    def _rejoin_now(self) -> None:
        if self._client is None:
            self._report("a rejoin is due, but attach(consumer) was never called; call it")
            return
        self._client.request_rejoin()
