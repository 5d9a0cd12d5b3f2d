"""Finds a reader that reaches no broker while the member of its group does.

librdkafka forgets all brokers when a metadata answer names none (librdkafka issue 5301; it happens
while a cluster restarts). It may never connect again, and heartbeats of the member would keep
partitions that nobody reads.
"""

import time
from collections.abc import Callable
from typing import Final
from weakref import ref

from confluent_kafka import KafkaException

from assignor.adapters.confluent.checked_reader import CheckedReader
from assignor.adapters.confluent.events import Call, Mailbox
from assignor.adapters.confluent.settings import Settings

_CHECKS: Final = 3
"""Checks within the limit."""
_ANSWER_S: Final = 2.0
_SECOND_MS: Final = 1000

Reaches = Callable[[str, float], bool]


def reader_reaches(reader: "ref[CheckedReader]") -> Reaches:
    """Return what asks a broker for a topic's metadata; a reader that is gone or closed has it."""

    def reaches(topic: str, timeout_s: float) -> bool:
        consumer = reader()
        if consumer is None:
            return True
        try:
            CheckedReader.list_topics(consumer, topic, timeout_s)
        except KafkaException:
            return False
        except RuntimeError:  # closed
            return True
        return True

    return reaches


class ReaderWatch:
    """Counts for how long only the member of the group has reached a broker.

    Args:
        settings: of the consumer.
        mailbox: of the application's thread, on which the reader is asked.
        reaches: whether the reader gets the metadata of a topic within so many seconds.

    Attributes:
        limit_s: seconds after which the reader counts as lost: the session timeout, after which a
            plain consumer would lose its partitions, at least two of the longest pauses between
            connections.
    """

    def __init__(self, settings: Settings, mailbox: Mailbox, reaches: Reaches) -> None:
        member = settings.member
        self._mailbox = mailbox
        self._reaches = reaches
        self.limit_s: float = (
            max(member["session_timeout_ms"], 2 * member["reconnect_backoff_max_ms"]) / _SECOND_MS
        )
        self._interval_s = self.limit_s / _CHECKS
        self._silent_s = self._interval_s + member["heartbeat_interval_ms"] / _SECOND_MS
        self._is_asked = False
        self._checked_s = self._reached_s = time.monotonic()

    @property
    def sentence(self) -> str:
        """What happens to a consumer whose reader is lost."""
        return (
            f"librdkafka has reached no broker for {self.limit_s:g} s while the group member has "
            "(librdkafka issue 5301), so this consumer reads nothing and leaves the group; close "
            "it and make a new one"
        )

    def is_lost(self, topic: str, heard_s: float) -> bool:
        """Return whether the reader has reached no broker for `limit_s`, and the member has.

        Three times within `limit_s` the next `poll` asks a broker: it then takes the time of an
        answer longer, 2 s without a connection.

        Args:
            topic: that the consumer reads.
            heard_s: when the member last got the answer to a heartbeat (`time.monotonic()`).
        """
        now_s = time.monotonic()
        if now_s - heard_s > self._silent_s:
            self._reached_s = now_s
        elif not self._is_asked and now_s - self._checked_s >= self._interval_s:
            self._is_asked = True
            self._mailbox.post(Call(call=lambda: self._check(topic)))
        return self._checked_s - self._reached_s > self.limit_s

    def _check(self, topic: str) -> None:
        has_reached = self._reaches(topic, min(_ANSWER_S, self._interval_s))
        self._checked_s = time.monotonic()
        if has_reached:
            self._reached_s = self._checked_s
        self._is_asked = False
