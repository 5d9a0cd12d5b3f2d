"""State by its changelog, with kafka-python: restored to the end, or kept warm as a standby.

A consumer of its own, without a group, follows the changelog partitions of some tasks and passes
the records to their stores. Use it on one thread.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition

from assignor.adapters.rebootstrap.kafka_python import supervise_own
from encoding import TopicPartition

_WAIT_MS = 100
_RECOVERY = ("metadata_recovery_strategy", "metadata_recovery_rebootstrap_trigger_ms")


class RestoredStore(Protocol):
    """A store that a changelog is read into.

    Attributes:
        changelog: the partition that has its records.
        position: offset of the next record to read; only the store changes it.
    """

    changelog: TopicPartition
    position: int

    def restore(self, records: list[Any]) -> None:
        """Apply `ConsumerRecord`s of the changelog, and set `position` to the offset after them."""
        ...


class ChangelogReader:
    """Follows changelog partitions.

    Args:
        settings: of a `KafkaConsumer`, as the application's own; group settings are left out.
            `metadata_recovery_strategy` and `metadata_recovery_rebootstrap_trigger_ms` may be
            among them: the consumer rebootstraps as a supervised one does (KIP-1102).

    Raises:
        RebootstrapConfigError: one of those two has an invalid value.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        known = KafkaConsumer.DEFAULT_CONFIG.keys() - {
            "group_id",
            "group_instance_id",
            "kafka_client",
            "metric_reporters",
            "partition_assignment_strategy",
        }
        own = {name: value for name, value in settings.items() if name in known}
        self._consumer: Any = KafkaConsumer(
            **own | {"enable_auto_commit": False, "auto_offset_reset": "earliest"}
        )
        recovery = {name: settings[name] for name in _RECOVERY if name in settings}
        try:
            self._supervisor = supervise_own(self._consumer, **recovery)
        except BaseException:
            self._consumer.close()
            raise

    def read(self, stores: Iterable[RestoredStore], *, to_the_end: bool = False) -> int:
        """Pass new records to the stores.

        Args:
            stores: at most one a changelog partition.
            to_the_end: return when the stores have every record that existed at the call, as before
                a task runs; else read what has arrived, as a standby does at intervals.

        Returns:
            Number of records that were read.

        Raises:
            KafkaError: the cluster cannot be read.
        """
        by_partition = {
            ClientPartition(store.changelog.topic, store.changelog.partition): store
            for store in stores
        }
        self._follow(by_partition)
        if not by_partition:
            return 0
        ends = self._consumer.end_offsets(list(by_partition)) if to_the_end else {}
        taken = 0
        while True:
            batch = self._consumer.poll(timeout_ms=_WAIT_MS if to_the_end else 0)
            for partition, records in batch.items():
                by_partition[partition].restore(records)
                taken += len(records)
            # Positions, not records: the last offsets may hold none (compaction).
            if all(self._consumer.position(each) >= end for each, end in ends.items()):
                return taken

    def close(self) -> None:
        """Close the connections."""
        if self._supervisor is not None:
            self._supervisor.close()
        self._consumer.close()

    def _follow(self, stores: Mapping[Any, RestoredStore]) -> None:
        consumer = self._consumer
        if consumer.assignment() != stores.keys():
            consumer.assign(sorted(stores))
            for topic in sorted({partition.topic for partition in stores}):
                # Fetches the metadata of a topic that is new; `end_offsets` fails without them.
                consumer.partitions_for_topic(topic)
            for partition, store in stores.items():
                consumer.seek(partition, store.position)
