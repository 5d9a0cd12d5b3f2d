"""Commits by the group's protocol: the member's generation fences them.

kafka-python refuses a commit while the member joins. Brokers accept one until all members have
joined, and a cooperative member processes its records meanwhile. So the requests are made here:
a commit that meets a rebalance is sent again with the new generation, until its time is over.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as Position
from kafka.errors import KafkaError as ClientError
from kafka.protocol.consumer import OffsetCommitRequest

from assignor.adapters.confluent.errors import COMMIT_FAILED, kafka_error
from assignor.adapters.confluent.offsets import NO_EPOCH, partition_of
from assignor.embedding import COMMIT_METADATA
from encoding import TopicPartition

_COMMIT_VERSION: Final = 8  # the last with topic names
_BACKOFF_S: Final = 0.05
_RETRY: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
_NEW_COORDINATOR: Final = frozenset(
    {KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
Outcome = Mapping[TopicPartition, KafkaError | None]


class RejectedOffset(Position):
    """An offset that was not committed; confluent-kafka's own `error` cannot be set in Python."""

    error: KafkaError | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Commit:
    """One commit of the application, or an automatic one.

    Attributes:
        offsets: what to commit; with the errors of single partitions afterwards.
        deadline_s: when it fails (`time.monotonic()`).
        finished: called when it has ended, on the client's I/O thread; it must not block.
        error: why nothing was committed, or None.
        ended: set at the end.
    """

    offsets: Sequence[Position]
    deadline_s: float
    finished: Callable[["Commit"], object]
    error: KafkaError | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def valid(self) -> list[Position]:
        """The offsets that can be committed; as in librdkafka, others are passed over."""
        return [each for each in self.offsets if each.offset >= 0]

    def finish(self, outcome: Outcome) -> None:
        """Take the errors of the partitions; an error of all of them is that of the commit."""
        failures = [outcome.get(partition_of(each)) for each in self.valid]
        if all(failures):
            self.error = failures[0]
        self.offsets = [
            _with_error(each, outcome.get(partition_of(each)) if each.offset >= 0 else None)
            for each in self.offsets
        ]
        self.end()

    def fail(self, error: KafkaError) -> None:
        """End without an answer of a broker."""
        self.error = error
        self.end()

    def end(self) -> None:
        """Tell who waits."""
        self.ended.set()
        self.finished(self)


class Committer:
    """Sends commits one after the other; those that wait meanwhile are sent as one request.

    Attributes:
        submitted: number of commits so far.
        ended: number of those that have ended; they end in the order of submission.
    """

    def __init__(self) -> None:
        self.submitted = self.ended = 0
        self._consumer: Any = None
        self._waiting: deque[Commit] = deque()
        self._is_sending = False
        self._lock = threading.Lock()

    def connect(self, consumer: Any) -> None:
        """Send by this `KafkaConsumer` from now on, also what waits already."""
        with self._lock:
            self._consumer = consumer
            self._send_waiting()

    def disconnect(self, error: KafkaError) -> None:
        """Send nothing more; what waits fails."""
        with self._lock:
            self._consumer = None
            failed, self._waiting = self._waiting, deque()
        self._fail(failed, error)

    def submit(self, commit: Commit) -> None:
        """Commit as soon as possible."""
        with self._lock:
            self.submitted += 1
            self._waiting.append(commit)
            self._send_waiting()

    def expire(self) -> None:
        """Let commits fail that have waited for a connection until their time was over."""
        now_s = time.monotonic()
        with self._lock:
            if self._is_sending:
                return
            late = [each for each in self._waiting if each.deadline_s < now_s]
            self._waiting = deque(each for each in self._waiting if each.deadline_s >= now_s)
        self._fail(late, KafkaError(KafkaError._WAIT_COORD, "no group coordinator is available"))

    def _fail(self, commits: Iterable[Commit], error: KafkaError) -> None:
        for commit in commits:
            commit.fail(error)
            self._count_ended(1)

    def _count_ended(self, number: int) -> None:
        with self._lock:
            self.ended += number

    def _send_waiting(self) -> None:
        if self._consumer is not None and self._waiting and not self._is_sending:
            self._is_sending = True
            self._consumer._coordinator._manager.call_soon(self._send, self._consumer)

    # On the client's event loop

    async def _send(self, consumer: Any) -> None:
        while True:
            with self._lock:
                commits, self._waiting = self._waiting, deque()
                if not commits:
                    self._is_sending = False
                    return
            # Of two commits of a partition the later one counts.
            offsets = {partition_of(each): each for commit in commits for each in commit.valid}
            deadline_s = max(commit.deadline_s for commit in commits)
            try:
                outcome = await self._committed(consumer._coordinator, offsets, deadline_s)
                for commit in commits:
                    commit.finish(outcome)
            except Exception as error:  # noqa: BLE001 the caller waits for the end of any error
                failure = kafka_error(error, COMMIT_FAILED)
                for commit in commits:
                    commit.fail(failure)
            finally:
                self._count_ended(len(commits))

    async def _committed(
        self, coordinator: Any, offsets: Mapping[TopicPartition, Position], deadline_s: float
    ) -> Outcome:
        """Send until the answer is final or the time is over; return the last answer.

        Raises:
            ClientError: no broker answered.
        """
        while True:
            left_s = deadline_s - time.monotonic()
            sent_in = coordinator._generation
            try:
                outcome = await _attempt(coordinator, offsets, left_s)
            except ClientError as error:
                if not error.retriable or left_s <= _BACKOFF_S:
                    raise
            else:
                if not _is_retried(coordinator, outcome, sent_in) or left_s <= _BACKOFF_S:
                    return outcome
            await coordinator._net.sleep(_BACKOFF_S)


