"""A rebalance that waits for a slow member costs the others no state: with every client."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
from aiokafka import TopicPartition

from assignor import TaskStores
from assignor.adapters import aiokafka, confluent, kafka_python
from encoding import TaskId
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LIMIT_S,
    SESSION,
    confluent_config,
    filled,
    until,
    write,
)

pytestmark = pytest.mark.usefixtures("clock")

RECORDS, TASKS = 20, [TaskId(0, number) for number in range(4)]


class CountedStores(TaskStores):
    """Stores of one member.

    Attributes:
        sentences: what they told.
        opened: copies that were opened, with their tasks.
        suspended_polls: calls of `process` that ended with suspended tasks.
    """

    def __init__(self, broker):
        self.sentences, self.opened, self.suspended_polls = [], [], 0
        super().__init__(
            COUNTING,
            [COUNTS],
            application_id=GROUP,
            access=kafka_python.KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers),
            tell=self.sentences.append,
        )
        opened = self._local.open
        self._local.open = lambda task: self.opened.append(task) or opened(task)

    def process(self, batch, handle, **options):
        done = super().process(batch, handle, **options)
        self.suspended_polls += bool(self.suspended)
        return done


def run_kafka_python(broker, stores, handle, stop, protocol):
    with kafka_python.streams_consumer(
        COUNTING,
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        listener=stores,
        enable_auto_commit=False,
        rebalance_protocol=protocol,
        **SESSION,
    ) as consumer:
        kafka_python.run_tasks(consumer, stores, handle, stop=stop, timeout_ms=50)


def run_confluent(broker, stores, handle, stop, protocol):
    config = confluent_config(broker, **SESSION)
    with confluent.Consumer(
        config, topology=COUNTING, listener=stores, rebalance_protocol=protocol
    ) as consumer:
        confluent.run_tasks(consumer, stores, handle, stop=stop, timeout=0.05)


def run_aiokafka(broker, stores, handle, stop, protocol):
    async def run():
        async with aiokafka.streams_consumer(
            COUNTING,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            listener=stores,
            rebalance_protocol=protocol,
            **SESSION,
        ) as consumer:
            async for batch in aiokafka.polled(consumer, timeout_ms=50):
                done = await asyncio.to_thread(stores.process, batch, handle)
                await aiokafka.commit_next(consumer, done)
                if stop.is_set():
                    return
                for partition, offset in stores.unread().items():
                    if partition in consumer.assignment():
                        consumer.seek(partition, offset)
                waiting = {TopicPartition(*each) for each in stores.waiting} & consumer.assignment()
                consumer.pause(*waiting)
                consumer.resume(*(consumer.paused() - waiting))

    asyncio.run(run())


@contextmanager
def member_of(run, broker, handle, protocol):
    """Run a member on a thread; yield its stores."""
    stop, errors = threading.Event(), []

    def go():
        try:
            run(broker, stores, handle, stop, protocol)
        except BaseException as error:  # noqa: BLE001 the test raises it
            errors.append(error)

    with CountedStores(broker) as stores:
        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield stores
        finally:
            stop.set()
            thread.join(LIMIT_S)
            if errors:
                raise errors[0]


@pytest.mark.parametrize(
    ("run", "protocol"),
    [
        (run_kafka_python, "eager"),
        (run_aiokafka, "eager"),
        (run_confluent, "cooperative"),
    ],
)
def test_tasks_that_stay_are_not_restored_when_a_rebalance_waits_for_a_slow_member(run, protocol):
    is_slow, may_join = threading.Event(), threading.Event()

    def count(record, state):
        offset = record.offset() if callable(record.offset) else record.offset
        state[COUNTS].put(f"k{offset}", 1)

    def count_slowly(record, state):
        count(record, state)
        offset = record.offset() if callable(record.offset) else record.offset
        if offset == RECORDS:
            is_slow.set()
            assert may_join.wait(LIMIT_S)

    def entries(stores, task):
        return len(list(stores[task][COUNTS].items()))

    with filled(RECORDS, 4) as broker, member_of(run, broker, count, protocol) as first:
        until(lambda: first.active.issuperset(TASKS) and not first.waiting)
        until(lambda: all(entries(first, task) == RECORDS for task in TASKS))
        with member_of(run, broker, count_slowly, protocol) as second:
            until(lambda: len(second.active) == len(first.active) == 2 and not second.waiting)
            write(broker, [0], 4)
            assert is_slow.wait(LIMIT_S)
            kept = first.active
            until(lambda: all(entries(first, task) == RECORDS + 1 for task in kept))
            opened, sentences_before = list(first.opened), len(first.sentences)
            polls_before = first.suspended_polls
            with member_of(run, broker, count, protocol) as third:
                if protocol == "eager":
                    until(lambda: first.suspended_polls > polls_before + 1)
                    assert first.suspended == kept
                until(lambda: len(broker.groups()[GROUP].members) == 3)
                assert all(entries(first, task) == RECORDS + 1 for task in kept)
                may_join.set()
                until(lambda: third.active and not third.waiting)
                until(lambda: first.active and not (first.suspended or first.waiting))
                assert first.active <= kept
                assert first.opened == opened
                later = first.sentences[sentences_before:]
                assert not any(sentence.startswith("restored") for sentence in later)
