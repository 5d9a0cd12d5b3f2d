"""An interrupt at each line between a poll and the stores that keep its records: none is lost."""

import asyncio
import sys
import threading
from types import SimpleNamespace

import kafka
import pytest

from assignor.adapters import aiokafka, kafka_python
from assignor.adapters.processing import BlockingLoop, carry_out
from assignor.embedding import DictStore, TaskStores
from assignor.embedding.loops import Engine, PolledBatch, PollLoop, TaskEngine
from assignor.embedding.state_stores.held_input import HeldInput
from tests.assignor.adapters.reports.logs import GROUP, SESSION, TOPOLOGY, filled
from tests.assignor.adapters.scripted import Client
from tests.assignor.embedding.state_stores.logs import INPUTS, WORDS, Cluster, Member

TRACED = (
    BlockingLoop.run,
    BlockingLoop.batches,
    carry_out,
    Engine.batches,
    Engine._hand_over,
    Engine._poll_on,
    Engine._poll,
    Engine._drop_former,
    Engine._ends,
    TaskEngine.tasks,
    TaskEngine._deliver,
    TaskEngine._process,
    TaskEngine._follow,
    PollLoop.delivered,
    PolledBatch.__init__,
    PolledBatch.held,
    TaskStores.process,
    TaskStores._give_up_revoked,
    HeldInput.hold,
)


class SlowClient(Client):
    """A poll returns one record of each partition."""

    def __init__(self, cluster):
        super().__init__(cluster, clock=None, script=())
        self.begun = {}

    def begins(self, partitions, before):
        return {each: at for each, at in self.begun.items() if each in partitions}

    def poll(self, max_records, *, waits):
        self.begun = {each: self.position.get(each, 0) for each in self.assignment}
        batch = {}
        for partition in sorted(self.assignment - self.are_paused):
            begin = self.position[partition]
            batch[partition] = self.cluster.input[partition][begin : begin + 1]
            self.position[partition] = begin + len(batch[partition])
        self.is_shutdown = not any(batch.values())
        return batch


def raise_at(line):
    """Raise at the line-th line that is executed in the traced functions; return what is left."""
    codes = {function.__code__ for function in TRACED}
    left = SimpleNamespace(lines=line)

    def trace(frame, event, argument):
        if event == "line":
            left.lines -= 1
            if left.lines == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    def trace_calls(frame, event, argument):
        return trace if frame.f_code in codes else None

    sys.settrace(trace_calls)
    return left


def loop_of(client):
    loop = PollLoop(max_poll_interval_ms=60_000)
    return BlockingLoop(client, loop, threading.Event())


def twice(client, line, run):
    """Run once with an interrupt, then to the end; return whether it was interrupted."""
    before = sys.gettrace()
    left = raise_at(line)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    client.is_shutdown = False
    run()
    return left.lines <= 0


def tasks_are_complete(line):
    cluster = Cluster()
    cluster.write(*WORDS[:2])
    member = Member(cluster, kind=DictStore)
    client = SlowClient(cluster)
    member.assign()
    is_interrupted = twice(client, line, lambda: loop_of(client).run(member.stores, member.count))
    assert dict(client.position) == {each: len(cluster.input[each]) for each in INPUTS}
    return is_interrupted, member.state() == cluster.expected()


def batches_are_complete(line):
    cluster = Cluster()
    cluster.write(*WORDS[:2])
    client, got = SlowClient(cluster), set()

    def run():
        for batch in loop_of(client).batches():
            got.update((each, record.offset) for each, found in batch.items() for record in found)

    is_interrupted = twice(client, line, run)
    wanted = {(each, record.offset) for each in INPUTS for record in cluster.input[each]}
    return is_interrupted, got == wanted


@pytest.mark.parametrize("run", [tasks_are_complete, batches_are_complete])
def test_no_record_is_lost_by_an_interrupt_at_any_line_until_it_is_handed_over(run):
    lost, line, is_interrupted = [], 0, True
    while is_interrupted:
        line += 1
        is_interrupted, is_complete = run(line)
        if not is_complete:
            lost.append(line)
    assert lost == []
    assert line > 30


RECORDS = 5
# Long enough that partitions are assigned, fetched and taken in the first call.
POLL_MS = 60_000


def commit_first(broker):
    """Commit offset 0: a call that finds no offset ends with it, and takes nothing."""
    with kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id=GROUP, enable_auto_commit=False
    ) as consumer:
        partition = kafka.TopicPartition("in", 0)
        consumer.assign([partition])
        consumer.commit({partition: kafka.OffsetAndMetadata(0, "", -1)})


def interrupted_kafka_python(broker, seen):
    with kafka_python.streams_consumer(
        TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
    ) as consumer:
        fetched = consumer._fetcher.fetched_records

        def fetch(*arguments, **options):
            records, is_partial = fetched(*arguments, **options)
            if records:
                consumer._fetcher.fetched_records = fetched
                seen.append(("interrupt", *consumer._subscription.all_consumed_offsets()))
                raise KeyboardInterrupt
            return records, is_partial

        consumer._fetcher.fetched_records = fetch
        with pytest.raises(KeyboardInterrupt):
            next(kafka_python.polled(consumer, timeout_ms=POLL_MS))
        for batch in kafka_python.polled(consumer, timeout_ms=POLL_MS):
            seen.extend(record.offset for found in batch.values() for record in found)
            if seen[-1] == RECORDS - 1:
                break


def interrupted_aiokafka(broker, seen):
    async def run():
        async with aiokafka.streams_consumer(
            TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
        ) as consumer:
            fetched = consumer._fetcher.fetched_records

            async def fetch(*arguments, **options):
                records = await fetched(*arguments, **options)
                if records:
                    consumer._fetcher.fetched_records = fetched
                    seen.append(("interrupt", *records))
                    raise asyncio.CancelledError
                return records

            consumer._fetcher.fetched_records = fetch
            with pytest.raises(asyncio.CancelledError):
                await anext(aiokafka.polled(consumer, timeout_ms=POLL_MS))
            async for batch in aiokafka.polled(consumer, timeout_ms=POLL_MS):
                seen.extend(record.offset for found in batch.values() for record in found)
                if seen[-1] == RECORDS - 1:
                    break

    asyncio.run(run())


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("run", [interrupted_kafka_python, interrupted_aiokafka])
def test_an_interrupt_in_the_poll_that_has_assigned_a_partition_loses_no_record(run):
    seen = []
    with filled(RECORDS) as broker:
        commit_first(broker)
        run(broker, seen)
    (interrupt, *_), *offsets = seen
    assert interrupt == "interrupt"
    assert offsets == list(range(RECORDS))
