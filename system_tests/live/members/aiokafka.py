"""One member on aiokafka: a process with one consumer on one event loop.

As `kafka_python.py`, on the other client. At least once: a batch is processed, reported, then
committed, all under a lock that "revoked" waits for, so that no partition moves before its last
batch is committed.
"""

import asyncio
import os
import sys
import threading
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError

from assignor.adapters.aiokafka import StreamsAssignor
from assignor.adapters.rebootstrap.aiokafka import supervise
from system_tests.live import events
from system_tests.live.members.config import MemberConfig
from system_tests.live.members.process import EXIT_FAILED, Reporter, run_member
from system_tests.live.members.work import Work, build_assignor, rebootstrap_listener

_POLL_MS = 200
_ERROR_PAUSE_S = 0.2
# A consumer whose coordinator task has ended raises at every call; others raise once.
_ERRORS_IN_A_ROW = 50


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    def __init__(self, work: Work, at_work: asyncio.Lock) -> None:
        self._work = work
        self._at_work = at_work
        self._is_over = False

    def end(self) -> None:
        """Stop processing all partitions: the client calls no listener when it closes.

        It may finish a rebalance while it closes; those partitions are not processed.
        """
        self._is_over = True
        self._work.disown_all()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        if assigned and not self._is_over:
            self._work.own({item.partition for item in assigned})

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        async with self._at_work:
            if revoked:
                self._work.disown({item.partition for item in revoked})


def run(config: MemberConfig, *, stopping: threading.Event) -> int:
    """Be a member until `stopping` is set or the assignor fails; return the exit status."""
    return asyncio.run(_Member(config).run(stopping))


class _Member:
    """The member, on the event loop that it runs on."""

    def __init__(self, config: MemberConfig) -> None:
        self._config = config
        self._report = Reporter()
        self._work = Work(self._report)
        self._assignor = build_assignor(config, self._report, StreamsAssignor)

    async def run(self, stopping: threading.Event) -> int:
        config = self._config
        self._report(
            events.MemberStarted(
                pid=os.getpid(),
                release=config.stage.release,
                upgrade_from=config.stage.upgrade_from,
            )
        )
        at_work = asyncio.Lock()
        consumer = self._consumer()
        self._assignor.attach(consumer)
        listener = _Listener(self._work, at_work)
        consumer.subscribe([config.group.topic], listener=listener)
        self._report(events.MemberReady(protocol=self._assignor.name))
        try:
            await consumer.start()
            if config.group.supervised:
                supervise(consumer, listener=rebootstrap_listener(self._report))
            await self._go_on(consumer, at_work, stopping)
        except KafkaError as error:
            if self._assignor.failed is None:
                self._report(events.MemberFailed(why=f"the client gave up: {error}"))
                raise
        finally:
            listener.end()
            self._assignor.close()
            await consumer.stop()
        if self._assignor.failed is not None:
            sys.stderr.write(f"{config.name}: {self._assignor.failed}\n")
            return EXIT_FAILED
        self._report(events.MemberStopped(records=self._work.records))
        return 0

    def _consumer(self) -> Any:
        return AIOKafkaConsumer(**self._config.consumer_settings(self._assignor))

    async def _go_on(self, consumer: Any, at_work: asyncio.Lock, stopping: threading.Event) -> None:
        errors = 0
        while not stopping.is_set() and self._assignor.failed is None:
            try:
                batches = await consumer.getmany(timeout_ms=_POLL_MS)
                async with at_work:
                    await self._process(consumer, batches)
                errors = 0
            except CommitFailedError as error:
                # The group has removed this member: the new owner of the partitions processes
                # these records again.
                sys.stderr.write(f"not committed: {error}\n")
            except KafkaError as error:
                # No assignment, or one that could not be used: try again.
                errors += 1
                sys.stderr.write(f"{self._config.name}: {error}\n")
                if errors > _ERRORS_IN_A_ROW:
                    raise
                await asyncio.sleep(_ERROR_PAUSE_S)

    async def _process(self, consumer: Any, batches: Any) -> None:
        offsets = {
            topic_partition: records[-1].offset + 1
            for topic_partition, records in sorted(batches.items())
            if self._work.process(topic_partition.partition, records)
        }
        if not offsets:
            return
        await consumer.commit(offsets)
        self._report(
            events.OffsetsCommitted(
                offsets=tuple((key.partition, offsets[key]) for key in sorted(offsets))
            )
        )


def main() -> int:
    """Be a member on aiokafka."""
    return run_member(run, client_error=KafkaError)


if __name__ == "__main__":
    sys.exit(main())
