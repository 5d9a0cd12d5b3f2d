"""One member: a process with one consumer, told what to be in one line of JSON.

`python -m system_tests.live.member` reads a `MemberConfig` from the first line of its standard
input, or from its only argument, and reports events on standard output (`events.py`). It ends
cleanly on SIGTERM, and by itself when its standard input ends: a member never outlives the
experiment, however that died.

At least once: a batch is processed, reported, then committed. The main thread polls and processes;
rebalance callbacks run on the client's own thread and take `_Work`'s lock, so that "revoked" is
never reported while a record of that partition is being processed.
"""

import os
import signal
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import CommitFailedError, KafkaError
from kafka.structs import OffsetAndMetadata

from assignor import Topology
from assignor.adapters.kafka_python import StreamsAssignor
from encoding import RebalanceError
from system_tests.live import events
from system_tests.live.config import MemberConfig
from system_tests.live.parent import end_with_parent
from system_tests.live.reporter import Reporter, now_ms

# A join that ends between two polls is thrown away by the client, so one poll must outlast it.
_POLL_MS = 1000
_LEADER_RETRY_S = 0.2
_EXIT_FAILED = 1
_EXIT_USAGE = 2
_EXIT_SURROUNDINGS = 3


class _Work:
    """What the application does: counts words, for the partitions that it owns."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._owned: set[int] = set()
        self.counts: Counter[bytes] = Counter()
        self.records = 0

    def own(self, partitions: Iterable[int]) -> None:
        with self._lock:
            self._report(events.PartitionsAssigned(partitions=tuple(sorted(partitions))))
            self._owned.update(partitions)

    def disown(self, partitions: Iterable[int], *, lost: bool = False) -> None:
        kind = events.PartitionsLost if lost else events.PartitionsRevoked
        with self._lock:
            self._owned.difference_update(partitions)
            self._report(kind(partitions=tuple(sorted(partitions))))

    def disown_all(self) -> None:
        """Hand back what is left; the client tells nobody when it closes after a failure."""
        if self._owned:
            self.disown(set(self._owned))

    def process(self, partition: int, records: Sequence[ConsumerRecord]) -> bool:
        """Process one batch and report it; False if the partition went away meanwhile."""
        with self._lock:
            if partition not in self._owned:
                return False
            began_ms = now_ms()
            for record in records:
                self.counts[record.value] += 1
            self.records += len(records)
            self._report(
                events.RecordsProcessed(
                    partition=partition,
                    first_offset=records[0].offset,
                    last_offset=records[-1].offset,
                    began_ms=round(began_ms, 3),
                )
            )
            return True


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    def __init__(self, work: _Work) -> None:
        self._work = work

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        if assigned:
            self._work.own({item.partition for item in assigned})

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        if revoked:
            self._work.disown({item.partition for item in revoked})

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        if lost:
            self._work.disown({item.partition for item in lost}, lost=True)


def observe(report: Reporter) -> Any:
    """Make the adapter's observer: every observation of a known name becomes a report."""

    def observer(observation: Any) -> None:
        kind = events.EVENTS.get(type(observation).__name__)
        if kind is not None:
            values = {field.name: getattr(observation, field.name) for field in fields(kind)}
            for name in ("active_tasks", "standby_tasks"):
                if name in values:
                    values[name] = tuple(str(task) for task in values[name])
            report(kind(**values))

    return observer


def build_assignor(config: MemberConfig, report: Reporter) -> Any:
    """Build the assignor of one subtopology that counts words, as the release would have it."""
    topology = Topology()
    topology.add_source("words", topics=[config.topic])
    topology.add_processor("count", parents=["words"])
    topology.add_state_store("counts", processors=["count"])
    return StreamsAssignor(
        topology,
        application_id=config.group_id,
        release=config.release,
        upgrade_from=config.upgrade_from,
        process_id=uuid.UUID(config.process_id),
        num_standby_replicas=0,
        observer=observe(report),
    )


def build_consumer(config: MemberConfig, assignor: Any) -> KafkaConsumer:
    """Build the consumer with the timings of the experiment and nothing that it does not need."""
    return KafkaConsumer(
        bootstrap_servers=config.bootstrap_servers,
        group_id=config.group_id,
        client_id=config.name,
        partition_assignment_strategy=[assignor],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=config.session_timeout_ms,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        fetch_max_wait_ms=100,
        metrics_enabled=False,
    )


def run(config: MemberConfig, *, stopping: threading.Event) -> int:
    """Be a member until `stopping` is set or the assignor fails; return the exit status."""
    report = Reporter()
    report(
        events.MemberStarted(
            pid=os.getpid(), release=config.release, upgrade_from=config.upgrade_from
        )
    )
    work = _Work(report)
    assignor = build_assignor(config, report)
    consumer = build_consumer(config, assignor)
    assignor.attach(consumer)
    # Fetched before the first join: a leader that does not know the topic has nothing to hand out.
    consumer.partitions_for_topic(config.topic)
    consumer.subscribe([config.topic], listener=_Listener(work))
    report(events.MemberReady(protocol=assignor.name))
    try:
        while not stopping.is_set() and assignor.failed is None:
            try:
                _step(consumer, work, report)
            except RebalanceError as error:
                # A leader without an answer: an emulated one may have died of it, ours asks on.
                sys.stderr.write(f"{config.name}: {error}\n")
                stopping.wait(_LEADER_RETRY_S)
    except KafkaError as error:
        if assignor.failed is None:
            report(events.MemberFailed(why=f"the client gave up: {error}"))
            raise
    finally:
        consumer.close()
        work.disown_all()
    if assignor.failed is not None:
        sys.stderr.write(f"{config.name}: {assignor.failed}\n")
        return _EXIT_FAILED
    report(events.MemberStopped(records=work.records))
    return 0


def _step(consumer: KafkaConsumer, work: _Work, report: Reporter) -> None:
    batches: Mapping[TopicPartition, Sequence[ConsumerRecord]] = consumer.poll(timeout_ms=_POLL_MS)
    offsets = {
        where: OffsetAndMetadata(records[-1].offset + 1, "", -1)
        for where, records in sorted(batches.items())
        if work.process(where.partition, records)
    }
    if offsets:
        try:
            consumer.commit(offsets)
        except CommitFailedError as error:
            # The group went on without this member, after a long pause perhaps: it joins again at
            # the next poll, and whoever owns the partitions now does these records over.
            sys.stderr.write(f"not committed: {error}\n")
            return
        report(
            events.OffsetsCommitted(
                offsets=tuple((where.partition, offsets[where].offset) for where in sorted(offsets))
            )
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the configuration, tie this process to its parent, run."""
    arguments = sys.argv[1:] if arguments is None else arguments
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    try:
        config = MemberConfig.from_json(arguments[0] if arguments else sys.stdin.readline())
    except ValueError as error:
        sys.stderr.write(f"bad configuration: {error}\n")
        return _EXIT_USAGE
    end_with_parent(stopping)
    try:
        return run(config, stopping=stopping)
    except KafkaError as error:
        sys.stderr.write(f"{config.name}: {type(error).__name__}: {error}\n")
        return _EXIT_SURROUNDINGS


if __name__ == "__main__":
    sys.exit(main())
