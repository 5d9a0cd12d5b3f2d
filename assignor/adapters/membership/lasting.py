"""What is normal while a group starts: logged at INFO at first, and as a warning if it lasts.

A missing source topic is reported to the application if it lasts: Kafka Streams' leaders end the
whole group for it (`MissingSourceTopicException`), native ones wait for the topic.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from assignor.adapters.membership.port import Cancellable, StartTimer
from assignor.logs import line_logger

_log = line_logger(__name__)

AFTER_S: Final = 30.0
"""How long a leader may wait for topics or clients before that is a warning."""

TOPIC_AFTER_S: Final = 10.0
"""How long a client may need for the metadata of a source topic before that counts as missing."""
GONE_AFTER_S: Final = 3.0
"""The same for a topic that this leader knew when it last decided."""


class LastingWarnings:
    """Logs the warnings of one leader: each new sentence once, and again when it has lasted.

    Args:
        report: called with a sentence about a missing source topic, once while it is missing.
        after_s: seconds until a transient sentence is a warning.
        topic_after_s: seconds until a source topic is reported as missing.
        gone_after_s: the same for one that was not missing in the answers before.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        *,
        after_s: float = AFTER_S,
        topic_after_s: float = TOPIC_AFTER_S,
        gone_after_s: float = GONE_AFTER_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._topic_after_s = topic_after_s
        # How much earlier a topic that has gone is reported; whether this leader has decided.
        self._earlier_s = topic_after_s - gone_after_s
        self._has_decided = False
        self._topics: Mapping[str, str] = {}
        self._after_s = after_s
        self._now = now
        self._lock = threading.Lock()
        # Transient sentence of the last answers -> when it was first true.
        self._since_s: dict[str, float] = {}
        self._warned: set[str] = set()
        self._timer: Cancellable | None = None
        self._joins = 0

    def begin_join(self) -> None:
        """Note that a rebalance begins, which another member may lead."""
        with self._lock:
            self._joins += 1
            self._cancel()

    def decided(
        self,
        warnings: Sequence[str],
        transient: Collection[str],
        start_timer: StartTimer | None,
        *,
        missing_topics: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Log the warnings of this leader's answers.

        Args:
            warnings: all of them.
            transient: those that are normal while a group starts.
            start_timer: of the client; None: there is none, and nothing is logged later.
            missing_topics: those of them about a source topic -> the topic.
        """
        with self._lock:
            if self._joins > 1:  # another member has led meanwhile
                self._since_s, self._has_decided = {}, False
            self._joins = 0
            self._cancel()
            now_s, before_s = self._now(), self._since_s
            earlier_s = self._earlier_s if self._has_decided else 0.0
            self._has_decided = True
            self._since_s = {
                s: before_s.get(s, now_s - earlier_s * (s in missing_topics))
                for s in warnings
                if s in transient
            }
            self._warned &= self._since_s.keys()
            self._topics = missing_topics
            for sentence in warnings:
                if sentence not in transient:
                    _log.warning("%s", sentence)
                elif sentence not in before_s:
                    _log.info("%s", sentence)
            missing = self._warn_of_lasting(start_timer)
        self._report_missing(missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences of source topics that are missing, if this member led the last rebalance."""
        with self._lock:
            now = () if self._joins else self._warned & self._topics.keys()
            return tuple(_missing(self._topics[each]) for each in sorted(now))

    def close(self) -> None:
        """Log nothing any more."""
        with self._lock:
            self._since_s = {}
            self._cancel()

    def _warn_of_lasting(self, start_timer: StartTimer | None) -> list[str]:
        """Log what has lasted; have this done again when the next sentence has.

        Returns:
            Source topics that count as missing now, to be reported once the lock is released.
        """
        now_s, waits_s, missing = self._now(), [], []
        for sentence, since_s in self._since_s.items():
            is_topic = sentence in self._topics
            wait_s = since_s + (self._topic_after_s if is_topic else self._after_s) - now_s
            if wait_s > 0:
                waits_s.append(wait_s)
            elif sentence not in self._warned:
                self._warned.add(sentence)
                if is_topic:
                    missing.append(self._topics[sentence])
                else:
                    _log.warning("%s (for %.0f s)", sentence, now_s - since_s)
        if waits_s and start_timer is not None:
            self._timer = start_timer(min(waits_s), lambda: self._fire(start_timer))
        return missing

    def _fire(self, start_timer: StartTimer) -> None:
        missing: list[str] = []
        with self._lock:
            if self._timer is not None:
                self._timer = None
                missing = self._warn_of_lasting(start_timer)
        self._report_missing(missing)

    def _report_missing(self, topics: Sequence[str]) -> None:
        for topic in topics:
            self._report(_missing(topic))

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _missing(topic: str) -> str:
    return (
        f"source topic {topic} does not exist, or this user may not describe it: no task "
        "that reads it runs; create it, or grant DESCRIBE on it"
    )
