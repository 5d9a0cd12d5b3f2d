"""Doing what probing asks for after an answer: rejoin now, later, or after a back-off."""

import time
from collections.abc import Sequence

from assignor.adapters.membership.client import ClientPort, Reporting
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from assignor.observe import AnswerRefused, Observer, RebalanceHook, RejoinRequested
from assignor.rebalance import LeaderSettings, Received, StreamsMember, TasksListener
from probing import ClearSchedule, RejoinNow, ReportError, ScheduleRebalance

# Wait before asking again after an answer that could not be read: doubled up to a minute.
_FIRST_BACKOFF_MS = 1_000
_LAST_BACKOFF_MS = 60_000


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
        self._backoff_ms = _FIRST_BACKOFF_MS

    def close(self) -> None:
        """Drop pending follow-ups; call it when the consumer is closed."""
        if self._timer is not None:
            self._timer.close()

    def _follow(self, received: Received, *, used_before: int) -> None:
        """Do what probing asks for."""
        for command in received.commands:
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
                    self._rejoin_now()
                case ScheduleRebalance() if self._timer is not None:
                    self._timer.schedule(command.at_ms - time.time() * 1000)
                case ClearSchedule() if self._timer is not None:
                    self._timer.clear()
                case ReportError():
                    self._report(command.why)
                case _:
                    pass
        if received.failure:
            self._lead_astray(received.failure)
        else:
            self._backoff_ms = _FIRST_BACKOFF_MS

    def _rejoin_now(self) -> None:
        if self._client is None:
            self._report("a rejoin is due, but attach(consumer) was never called; call it")
            return
        self._client.request_rejoin()

    def _lead_astray(self, why: str) -> None:
        """It could not be followed: an emulated release dies of it, ours asks again.

        But ours ends too where the group's level is one that it cannot meet.
        """
        if not self._leader.release.is_native or self._member.state.refusal is not None:
            self._fail(why)
            return
        self._observe(AnswerRefused(generation=self._generation, why=why))
        self._report(why)
        if self._timer is not None:
            self._timer.schedule(self._backoff_ms)
        self._backoff_ms = min(2 * self._backoff_ms, _LAST_BACKOFF_MS)
