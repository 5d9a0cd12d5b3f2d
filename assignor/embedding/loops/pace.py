"""The time that an application takes between two polls, and what it costs when it is too long."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

# Setting of the consumer -> what happens after a longer pause; the first that is exceeded counts.
_EFFECTS: Final = MappingProxyType(
    {
        "max_poll_interval_ms": "",  # it depends on the member
        "session_timeout_ms": "a member that had sent a JoinGroup request before loses its "
        "membership, since no heartbeats are sent until the poll that takes the answer",
    }
)
HAS_LEFT: Final = "left the group meanwhile, and other members, if there are any, run its tasks"
STAYS: Final = "is still in the group, and leaves it if this takes a little longer"
_ONE_RECORD: Final = "a single record took so long, so raise the limit"
_MANY_RECORDS: Final = "lower %s, or raise the limit"
_BROKERS: Final = (
    "the function that processes records took {:.1f} s of it, and the rest was waited for brokers "
    "and the disk: look for a broker that does not answer"
)
_WAITED: Final = (
    "{:.1f} s of it was waited for brokers and the disk: look for a broker that does not answer"
)


class BrokerWaits:
    """Adds up how long calls of a member, in the batches of an application, wait for brokers.

    Attributes:
        total_s: seconds.
    """

    def __init__(self) -> None:
        self.total_s = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block."""
        begin_s = time.monotonic()
        try:
            yield
        finally:
            self.total_s += time.monotonic() - begin_s


class PollPace:
    """Watches the time from the end of a poll to the next one.

    A sentence is returned for each pause above the poll interval, which costs the membership. Above
    the session timeout it is for the first one, and for each that is twice as long as that before.

    Args:
        max_poll_interval_ms: of the consumer.
        session_timeout_ms: of a consumer that sends no heartbeats between two polls while a
            rebalance runs; None: it sends them.
        setting_names: name of a setting here -> its name in the client, where it differs.
        now: a monotonic clock, in seconds.

    >>> clock = iter([0.0, 12.5])
    >>> pace = PollPace(max_poll_interval_ms=10_000, now=lambda: next(clock))
    >>> pace.poll_ended()
    >>> pace.poll_begins()[:74]
    '12.5 s passed between two polls, above max_poll_interval_ms=10000: this me'
    """

    def __init__(
        self,
        *,
        max_poll_interval_ms: int,
        session_timeout_ms: int | None = None,
        setting_names: Mapping[str, str] = MappingProxyType({}),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits_ms = {
            "max_poll_interval_ms": max_poll_interval_ms,
            "session_timeout_ms": session_timeout_ms,
        }
        self._setting_names = setting_names
        self._now = now
        self._ended_s: float | None = None
        self._reported_s = 0.0

    def poll_ended(self) -> None:
        """Note that the application processes what a poll returned."""
        self._ended_s = self._now()

    def poll_begins(
        self,
        records: int = 0,
        has_left: Callable[[], bool] = lambda: True,
        handled_s: float | None = None,
        waited_s: float = 0.0,
    ) -> str:
        """Return what is wrong with the pause that ends now, as a sentence, or "".

        Args:
            records: number of records that were processed in the pause; 0: unknown.
            has_left: whether the member has left the group; called for a sentence that says so.
            handled_s: how long the application processed records in the pause; None: unknown.
            waited_s: how long it waited for brokers and the disk at least.
        """
        if self._ended_s is None:
            return ""
        pause_s, self._ended_s = self._now() - self._ended_s, None
        for name, effect in _EFFECTS.items():
            limit_ms = self._limits_ms[name]
            if limit_ms is not None and pause_s * 1000 > limit_ms:
                if effect and pause_s < 2 * self._reported_s:
                    return ""
                self._reported_s = pause_s
                member = "" if effect else f"this member {HAS_LEFT if has_left() else STAYS}"
                named = self._setting_names.get
                remedy = _MANY_RECORDS % named("max_poll_records", "max_poll_records")
                if handled_s is not None and 2 * handled_s < pause_s:
                    remedy = _BROKERS.format(handled_s)
                elif 2 * waited_s > pause_s:
                    remedy = _WAITED.format(waited_s)
                elif records == 1:
                    remedy = _ONE_RECORD
                return (
                    f"{pause_s:.1f} s passed between two polls, above {named(name, name)}="
                    f"{limit_ms}: {effect or member}; {remedy}"
                )
        return ""
