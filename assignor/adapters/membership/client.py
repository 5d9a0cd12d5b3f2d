"""Between the shared assignor and a client: what it can ask, and where its failures go."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from assignor.logs import line_logger
from assignor.observe import (
    LoggingHook,
    MemberFailed,
    Observation,
    Observer,
    RebalanceHook,
    RebalanceWatch,
)
from assignor.rebalance import TasksListener
from encoding import TopicPartition, shown

_log = line_logger(__name__)

_KEPT_FAILURES = 20


class ClientPort(Protocol):
    """What an adapter can ask of its client; every method is quick and never raises."""

    def request_rejoin(self) -> None:
        """Have the client join again as soon as it can."""

    def is_rebalancing(self) -> bool:
        """Whether a rebalance is running, so that a request would be lost in it."""

    def has_lost_membership(self) -> bool:
        """Whether the group went on without this member."""

    def generation(self) -> int:
        """Generation of the last join, also while its answers are being decided; -1 if unknown."""

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """Partitions that the client has been assigned and not given up."""


class Reporting:
    """Tells observer, listener and log; whatever those raise goes no further.

    Attributes:
        failed: why an emulated release ended, or None; members of ours go on.
        failures: the last things that went wrong, as sentences.
    """

    def __init__(
        self,
        listener: TasksListener,
        observer: Observer | None,
        hooks: Sequence[RebalanceHook] | None,
    ) -> None:
        self._listener = listener
        self._observer = observer
        self._hooks = RebalanceWatch((LoggingHook(),) if hooks is None else hooks, time.monotonic)
        self.failed: str | None = None
        self.failures: list[str] = []

    def _fail(self, why: str) -> None:
        self.failed = why
        self._observe(MemberFailed(why=why))
        self._report(why)

    def _report(self, why: str) -> None:
        _log.error("%s", why)
        self.failures = [*self.failures[1 - _KEPT_FAILURES :], why]
        self._guarded(lambda: self._listener.on_error(why))

    def _observe(self, observation: Observation) -> None:
        self._guarded(lambda: self._hooks(observation))
        if self._observer is not None:
            observer = self._observer
            self._guarded(lambda: observer(observation))

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step; what it raises is that step's failure, and the next one is done all the same.

        A SystemExit too: out of a callback it would end the client's thread, not the application.
        KeyboardInterrupt, GeneratorExit, a cancelled task and MemoryError pass.
        """
        try:
            step()
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 the client's own bookkeeping is next
            self._remember_failure(error)

    def _remember_failure(self, error: BaseException) -> str:
        """Log what a step raised, being handled now; returns it as a sentence."""
        _log.exception("a rebalance step failed")
        sentence = shown(f"{type(error).__name__}: {error}")
        self.failures = [*self.failures[1 - _KEPT_FAILURES :], sentence]
        return sentence
