"""Records written with kafka-python and acknowledged, by a producer that is replaced when it fails.

kafka-python's idempotent producer never leaves its state FATAL_ERROR, which any answer sets that is
not to be tried again. Such a producer is closed, and the next record is written by a new one. The
broker does not recognise what the two have in common: a record of the first one may be in the log,
also later. Outputs are at-least-once; in changelogs the caller claims the task again, with an owner
epoch above that of the first one's records.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any, Final, NoReturn

from kafka import KafkaProducer
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    RetriableError,
    TopicAuthorizationFailedError,
)

from assignor.adapters.connecting import network_client
from assignor.adapters.kafka_python.records import raise_interrupt
from assignor.adapters.rebootstrap.kafka_python import supervise_own
from assignor.adapters.threads import LOOP_END
from assignor.embedding import ClusterUnavailable, MemberStopped, NewRecord, error_text
from assignor.embedding.state_stores import OWNER_KEY, Headers
from assignor.stores import OutputTooLarge, RecordTooLarge

_ACKNOWLEDGED_S: Final = 130.0
# How often a wait looks whether the poll loop is to end, and how long it then lasts at most.
_LOOK_S: Final = 0.5
_LAST_S: Final = 5.0
_CLOSE_S: Final = 1.0
# A member polls again in between, and sees that it is to stop: kafka-python's default is 60 s.
_BLOCK_MS: Final = 5000
_ATTEMPTS: Final = 3
"""Refusals in a row, each of another producer, after which the member ends."""

_TOO_LARGE: Final = (MessageSizeTooLargeError, RecordListTooLargeError)
_RIGHTS: Final = MappingProxyType(
    {
        TopicAuthorizationFailedError: "this user may not write it; grant WRITE on the topic",
        ClusterAuthorizationFailedError: "this user may not write as an idempotent producer; grant "
        "IDEMPOTENT_WRITE on the cluster, or WRITE on the topic",
    }
)
_REMEDIES: Final = MappingProxyType(
    {
        InvalidRecordError: "a topic with cleanup.policy=compact takes no record without a key; "
        "give each record a key, or change the policy",
    }
)
_REMEDY: Final = "see the log of the broker, correct the cause, and restart this member"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A record on its way; `kind` is "changelog" or "topic", for messages."""

    topic: str
    kind: str
    future: Any
    producer: Any


