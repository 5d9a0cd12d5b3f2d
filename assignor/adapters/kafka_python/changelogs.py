"""Changelogs with kafka-python: read into stores, and written. Use each object on one thread."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, Unpack

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.kafka_python.changelog_reader import RECOVERY, ChangelogReader
from assignor.adapters.kafka_python.producing import ReplacedProducer
from assignor.adapters.kafka_python.settings import ChangelogSettings
from assignor.embedding import (
    ClusterUnavailable,
    FollowedStore,
    InputState,
    NewRecord,
    error_text,
    is_interrupt,
)
from assignor.embedding.state_stores import Headers
from assignor.errors import ConfigError
from encoding import TopicPartition

_Value = TypeVar("_Value")


class KafkaChangelogs:
    """`ChangelogAccess` by kafka-python: a `ChangelogReader`, and an idempotent producer.

    Args:
        settings: of a `KafkaConsumer` or a `KafkaProducer`, such as servers and security; those
            that decide how state is read and written are left out. See `ChangelogReader`.
            `reconnect_backoff_max_ms` is 1000, as Kafka's, where kafka-python has 30,000.

    Raises:
        ClusterUnavailable: no broker answered.
        ConfigError: the client has no such setting.
        RebootstrapConfigError: a setting for rebootstrapping has an invalid value.
    """

    def __init__(self, **settings: Unpack[ChangelogSettings]) -> None:
        known = KafkaProducer.DEFAULT_CONFIG.keys() - {
            "acks",
            "enable_idempotence",
            "kafka_client",
            "key_serializer",
            "metric_reporters",
            "partitioner",
            "transactional_id",
            "value_serializer",
        }
        unknown = sorted(
            settings.keys() - KafkaConsumer.DEFAULT_CONFIG.keys() - known - {*RECOVERY}
        )
        if unknown:
            raise ConfigError(
                f"kafka-python has no setting {', '.join(unknown)}; use those of KafkaConsumer and "
                "KafkaProducer"
            )
        settings.setdefault("reconnect_backoff_max_ms", 1000)
        own = {name: value for name, value in settings.items() if name in known}
        self._reader = _asked("changelogs cannot be read", lambda: ChangelogReader(settings))
        try:
            self._producer = ReplacedProducer(own)
        except BaseException:
            self._reader.close()
            raise
        self._dropped = release_if_dropped(self, _close, self._producer, self._reader)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offsets behind the last records."""
        why = "the ends of changelogs cannot be read"
        return _asked(why, lambda: self._reader.end_offsets(partitions))

    def input_state(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, InputState]:
        """Return where input partitions begin and end now, and what the group has committed."""
        why = "the ends of the input cannot be read"
        return _asked(why, lambda: self._reader.input_state(group_id, partitions))

    def read(self, stores: Iterable[FollowedStore], *, wait_s: float = 0.0) -> int:
        """Pass the records that have arrived to their stores; return their number."""
        followed = list(stores)
        why = "changelogs cannot be read"
        return _asked(why, lambda: self._reader.read(followed, wait_s=wait_s))

    def position(self, partition: TopicPartition) -> int:
        """Return the offset up to which a followed partition is read."""
        return self._reader.position(partition)

    def seen_end(self, partition: TopicPartition) -> int | None:
        """Return the end of a followed partition as a broker last said it."""
        return self._reader.seen_end(partition)

    def append(self, records: Sequence[NewRecord]) -> Sequence[int]:
        """Write records, and return their offsets once all replicas in sync have them."""
        return self._producer.append(records)

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
        """Begin to write a record to any topic."""
        send = self._producer.send
        send(topic, key, value, partition, headers=headers, timestamp_ms=timestamp_ms)

    def flush(self) -> None:
        """Wait until all replicas in sync have every record of `send`."""
        self._producer.flush()

    def close(self) -> None:
        """Close the connections; twice is once."""
        if self._dropped.detach() is not None:
            _close(self._producer, self._reader)


def _close(producer: ReplacedProducer, reader: ChangelogReader) -> None:
    try:
        producer.close()
    finally:
        reader.close()


def _asked(why: str, ask: Callable[[], _Value]) -> _Value:
    """Return what a client's call returns.

    Raises:
        ClusterUnavailable: the call failed.
    """
    try:
        return ask()
    except (KafkaError, OSError) as error:
        if is_interrupt(error):
            raise
        raise ClusterUnavailable(f"{why}: {error_text(error)}") from error
