"""Records written with kafka-python and acknowledged, by a producer that is replaced when it fails.

kafka-python's idempotent producer never leaves its state FATAL_ERROR, which any answer sets that is
not to be tried again. It never asks for a producer id again either after a record was not
acknowledged in time, and then sends nothing (3.0.12: `TransactionManager.reset_producer_id` stays
in READY, and `init_producer_id` does nothing there). So a producer is closed after each record that
it was given and did not write, and the next record is written by a new one. The broker does not
recognise what the two have in common: a record of the first one may be in the log, also later.
Outputs are at-least-once; in changelogs the caller claims the task again, with an owner epoch above
that of the first one's records.
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
from assignor.embedding.state_stores import OWNER_KEY, WAIT_S, Headers
from assignor.stores import OutputTooLarge, RecordTooLarge

# How long an acknowledgement is waited for, where no poll loop waits for this.
_ACKNOWLEDGED_S: Final = 130.0
# The same in a poll loop, doubled after each wait that was in vain: slow brokers get their time.
_FIRST_S: Final = 10.0
# So long the metadata may lack a topic that was there: it may have been made anew.
_MISSING_S: Final = 3.0
# How often a wait looks whether the poll loop is to end, and how long it then lasts at most.
_LOOK_S: Final = 0.5
_LAST_S: Final = 5.0
_CLOSE_S: Final = 1.0
# A member polls again in between, and sees that it is to stop: kafka-python's default is 60 s.
_BLOCK_MS: Final = 5000
_BOOTSTRAP_MS: Final[int] = KafkaProducer.DEFAULT_CONFIG["bootstrap_timeout_ms"]
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
_MISSING: Final = MappingProxyType(
    {
        "topic": "so no record can be written to it; create it",
        "changelog": "so no state can be written to it; the leader creates it anew, and members "
        "that have its state then end with CopiesKept, which says what to do",
    }
)
_SILENT: Final = (
    "look for a broker that is down, overloaded or has no quota for this user, or for partitions "
    "with fewer replicas in sync than min.insync.replicas"
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
        self._wait_s = _FIRST_S
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
        end_s = self._end_s()
        offsets = [int(self._acknowledged(each, end_s).offset) for each in sent]
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
        end_s = self._end_s()
        for each in sent:
            self._acknowledged(each, end_s)
        self._taken(each.topic for each in sent)

    def close(self) -> None:
        """Write what is sent, for 5 s at most since the loop was to end, and close."""
        self._discard(max(0.0, min(_LAST_S, self._last_s - time.monotonic())))

    def _connect(self) -> None:
        settings = {"max_block_ms": _BLOCK_MS, **self._settings}
        connect_ms = settings.get("bootstrap_timeout_ms", _BOOTSTRAP_MS)
        settings["bootstrap_timeout_ms"] = min(connect_ms, int(self._patience_s() * 1000))
        with network_client() as kafka_client:
            self._producer = KafkaProducer(
                **settings, acks="all", enable_idempotence=True, kafka_client=kafka_client
            )
        # A changelog that was deleted is made by a leader, with the right number of partitions.
        self._producer._metadata.config["allow_auto_create_topics"] = False  # noqa: SLF001 kafka-python 3.0 does not pass the setting on
        self._supervisor = supervise_own(self._producer)

    def _patience_s(self) -> float:
        """Return how long to wait for a broker: in a poll loop, as long as the member may wait."""
        limit_s = WAIT_S.get()
        return _ACKNOWLEDGED_S if limit_s is None else min(self._wait_s, limit_s)

    def _end_s(self) -> float:
        return time.monotonic() + self._patience_s()

    def _begin(self, kind: str, topic: str, *record: Any, **options: Any) -> _Sent:
        begin_s = time.monotonic()
        try:
            if self._producer is None:
                self._connect()
            producer = self._producer
            future = producer.send(topic, *record, **options)
        except (KafkaError, OSError) as error:
            if isinstance(error, KafkaTimeoutError) and self._lacks(topic, begin_s):
                raise _missing(kind, topic) from error
            if _may_pass(error):  # the producer was given nothing
                raise _unavailable(kind, topic, error) from error
            self._fail(kind, topic, error)
        sent = _Sent(topic=topic, kind=kind, future=future, producer=producer)
        future.add_errback(self._noting(sent))
        return sent

    def _lacks(self, topic: str, since_s: float) -> bool:
        """Return whether a broker has sent metadata since then, and the topic is not in it."""
        if self._producer is None:
            return False
        metadata = self._producer._metadata  # noqa: SLF001 no public way
        asked_ms: float = metadata._last_successful_refresh_ms  # noqa: SLF001 as above
        return asked_ms > since_s * 1000 and metadata.partitions_for_topic(topic) is None

    def _noting(self, sent: _Sent) -> Callable[[Exception], None]:
        def note(error: Exception) -> None:  # on the producer's thread
            is_first = self._first is None and sent.producer is self._producer
            if is_first and not _may_pass(error):
                self._first = sent, error

        return note

    def _acknowledged(self, sent: _Sent, end_s: float) -> Any:
        try:
            return self._answer(sent, end_s)
        except (KafkaError, OSError) as error:
            raise_interrupt(error)
            if sent.producer is not self._producer:
                # It was sent before another record ended the producer, which is counted already.
                raise _unavailable(sent.kind, sent.topic, error) from error
            cause, why = self._first or (sent, error)
            self._fail(cause.kind, cause.topic, why)

    def _answer(self, sent: _Sent, end_s: float) -> Any:
        """Return the answer for a record; once the loop is to end, wait 5 s at most for all.

        Raises:
            ClusterUnavailable: no broker has answered in time, or the topic does not exist.
            KafkaError: the record was refused.
        """
        ended, begin_s = LOOP_END.get(), time.monotonic()
        while True:
            now_s = time.monotonic()
            if ended is not None and ended.is_set():
                self._last_s = min(self._last_s, now_s + _LAST_S)
                end_s = min(end_s, self._last_s)
            else:
                self._last_s = inf
            try:
                return sent.future.get(min(_LOOK_S, max(0.0, end_s - now_s)))
            except KafkaTimeoutError as error:
                if error is sent.future.exception:
                    raise
                now_s = time.monotonic()
                is_missing = now_s - begin_s >= _MISSING_S and self._lacks(sent.topic, begin_s)
                if not is_missing and now_s < end_s:
                    continue
                self._discard()
                if is_missing:
                    raise _missing(sent.kind, sent.topic) from error
                self._wait_s = min(2 * self._wait_s, _ACKNOWLEDGED_S)
                raise ClusterUnavailable(
                    f"{sent.kind} {sent.topic} cannot be written: no broker has acknowledged a "
                    f"record for {now_s - begin_s:.0f} s; {_SILENT}"
                ) from error

    def _fail(self, kind: str, topic: str, error: Exception) -> NoReturn:
        """Raise the error of a record, and end the producer: it may write nothing any more."""
        raise_interrupt(error)
        self._discard()
        unavailable = _unavailable(kind, topic, error)
        if _may_pass(error):
            raise unavailable from error
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
            self._wait_s = _FIRST_S

    def _discard(self, wait_s: float = _CLOSE_S) -> None:
        """Close the producer; for so long it may write what was sent before."""
        producer = self._take()
        if producer is not None:
            try:
                producer.flush(wait_s)
            except KafkaTimeoutError:  # `KafkaProducer.close` would wait for two minutes, or leave
                producer._sender.force_close()  # noqa: SLF001 its thread running; no public way
            except KafkaError:  # of a record, which was reported
                pass
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
    """Whether the same record may be written after an error."""
    return isinstance(error, RetriableError | OSError)


def _unavailable(kind: str, topic: str, error: BaseException) -> ClusterUnavailable:
    return ClusterUnavailable(f"{kind} {topic} cannot be written: {error_text(error)}")


def _missing(kind: str, topic: str) -> ClusterUnavailable:
    return ClusterUnavailable(f"{kind} {topic} does not exist, {_MISSING[kind]}")