def _with_error(position: Position, error: KafkaError | None) -> Position:
    if error is None:
        return position
    metadata = {} if position.metadata is None else {"metadata": position.metadata}
    rejected = RejectedOffset(
        position.topic,
        position.partition,
        position.offset,
        leader_epoch=_epoch(position),
        **metadata,
    )
    rejected.error = error
    return rejected


def _is_retried(coordinator: Any, outcome: Outcome, sent_in: Any) -> bool:
    codes = {error.code() for error in outcome.values() if error is not None}
    if codes & _NEW_COORDINATOR:
        coordinator.coordinator_dead("it is not the coordinator of the group")
    # A join that ended, or is about to end, has made the generation of the request an old one.
    is_new = coordinator.rebalance_in_progress() or coordinator._generation != sent_in
    is_late = KafkaError.ILLEGAL_GENERATION in codes and is_new
    return is_late or bool(codes & _RETRY)


async def _attempt(
    coordinator: Any, offsets: Mapping[TopicPartition, Position], left_s: float
) -> Outcome:
    """Send one request, and return its answer."""
    ready = await coordinator.ensure_coordinator_ready_async(timeout_ms=max(0.0, left_s) * 1000)
    if not ready:
        waits = KafkaError(KafkaError._WAIT_COORD, f"{COMMIT_FAILED}: no coordinator is available")
        return dict.fromkeys(offsets, waits)
    generation = coordinator._generation
    subscribed = coordinator._subscription.partitions_auto_assigned()
    if subscribed and generation.is_lost():
        gone = KafkaError(
            KafkaError.UNKNOWN_MEMBER_ID,
            f"{COMMIT_FAILED}: this consumer is not a member of the group now; call poll",
        )
        return dict.fromkeys(offsets, gone)
    request = _request(coordinator, generation if subscribed else None, offsets)
    response = await coordinator._manager.send(request, node_id=coordinator.coordinator_id)
    return {
        TopicPartition(topic.name, each.partition_index): (
            KafkaError(each.error_code) if each.error_code else None
        )
        for topic in response.topics
        for each in topic.partitions
    }


def _request(
    coordinator: Any, generation: Any, offsets: Mapping[TopicPartition, Position]
) -> OffsetCommitRequest:
    """Return the request; without a generation, that of a consumer in no group."""
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    partition_type = topic_type.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        max_version=_COMMIT_VERSION,
        group_id=coordinator.group_id,
        generation_id_or_member_epoch=-1 if generation is None else generation.generation_id,
        member_id="" if generation is None else generation.member_id,
        group_instance_id=None if generation is None else coordinator.group_instance_id,
        topics=[
            topic_type(
                name=topic,
                partitions=[
                    partition_type(
                        partition_index=partition.partition,
                        committed_offset=offsets[partition].offset,
                        committed_leader_epoch=_epoch(offsets[partition]),
                        committed_metadata=_metadata(offsets[partition]),
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in groupby(sorted(offsets), key=lambda each: each.topic)
        ],
    )


def _metadata(position: Position) -> str:
    """Return the metadata as confluent-kafka writes it, and needs it to read it: with a zero.

    Those of a member are as the members of Kafka Streams write and read them.
    """
    metadata: str | None = position.metadata
    if metadata == COMMIT_METADATA:
        return metadata
    return "" if metadata is None else f"{metadata}\0"


def _epoch(position: Position) -> int:
    epoch: int | None = position.leader_epoch
    return NO_EPOCH if epoch is None else epoch
