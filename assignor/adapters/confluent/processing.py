"""A consumer's records processed into state stores: poll, restore, process, commit."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.consumer import Consumer
from assignor.adapters.confluent.handover import DeferredListener
from assignor.adapters.poll_arguments import stop_event
from assignor.adapters.processing import BatchProcessing
from assignor.config import check_handler
from assignor.embedding import LEFT_GROUP, Handler, MemberStopped, TaskStores
from assignor.errors import ConfigError
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

_POLL_S: Final = 1.0
_MAX_RECORDS: Final = 500


def run_tasks(
    consumer: Consumer,
    stores: TaskStores,
    handle: Handler,
    *,
    timeout: float = _POLL_S,
    max_records: int = _MAX_RECORDS,
    stop: threading.Event | None = None,
) -> None:
    """Poll, restore tasks, process their records and commit, until the member has to stop.

    A consumer that is not subscribed is subscribed to the topics of its topology. While the cluster
    cannot be reached, records are kept and tried again.

    An exception of `handle` ends the loop, also an error of a producer or another client that it
    uses: its record has no effect on state, and is processed again by the next call or member.
    Catch in `handle` what may pass, or write with `state.send`, whose errors are retried.

    Args:
        consumer: with `"enable.auto.commit": False` and `listener=stores`.
        stores: the state of the member's tasks.
        handle: called with each `Message` and the stores of its task.
        timeout: seconds of each poll.
        max_records: of each poll.
        stop: ends the loop when set.

    Raises:
        ConfigError: the consumer commits by itself, and would commit what is not processed; or the
            stores are not its listener, or of another group or directory;
            or the consumer is of another client, `handle` is no such function, or `stop` no event.
        MemberStopped: the member cannot go on; the message says why.
        StoreError: a store cannot be used.
        Exception: of `handle`.
    """
    check_handler(handle)
    ended = stop_event(stop)
    if not isinstance(consumer, Consumer):
        raise ConfigError(
            f"{type(consumer).__name__} is no Consumer of assignor.adapters.confluent; with"
            " kafka-python use run_tasks of assignor.adapters.kafka_python"
        )
    settings = consumer._settings
    if settings.auto_commit:
        raise ConfigError(
            'the consumer commits records that are not processed yet; set "enable.auto.commit": '
            "False"
        )
    listener = consumer.assignor.listener
    given = listener.listener if isinstance(listener, DeferredListener) else listener
    stores.check_follows(given, settings.group_id, consumer.assignor.directory)
    if not consumer._member.topics:
        consumer.subscribe(consumer.assignor.source_topics)
    processing = BatchProcessing(
        stores, handle, lambda next_offsets: _commit(consumer, next_offsets), ended=ended
    )
    paused: frozenset[TopicPartition] = frozenset()
    while not ended.is_set() and not consumer.assignor.shutdown_requested:
        processing.process(_by_partition(consumer.consume(max_records, timeout)))
        _seek(consumer, stores.unread())
        paused = _pause(consumer, stores.waiting, paused)


def _by_partition(messages: Iterable[Message]) -> dict[TopicPartition, list[Message]]:
    """Return the records by partition; log errors.

    Raises:
        MemberStopped: an error is fatal.
    """
    records: dict[TopicPartition, list[Message]] = {}
    for message in messages:
        error = message.error()
        if error is None:
            partition = TopicPartition(message.topic() or "", message.partition() or 0)
            records.setdefault(partition, []).append(message)
        elif error.fatal():
            raise MemberStopped(f"{LEFT_GROUP}: {error.str()}")
        else:
            _log.warning("%s", error.str())
    return records


def _commit(consumer: Consumer, next_offsets: Mapping[Any, int]) -> None:
    """Commit what is processed; what is not committed is recognised by the state stores."""
    if not next_offsets:
        return
    offsets = [Position(p.topic, p.partition, offset) for p, offset in next_offsets.items()]
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        _log.info("not committed: %s", error.args[0].str())


def _seek(consumer: Consumer, unread: Mapping[Any, int]) -> None:
    """Read records again that were dropped."""
    for partition, offset in unread.items():
        if partition in consumer._serving.read:
            consumer.seek(Position(partition.topic, partition.partition, offset))


def _pause(
    consumer: Consumer, waiting: frozenset[TopicPartition], paused: frozenset[TopicPartition]
) -> frozenset[TopicPartition]:
    """Fetch nothing for tasks that are not restored, and the others again; return the former."""
    read = consumer._serving.read
    # Also what is paused: a partition that was assigned again is not.
    if pausing := waiting & read:
        consumer.pause([Position(*each) for each in sorted(pausing)])
    if resuming := (paused - waiting) & read:
        consumer.resume([Position(*each) for each in sorted(resuming)])
    return pausing
