"""Changelogs with kafka-python, read into stores.

A consumer of its own, without a group, follows the changelog partitions of some tasks and passes
the records to their stores. Use each reader on one thread.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.errors import LogTruncationError, OffsetOutOfRangeError

from assignor.adapters.connecting import network_client
from assignor.adapters.kafka_python.bounded import BoundedConsumer
from assignor.adapters.kafka_python.ranges import (
    CommittedOffsets,
    end_offsets,
    first_offsets,
    log_ranges,
    topic_id,
)
from assignor.adapters.rebootstrap.kafka_python import supervise_own
from assignor.embedding import (
    ChangelogLost,
    FollowedStore,
    InputState,
    LogRange,
    is_members_commit,
)
from encoding import TopicPartition

_WAIT_MS = 100
# What the application has for its input would slow a restore.
_OWN: Final = {
    "allow_auto_create_topics": False,
    "auto_offset_reset": "none",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 500,
    "fetch_min_bytes": 1,
    "max_poll_records": 5000,
}
RECOVERY = ("metadata_recovery_strategy", "metadata_recovery_rebootstrap_trigger_ms")


class ChangelogReader:
    """Follows changelog partitions.

    Args:
        settings: of a `KafkaConsumer`, as the application's own. Those of groups are left out, and
            those of `_OWN`: how many records a poll returns and for what a fetch waits.
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
            "key_deserializer",
            "metric_reporters",
            "partition_assignment_strategy",
            "value_deserializer",
        }
        own = {name: value for name, value in settings.items() if name in known}
        # A lost offset is no reason to read on elsewhere: the store has to know.
        with network_client() as kafka_client:
            self._consumer: Any = BoundedConsumer(**own | _OWN, kafka_client=kafka_client)
        # Partition -> id of its topic when it was last read from where its store is.
        self._ids: dict[Any, UUID | None] = {}
        # Of the application's group: asks what is committed, and never joins.
        self._committed = CommittedOffsets(self._consumer)
        recovery = {name: settings[name] for name in RECOVERY if name in settings}
        try:
            self._supervisor = supervise_own(self._consumer, **recovery)
        except BaseException:
            self._consumer.close()
            raise

    def read(
        self, stores: Iterable[FollowedStore], *, to_the_end: bool = False, wait_s: float = 0.0
    ) -> int:
        """Pass new records to the stores.

        Args:
            stores: at most one a changelog partition.
            to_the_end: return when the stores have every record that existed at the call; else read
                what has arrived, as a standby does at intervals.
            wait_s: how long to wait for the first record, if not `to_the_end`.

        Returns:
            Number of records that were read.

        Raises:
            KafkaError: the cluster cannot be read.
            ChangelogLost: of a store's `check_range`, once all stores are checked.
        """
        by_partition = {_client_partition(store.changelog): store for store in stores}
        self._follow(by_partition)
        if not by_partition:
            return 0
        ends = self._offsets(end_offsets, by_partition) if to_the_end else {}
        wait_ms = _WAIT_MS if to_the_end else round(wait_s * 1000)
        taken = 0
        while True:
            self._check(by_partition)
            taken += self._pass_on(by_partition, wait_ms)
            # Positions, not records: the last offsets may hold none (compaction).
            if all(self._consumer.position(each) >= end for each, end in ends.items()):
                return taken

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offsets behind the last records.

        Raises:
            KafkaError: the cluster cannot be read.
        """
        if not partitions:
            return {}
        asked = [_client_partition(each) for each in partitions]
        found = self._offsets(end_offsets, asked)
        return {TopicPartition(*partition): offset for partition, offset in found.items()}

    def position(self, partition: TopicPartition) -> int:
        """Return the offset from which a partition is read next, which the last `read` followed.

        Between it and the position of the store there are offsets without records.
        """
        followed = self._consumer._subscription.assignment  # noqa: SLF001 the public way asks brokers, without a limit
        state = followed.get(_client_partition(partition))
        return 0 if state is None or state.position is None else int(state.position.offset)

    def seen_end(self, partition: TopicPartition) -> int | None:
        """Return the end of a followed partition as the last answer of a broker said it."""
        followed = self._consumer._subscription.assignment  # noqa: SLF001 as above
        state = followed.get(_client_partition(partition))
        return None if state is None else state.highwater

    def input_state(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, InputState]:
        """Return where input partitions begin and end now, and what the group has committed.

        Partitions that do not exist are left out.

        Raises:
            KafkaError: the cluster does not answer.
        """
        consumer = self._consumer
        topics = {topic for topic, _ in partitions}
        with consumer.knowing(topics, anew=True):
            cluster = consumer._cluster  # noqa: SLF001 no public way
            ids = {topic: topic_id(consumer, topic) for topic in topics}
            known = {topic: cluster.partitions_for_topic(topic) or () for topic in topics}
            asked = [_client_partition(each) for each in partitions if each[1] in known[each[0]]]
            if not asked:
                return {}
            ranges = log_ranges(consumer, asked)
        committed = self._committed.of(group_id, asked)
        return {
            TopicPartition(*each): InputState(
                log=LogRange(*ranges[each], ids[each.topic]),
                committed=None if (found := committed.get(each)) is None else found.offset,
                is_members=found is None or is_members_commit(found.metadata),
            )
            for each in asked
        }

    def close(self) -> None:
        """Close the connections."""
        self._committed.close()
        if self._supervisor is not None:
            self._supervisor.close()
        self._consumer.close()

    def _pass_on(self, stores: Mapping[Any, FollowedStore], wait_ms: int) -> int:
        """Pass what a poll returns to the stores; return the number of records."""
        batch: Mapping[Any, list[Any]] = {}
        try:
            batch = self._consumer.poll(timeout_ms=wait_ms)
            for partition, records in batch.items():
                store = stores[partition]
                store.restore(records)
                if store.position <= records[-1].offset:  # it has to be checked first
                    self._consumer.seek(partition, store.position)
        except (OffsetOutOfRangeError, LogTruncationError):
            self._begin(stores)
        except BaseException:
            # Also of a poll: it may have passed over records that no store has.
            self._begin_again()
            raise
        return sum(map(len, batch.values()))

    def _follow(self, stores: Mapping[Any, FollowedStore]) -> None:
        before = self._consumer.assignment()
        if before != stores.keys():
            self._consumer.assign(sorted(stores))
            try:
                self._begin({p: store for p, store in stores.items() if p not in before})
            except BaseException:
                self._begin_again()
                raise

    def _begin_again(self) -> None:
        """Make the next call of `read` begin with all stores, from where they are."""
        self._consumer.unsubscribe()

    def _check(self, stores: Mapping[Any, FollowedStore]) -> None:
        """Check the stores that need it, or whose topics were made anew."""
        due = {p: s for p, s in stores.items() if s.needs_check or self._was_made_anew(p)}
        # The last offsets may hold no records: what is read to the end has all there are.
        self._begin(due, read_to={p: self._consumer.position(p) for p in due})

    def _begin(
        self, stores: Mapping[Any, FollowedStore], *, read_to: Mapping[Any, int] | None = None
    ) -> None:
        """Read partitions from where their stores are."""
        if not stores:
            return
        asked_ms = time.time_ns() // 1_000_000
        starts = self._offsets(first_offsets, stores)
        ends = self._offsets(end_offsets, stores)
        if any(ends[partition] < store.position for partition, store in stores.items()):
            with self._consumer.knowing({each.topic for each in stores}, anew=True):
                pass  # the ids of now
        lost: list[ChangelogLost] = []
        for partition, store in stores.items():
            end = ends[partition]
            if read_to is not None and read_to[partition] >= end:
                end = min(end, store.position)
            found = topic_id(self._consumer, partition.topic)
            try:
                store.check_range(starts[partition], end, found, asked_ms)
            except ChangelogLost as error:  # the others are checked, too
                lost.append(error)
                continue
            self._consumer.seek(partition, max(store.position, starts[partition]))
            self._ids[partition] = found
        if lost:
            self._begin_again()
        ChangelogLost.raise_if(lost)

    def _offsets(
        self, ask: Callable[[Any, list[Any]], Mapping[Any, int]], partitions: Iterable[Any]
    ) -> Mapping[Any, int]:
        """Ask for the offsets of partitions; topics may be new."""
        asked = list(partitions)
        with self._consumer.knowing({partition.topic for partition in asked}):
            return ask(self._consumer, asked)

    def _was_made_anew(self, partition: Any) -> bool:
        found = topic_id(self._consumer, partition.topic)
        return found is not None and found != self._ids.get(partition)


def _client_partition(partition: TopicPartition) -> Any:
    return ClientPartition(partition.topic, partition.partition)