class ReplacedProducer:
    """An idempotent producer; a new one after each error that ends it. Use it on one thread.

    Args:
        settings: of a `KafkaProducer`.

    Attributes:
        unflushed: records of `send` that `flush` has not waited for.

    Raises:
        ClusterUnavailable: no broker answered.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self.unflushed: list[_Sent] = []
        self._refused: Counter[str] = Counter()
        # The first record that the producer failed with: it aborts all others with this error.
        self._first: tuple[_Sent, Exception] | None = None
        self._producer: Any = None
        self._supervisor: Any = None
        # When waits are over because the loop is to end (`time.monotonic()`).
        self._last_s = inf
        try:
            self._connect()
        except (KafkaError, OSError) as error:
            raise_interrupt(error)
            raise ClusterUnavailable(
                f"changelogs cannot be written: {error_text(error)}"
            ) from error

    def append(self, records: Sequence[NewRecord]) -> list[int]:
        """Write records, and return their offsets once all replicas in sync have them.

        Raises:
            ClusterUnavailable: the records are not acknowledged.
            MemberStopped: the broker refuses a record time and again.
            RecordTooLarge, OutputTooLarge: a record is larger than the broker allows.
        """
        sent = [
            self._begin(
                "changelog",
                record.partition.topic,
                record.value,
                record.key,
                headers=list(record.headers),
                partition=record.partition.partition,
            )
            for record in records
        ]
        offsets = [int(self._acknowledged(each).offset) for each in sent]
        # A claim is taken in any case: that says nothing of the writes that were refused.
        self._taken(r.partition.topic for r in records if r.key != OWNER_KEY)
        return offsets

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        *,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Begin to write a record to any topic; raise as `append`."""
        options = {"partition": partition, "headers": [*headers], "timestamp_ms": timestamp_ms}
        self.unflushed.append(self._begin("topic", topic, value, key, **options))

    def flush(self) -> None:
        """Wait until all replicas in sync have every record of `send`; raise as `append`.

        After an error the records are given up: those of `send` have to be sent again.
        """
        sent, self.unflushed = self.unflushed, []
        for each in sent:
            self._acknowledged(each)
        self._taken(each.topic for each in sent)

    def close(self) -> None:
        """Write what is sent, for 5 s at most since the loop was to end, and close."""
        producer = self._take()
        if producer is not None:
            try:
                producer.flush(max(0.0, min(_LAST_S, self._last_s - time.monotonic())))
            except KafkaTimeoutError:  # `KafkaProducer.close` would wait for two minutes, or leave
                producer._sender.force_close()  # noqa: SLF001 its thread running; no public way
            except KafkaError:  # of a record, which was reported
                pass
            with suppress(KafkaError):
                producer.close(timeout=_CLOSE_S)

    def _connect(self) -> None:
        with network_client() as kafka_client:
            self._producer = KafkaProducer(
                **{"max_block_ms": _BLOCK_MS, **self._settings},
                acks="all",
                enable_idempotence=True,
                kafka_client=kafka_client,
            )
        # A changelog that was deleted is made by a leader, with the right number of partitions.
        self._producer._metadata.config["allow_auto_create_topics"] = False  # noqa: SLF001 kafka-python 3.0 does not pass the setting on
        self._supervisor = supervise_own(self._producer)

    def _begin(self, kind: str, topic: str, *record: Any, **options: Any) -> _Sent:
        try:
            if self._producer is None:
                self._connect()
            producer = self._producer
            begin_s = time.monotonic()
            future = producer.send(topic, *record, **options)
        except KafkaTimeoutError as error:
            if kind == "topic" and self._has_metadata(begin_s):
                raise ClusterUnavailable(
                    f"topic {topic} does not exist, so no record can be written to it; create it"
                ) from error
            self._fail(kind, topic, error)
        except (KafkaError, OSError) as error:
            self._fail(kind, topic, error)
        sent = _Sent(topic=topic, kind=kind, future=future, producer=producer)
        future.add_errback(self._noting(sent))
        return sent

    def _has_metadata(self, since_s: float) -> bool:
        """Return whether a broker has sent metadata since then; topics that lack do not exist."""
        refreshed_ms: float = self._producer._metadata._last_successful_refresh_ms  # noqa: SLF001 no public way
        return refreshed_ms > since_s * 1000

    def _noting(self, sent: _Sent) -> Callable[[Exception], None]:
        def note(error: Exception) -> None:  # on the producer's thread
            is_first = self._first is None and sent.producer is self._producer
            if is_first and not _may_pass(error):
                self._first = sent, error

        return note

    def _acknowledged(self, sent: _Sent) -> Any:
        try:
            return self._answer(sent)
        except (KafkaError, OSError) as error:
            raise_interrupt(error)
            if sent.producer is not self._producer:
                # It was sent before another record ended the producer, which is counted already.
                raise _unavailable(sent.kind, sent.topic, error) from error
            cause, why = self._first or (sent, error)
            self._fail(cause.kind, cause.topic, why)

    def _answer(self, sent: _Sent) -> Any:
        """Return the answer for a record; once the loop is to end, wait 5 s at most for all.

        Raises:
            KafkaTimeoutError: no broker has answered in time.
            KafkaError: the record was refused.
        """
        ended = LOOP_END.get()
        end_s = time.monotonic() + _ACKNOWLEDGED_S
        while True:
            now_s = time.monotonic()
            if ended is not None and ended.is_set():
                self._last_s = min(self._last_s, now_s + _LAST_S)
                end_s = min(end_s, self._last_s)
            else:
                self._last_s = inf
            left_s = max(0.0, end_s - now_s)
            try:
                return sent.future.get(left_s if ended is None else min(_LOOK_S, left_s))
            except KafkaTimeoutError as error:
                if error is sent.future.exception or time.monotonic() >= end_s:
                    raise

    def _fail(self, kind: str, topic: str, error: Exception) -> NoReturn:
        """Raise the error of a record; end the producer if it does not recover."""
        raise_interrupt(error)
        if _may_pass(error):
            raise _unavailable(kind, topic, error) from error
        self._discard()
        unavailable = _unavailable(kind, topic, error)
        if isinstance(error, _TOO_LARGE):
            problem = RecordTooLarge if kind == "changelog" else OutputTooLarge
            raise problem(
                f"{kind} {topic} cannot be written: a record is too large ({error}); write less "
                "for one input record, or raise max_request_size of the producer and "
                "max.message.bytes of the topic"
            ) from error
        if type(error) in _RIGHTS:
            raise MemberStopped(f"{unavailable}: {_RIGHTS[type(error)]}") from error
        self._refused[topic] += 1
        if self._refused[topic] >= _ATTEMPTS:
            remedy = _REMEDIES.get(type(error), _REMEDY)
            raise MemberStopped(f"{unavailable}, {_ATTEMPTS} times in a row: {remedy}") from error
        raise unavailable from error

    def _taken(self, topics: Iterable[str]) -> None:
        for topic in set(topics):
            del self._refused[topic]

    def _discard(self) -> None:
        producer = self._take()
        if producer is not None:
            with suppress(KafkaError):
                producer.close(timeout=_CLOSE_S)

    def _take(self) -> Any:
        """Return the producer, which is no longer used."""
        producer, self._producer, self._first = self._producer, None, None
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.close()
        return producer


def _may_pass(error: Exception) -> bool:
    """Whether the producer can be used after an error."""
    return isinstance(error, RetriableError | OSError)


def _unavailable(kind: str, topic: str, error: BaseException) -> ClusterUnavailable:
    return ClusterUnavailable(f"{kind} {topic} cannot be written: {error_text(error)}")
