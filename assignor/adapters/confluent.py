"""confluent-kafka as the data plane of a kafka-python member.

librdkafka cannot be a member with a custom assignor, since its assignors are closed. It can read:
the kafka-python member stays in the group and commits, and librdkafka, which is in no group, reads
what the member is assigned, through cooperative rebalances too. One thread uses librdkafka; changes
of the assignment are made between two batches.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from kafka import ConsumerRebalanceListener
from kafka import TopicPartition as Partition
from kafka.structs import OffsetAndMetadata

from assignor.embedding import MemberStopped
from assignor.logs import line_logger

_log = line_logger(__name__)

_WAIT_S: Final = 0.2
"""How long librdkafka waits for a batch; a rebalance waits at most so long, and for one batch."""


class ConfluentReader(ConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    """Reads what a member is assigned; the listener of the member's `subscribe`.

    A partition is read from where the group has committed. Before a partition is given up, the
    current batch ends and what is processed of it is committed: at least once. A batch should take
    well less than the session timeout, since the member sends no heartbeats while a rebalance waits
    for it.

    Args:
        member: a `KafkaConsumer` with `StreamsAssignor` attached, and `enable_auto_commit=False`.
        process: called on the reading thread with each batch, some records of any partitions.
        settings: of `confluent_kafka.Consumer`. Servers, group and `auto.offset.reset` are those of
            the member; pass security settings here.
        batch: most records in a batch.
    """

    def __init__(
        self,
        member: Any,
        process: Callable[[Sequence[Message]], object],
        *,
        settings: Mapping[str, Any] | None = None,
        batch: int = 100,
    ) -> None:
        self._member = member
        self._process = process
        self._batch = batch
        servers = member.config["bootstrap_servers"]
        self._client = Consumer(
            {
                "bootstrap.servers": servers if isinstance(servers, str) else ",".join(servers),
                "group.id": member.config["group_id"],
                "auto.offset.reset": member.config["auto_offset_reset"],
                **(settings or {}),
                "enable.auto.commit": False,
            }
        )
        self._next: dict[Partition, OffsetAndMetadata] = {}
        self._failure: BaseException | None = None
        self._closing = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="confluent-reader")
        self._thread.submit(self._read)

    def commit(self) -> None:
        """Commit what is processed, without waiting; call it between the member's polls.

        Raises:
            MemberStopped: reading has ended, by what `process` or librdkafka raised.
        """
        if self._failure is not None:
            raise MemberStopped(
                f"nothing is read any more: {type(self._failure).__name__}: {self._failure}"
            ) from self._failure
        processed = dict(self._next)
        if processed:
            self._member.commit_async(processed)

    def close(self) -> None:
        """End the thread; call it after the member's close, which commits what is processed."""
        self._closing.set()
        self._thread.shutdown()
        self._client.close()

    # What kafka-python calls, on its I/O thread

    def on_partitions_assigned(self, assigned: Iterable[Partition]) -> None:
        """Read these partitions too; the member itself fetches nothing."""
        partitions = sorted(assigned)
        self._member.pause(*partitions)
        self._do(self._client.incremental_assign, partitions)

    def on_partitions_revoked(self, revoked: Iterable[Partition]) -> None:
        """Stop reading these partitions, and commit what is processed of them."""
        partitions = sorted(revoked)
        self._do(self._client.incremental_unassign, partitions)
        processed = {each: self._next.pop(each) for each in partitions if each in self._next}
        if processed:
            self._member.commit_async(processed)

    def on_partitions_lost(self, lost: Iterable[Partition]) -> None:
        """Stop reading these partitions; other members have them: there is nothing to commit."""
        partitions = sorted(lost)
        self._do(self._client.incremental_unassign, partitions)
        for partition in partitions:
            self._next.pop(partition, None)

    # On the reading thread

    def _do(
        self, change: Callable[[list[TopicPartition]], None], partitions: Sequence[Partition]
    ) -> None:
        """Change what is read, between two batches, and wait for it."""
        if partitions:
            self._thread.submit(change, [TopicPartition(*each) for each in partitions]).result()

    def _read(self) -> None:
        """Read one batch, make the changes that were asked for meanwhile, read the next batch."""
        try:
            records = [
                message
                for message in self._client.consume(self._batch, timeout=_WAIT_S)
                if _is_record(message)
            ]
            if records:
                self._process(records)
            for record in records:
                partition = Partition(record.topic(), record.partition())
                self._next[partition] = OffsetAndMetadata((record.offset() or 0) + 1, "", -1)
        except BaseException as error:  # noqa: BLE001 kept for the member's own thread, which raises it
            self._failure = error
            return
        if not self._closing.is_set():
            with suppress(RuntimeError):  # closed meanwhile
                self._thread.submit(self._read)


def _is_record(message: Message) -> bool:
    """Whether this is a record, not an error from which librdkafka recovers by itself.

    Raises:
        KafkaException: librdkafka cannot go on.
    """
    error = message.error()
    if error is None:
        return True
    if error.fatal():
        raise KafkaException(error)
    _log.warning("%s", error.str())
    return False
