"""One member on kafka-python: a process with one consumer, configured by one line of JSON.

`python -m system_tests.live.members.kafka_python` reads a `MemberConfig` from the first line of its
standard input, or from its only argument, and reports events on standard output
(`system_tests/live/events.py`). It ends cleanly on SIGTERM, and by itself when its standard input
ends: no member outlives the experiment.

At least once: a batch is processed, reported, then committed. The main thread polls and processes;
rebalance callbacks run on the client's own thread and take `Work`'s lock, so that "revoked" is
never reported while a record of that partition is being processed.
"""

import os
import sys
import threading
from collections.abc import Mapping, Sequence

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from assignor.adapters.kafka_python import StreamsAssignor
from assignor.adapters.rebootstrap.kafka_python import supervise
from assignor.embedding import fatal_reason
from encoding import RebalanceError
from system_tests.live import events
from system_tests.live.members.config import MemberConfig
from system_tests.live.members.process import EXIT_FAILED, Reporter, run_member
from system_tests.live.members.work import Work, build_assignor, rebootstrap_listener

_POLL_MS = 1000
_LEADER_RETRY_S = 0.2


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    def __init__(self, work: Work) -> None:
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


def run(config: MemberConfig, *, stopping: threading.Event) -> int:
    """Be a member until `stopping` is set or the assignor fails; return the exit status."""
    report = Reporter()
    report(
        events.MemberStarted(
            pid=os.getpid(), release=config.stage.release, upgrade_from=config.stage.upgrade_from
        )
    )
    work = Work(report)
    assignor = build_assignor(config, report, StreamsAssignor)
    consumer = KafkaConsumer(
        **config.consumer_settings(assignor),
        reconnect_backoff_max_ms=1_000,
        metrics_enabled=False,
    )
    assignor.attach(consumer)
    if config.group.supervised:
        supervise(consumer, listener=rebootstrap_listener(report))
    # Fetched before the first join: a leader that does not know the topic assigns nothing.
    consumer.partitions_for_topic(config.group.topic)
    consumer.subscribe([config.group.topic], listener=_Listener(work))
    report(events.MemberReady(protocol=assignor.name))
    try:
        while not stopping.is_set() and assignor.failed is None:
            try:
                _step(consumer, work, report)
            except RebalanceError as error:
                # The leader sent no assignment; an emulated one may have failed. Try again.
                sys.stderr.write(f"{config.name}: {error}\n")
                stopping.wait(_LEADER_RETRY_S)
            except KafkaError as error:
                # Perhaps no broker answers: try again.
                if assignor.failed is not None or fatal_reason(error) is not None:
                    raise
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
        return EXIT_FAILED
    report(events.MemberStopped(records=work.records))
    return 0


def _step(consumer: KafkaConsumer, work: Work, report: Reporter) -> None:
    batches: Mapping[TopicPartition, Sequence[ConsumerRecord]] = consumer.poll(timeout_ms=_POLL_MS)
    offsets = {
        topic_partition: OffsetAndMetadata(records[-1].offset + 1, "", -1)
        for topic_partition, records in sorted(batches.items())
        if work.process(topic_partition.partition, records)
    }
    if offsets:
        try:
            consumer.commit(offsets)
        except (CommitFailedError, RebalanceInProgressError) as error:
            # The group has removed this member, perhaps after a long pause: it joins again at the
            # next poll, and the new owner of the partitions processes these records again.
            sys.stderr.write(f"not committed: {error}\n")
            return
        report(
            events.OffsetsCommitted(
                offsets=tuple((key.partition, offsets[key].offset) for key in sorted(offsets))
            )
        )


def main() -> int:
    """Be a member on kafka-python."""
    return run_member(run, client_error=KafkaError)


if __name__ == "__main__":
    sys.exit(main())
