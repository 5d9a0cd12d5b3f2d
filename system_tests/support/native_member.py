"""A native member that runs the same tasks as a JVM member, with the same state.

`python -m system_tests.support.native_member` reads a `RealConfig` from its standard input, then
commands, like `jvm/member.py`, and reports the events of its assignor.

The state of a task is restored from its changelog before its first record. Output is flushed before
offsets are committed: at-least-once, the default of Kafka Streams.
"""

import os
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from assignor import sticky
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.membership import EmbeddedMember
from assignor.rebalance import Routing
from encoding import RebalanceError
from system_tests.json_lines import read_line
from system_tests.live import events
from system_tests.live.members.config import CLIENT_SETTINGS
from system_tests.live.members.process import Reporter, ask_kernel_to_end_with_parent
from system_tests.live.members.work import reporting_observer
from system_tests.support.counts import COUNT, read_counts
from system_tests.support.word_count import (
    RealConfig,
    changelog_topic,
    counts_topic,
    repartition_topic,
    word_count,
    words_topic,
)

_POLL_MS = 1000
_RETRY_S = 0.2
_EXIT_FAILED = 1


class _Tasks:
    """State stores of the running tasks; processes records and produces their output."""

    def __init__(self, config: RealConfig) -> None:
        self._bootstrap_servers = config.bootstrap_servers
        self._words = words_topic(config.application_id)
        self._counts = counts_topic(config.application_id)
        self._repartition = repartition_topic(config.application_id)
        self._changelog = changelog_topic(config.application_id)
        self._producer = KafkaProducer(
            bootstrap_servers=config.bootstrap_servers, acks="all", metrics_enabled=False
        )
        self._lock = threading.Lock()
        self._owned: set[TopicPartition] = set()
        self._stores: dict[int, Counter[bytes]] = {}
        self.records = 0

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._owned.update(partitions)

    def disown(self, partitions: Iterable[TopicPartition]) -> None:
        with self._lock:
            for where in partitions:
                self._owned.discard(where)
                if where.topic == self._repartition:
                    self._stores.pop(where.partition, None)

    def process(self, where: TopicPartition, records: Sequence[ConsumerRecord]) -> bool:
        """Process a batch; return False if the partition was revoked meanwhile."""
        with self._lock:
            if where not in self._owned:
                return False
            if where.topic == self._words:
                for record in records:
                    self._producer.send(self._repartition, key=record.value, value=record.value)
            else:
                self._count(where.partition, records)
            self._producer.flush()
            self.records += len(records)
            return True

    def close(self) -> None:
        self._producer.close()

    def _count(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        if partition not in self._stores:
            self._stores[partition] = self._restored(partition)
        store = self._stores[partition]
        try:
            for record in records:
                store[record.key] += 1
                row = {"key": record.key, "value": COUNT.pack(store[record.key])}
                self._producer.send(self._changelog, partition=partition, **row)
                self._producer.send(self._counts, **row)
        except KafkaError:
            del self._stores[partition]  # restored again, as records of the batch were counted
            raise

    def _restored(self, partition: int) -> Counter[bytes]:
        return read_counts(self._bootstrap_servers, self._changelog, (partition,))


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    def __init__(self, tasks: _Tasks) -> None:
        self._tasks = tasks

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._tasks.own(assigned)

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._tasks.disown(revoked)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self._tasks.disown(lost)


def build_assignor(config: RealConfig, report: Reporter) -> StreamsAssignor:
    """Return the assignor; it reports its events."""
    return StreamsAssignor(
        word_count(config.application_id),
        application_id=config.application_id,
        process_id=uuid.UUID(config.process_id),
        upgrade_from=config.upgrade_from,
        start_version="latest" if config.start_version == "latest" else None,
        rebalance_protocol="cooperative" if config.cooperative else "eager",
        endpoint=config.endpoint,
        hold_back=config.hold_back,
        num_standby_replicas=config.num_standby_replicas,
        internal_topics=None,  # made before the group starts, as its tests count rebalances
        strategy=sticky,  # the changelogs are not read, so lags are not known
        observer=reporting_observer(report),
    )


def run(config: RealConfig, report: Reporter) -> int:
    """Run the member until it is stopped; return the exit status."""
    stopping = threading.Event()
    assignor = build_assignor(config, report)
    tasks = _Tasks(config)
    consumer = KafkaConsumer(
        **CLIENT_SETTINGS,
        bootstrap_servers=config.bootstrap_servers,
        group_id=config.application_id,
        client_id=config.name,
        partition_assignment_strategy=[assignor],
        session_timeout_ms=config.session_timeout_ms,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        metrics_enabled=False,
    )
    assignor.attach(consumer)
    topics = (words_topic(config.application_id), repartition_topic(config.application_id))
    for topic in topics:
        consumer.partitions_for_topic(topic)  # a leader without its metadata assigns nothing
    consumer.subscribe(topics, listener=_Listener(tasks))
    threading.Thread(target=_obey, args=(assignor, report, stopping), daemon=True).start()
    try:
        while not stopping.is_set() and assignor.failed is None:
            try:
                _step(consumer, tasks)
            except (KafkaError, RebalanceError) as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                stopping.wait(_RETRY_S)
    finally:
        consumer.close()
        tasks.close()
    if assignor.failed is not None:
        return _EXIT_FAILED
    report(events.MemberStopped(records=tasks.records))
    return 0


def _step(consumer: KafkaConsumer, tasks: _Tasks) -> None:
    batches: Mapping[TopicPartition, Sequence[ConsumerRecord]] = consumer.poll(timeout_ms=_POLL_MS)
    waiting = dict(sorted(batches.items()))
    offsets = {}
    try:
        for where, records in batches.items():
            if tasks.process(where, records):
                offsets[where] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
            del waiting[where]
    except KafkaError:
        # The client's position is behind the batches: without this, they would never be read again.
        for where in sorted(waiting.keys() & consumer.assignment()):
            consumer.seek(where, waiting[where][0].offset)
        raise
    finally:
        if offsets:
            consumer.commit(offsets)


def _obey(assignor: EmbeddedMember, report: Reporter, stopping: threading.Event) -> None:
    for line in sys.stdin:
        if line.strip() != "hosts":
            break
        report(events.HostsReported(hosts=_hosts(assignor.routing)))
    stopping.set()


def _hosts(routing: Routing) -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        f"{host.host}:{host.port}": {
            kind: tuple(sorted(f"{p.topic}-{p.partition}" for p in partitions.get(host, ())))
            for kind, partitions in (("active", routing.active), ("standby", routing.standby))
        }
        for host in sorted({*routing.active, *routing.standby})
    }


def main() -> int:
    """Read the configuration, end with the parent process, run."""
    report = Reporter()
    config = read_line(RealConfig, sys.stdin.readline())
    ask_kernel_to_end_with_parent()
    return run(config, report)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # the thread that reads commands may be blocked
