"""One member on confluent-kafka: a process with one `assignor.adapters.confluent.Consumer`.

As `kafka_python.py`, on the other client. At least once: a batch is processed, reported, then
committed. All callbacks run in `consume`, so that no partition moves before its last batch is
committed.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, Message, TopicPartition

from assignor.adapters.confluent import Consumer
from system_tests.live import events
from system_tests.live.members.config import MemberConfig
from system_tests.live.members.process import EXIT_FAILED, Reporter, run_member
from system_tests.live.members.work import Work, build_assignor

_BATCH: Final = 500
_CONSUME_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class _Record:
    offset: int
    value: bytes


def run(config: MemberConfig, *, stopping: threading.Event) -> int:
    """Be a member until `stopping` is set or the client gives up; return the exit status."""
    report = Reporter()
    report(
        events.MemberStarted(
            pid=os.getpid(), release=config.stage.release, upgrade_from=config.stage.upgrade_from
        )
    )
    work = Work(report)

    def consumer_of(topology: Any, **options: Any) -> Consumer:
        return Consumer(_settings(config), topology=topology, **options)

    consumer = build_assignor(config, report, consumer_of)

    def callback(change: Callable[[set[int]], None]) -> Callable[..., None]:
        return lambda _, partitions: change({each.partition for each in partitions})

    consumer.subscribe(
        [config.group.topic],
        on_assign=callback(work.own),
        on_revoke=callback(work.disown),
        on_lost=callback(lambda lost: work.disown(lost, lost=True)),
    )
    report(events.MemberReady(protocol=consumer.assignor.name))
    failure = ""
    try:
        while not stopping.is_set() and not failure:
            failure = _step(consumer, work, report)
    finally:
        consumer.close()
        work.disown_all()
    if failure:
        sys.stderr.write(f"{config.name}: {failure}\n")
        if consumer.assignor.failed is None:
            report(events.MemberFailed(why=f"the client gave up: {failure}"))
        return EXIT_FAILED
    report(events.MemberStopped(records=work.records))
    return 0


def _settings(config: MemberConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": config.group.bootstrap_servers,
        "group.id": config.group.group_id,
        "client.id": config.name,
        "session.timeout.ms": config.group.session_timeout_ms,
        "heartbeat.interval.ms": config.group.heartbeat_ms,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 1000,
    }
    return settings | ({"group.instance.id": config.name} if config.group.static else {})


def _step(consumer: Consumer, work: Work, report: Reporter) -> str:
    """Process and commit one batch; return why the member has to end, or nothing."""
    batches: dict[int, list[_Record]] = {}
    topic = ""
    for message in consumer.consume(_BATCH, timeout=_CONSUME_S):
        error = message.error()
        if error is not None and error.fatal():
            return str(error.str())
        if error is not None:
            sys.stderr.write(f"{error.str()}\n")
            continue
        topic, partition, record = _record(message)
        batches.setdefault(partition, []).append(record)
    offsets = {
        partition: batches[partition][-1].offset + 1
        for partition in sorted(batches)
        if work.process(partition, batches[partition])
    }
    if offsets:
        _commit(consumer, [TopicPartition(topic, *each) for each in offsets.items()], report)
    return ""


def _record(message: Message) -> tuple[str, int, _Record]:
    return (
        message.topic() or "",
        message.partition() or 0,
        _Record(message.offset() or 0, message.value() or b""),
    )


def _commit(consumer: Consumer, offsets: Sequence[TopicPartition], report: Reporter) -> None:
    try:
        consumer.commit(offsets=list(offsets), asynchronous=False)
    except KafkaException as error:
        # The group has removed this member, perhaps after a long pause: it joins again at the next
        # poll, and the new owner of the partitions processes these records again.
        sys.stderr.write(f"not committed: {error}\n")
        return
    report(events.OffsetsCommitted(offsets=tuple((p.partition, p.offset) for p in offsets)))


def main() -> int:
    """Be a member on confluent-kafka."""
    return run_member(run, client_error=KafkaException)


if __name__ == "__main__":
    sys.exit(main())
