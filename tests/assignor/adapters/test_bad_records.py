"""Bad records with aiokafka and confluent-kafka: fail, skip and dead letter, in each stage."""

import asyncio
import json
import threading

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition

from assignor import (
    BadRecordAction,
    BadRecordStage,
    DeadLetter,
    TaskStores,
    UnreadableRecord,
)
from assignor.adapters import aiokafka, confluent, kafka_python
from assignor.embedding.bad_records import value_of
from assignor.stores import OutputTooLarge
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LIMIT_S,
    SESSION,
    committed,
    confluent_config,
    process_with_aiokafka,
    until,
)

pytestmark = pytest.mark.usefixtures("clock")

WRITTEN_MS = 1_700_000_000_000
VALUES = [b"1", b"{", b"1", b"0", b"7", b"1"]
BAD = {1: "json.decoder.JSONDecodeError", 3: "builtins.ZeroDivisionError"}
LARGE = {4: "assignor.stores.errors.OutputTooLarge"}


def handle(record, state):
    value = json.loads(value_of(record, "value"))
    state[COUNTS].put("all", (state[COUNTS].get("all") or 0) + 1 // value)
    state.send("out", key=b"k", value=b"x" * (3 << 20 if value == 7 else 1))


def run_aiokafka(broker, stores, stop, **settings):
    async def run():
        async with aiokafka.streams_consumer(
            COUNTING,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            listener=stores,
            **SESSION | settings,
        ) as consumer:
            await process_with_aiokafka(consumer, stores, handle, stop)

    asyncio.run(run())


def run_confluent(broker, stores, stop):
    with confluent.Consumer(
        confluent_config(broker, **SESSION), topology=COUNTING, listener=stores
    ) as consumer:
        confluent.run_tasks(consumer, stores, handle, stop=stop, timeout=0.2)


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"in": 1, "out": 1, "dead": 1})) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap_servers) as producer:
            for value in VALUES:
                headers = [("trace", b"1")]
                producer.send("in", value, b"a", headers=headers, timestamp_ms=WRITTEN_MS)
        yield running


def process(run, broker, on_bad_record, is_done, **settings):
    """Run a member until it is done, or raises; return its state and its counts."""
    stop, errors = threading.Event(), []
    access = kafka_python.KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
    with TaskStores(
        COUNTING, [COUNTS], application_id=GROUP, access=access, on_bad_record=on_bad_record
    ) as stores:

        def go():
            try:
                run(broker, stores, stop, **settings)
            except Exception as error:  # noqa: BLE001 the test raises it
                errors.append(error)

        thread = threading.Thread(target=go)
        thread.start()
        try:
            until(lambda: errors or is_done(stores))
            if errors:
                raise errors[0]
            [task] = stores.active
            return stores[task][COUNTS].get("all"), dict(stores.work.bad_records)
        finally:
            stop.set()
            thread.join(LIMIT_S)


def records_of(broker, topic):
    where = ClientPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end, found = consumer.end_offsets([where])[where], []
        while consumer.position(where) < end:
            found += consumer.poll(timeout_ms=500).get(where, [])
    return found


RUNS = pytest.mark.parametrize("run", [run_aiokafka, run_confluent])


@RUNS
@pytest.mark.parametrize("action", [BadRecordAction.SKIP, DeadLetter("dead")])
def test_bad_records_are_passed_over_and_all_others_count_once(run, action, broker):
    state, counts = process(run, broker, action, lambda _: committed(broker) == {0: len(VALUES)})
    kind = "skip" if action is BadRecordAction.SKIP else "dead letter"
    assert state == 3
    assert counts[BadRecordStage.PRODUCTION, kind] == 1
    assert counts.keys() == {
        (stage, kind) for stage in (BadRecordStage.PROCESSING, BadRecordStage.PRODUCTION)
    }
    letters = {}
    for record in records_of(broker, "dead"):
        headers = dict(record.headers)
        assert (record.timestamp, headers["trace"], record.key) == (WRITTEN_MS, b"1", b"a")
        offset = int(headers["__streams.errors.offset"])
        assert record.value == VALUES[offset]
        letters[offset] = headers["__streams.errors.exception"].decode()
    assert letters == ({} if kind == "skip" else BAD | LARGE)
    assert {len(record.value) for record in records_of(broker, "out")} == {1}


@RUNS
def test_by_default_each_ends_the_loop_and_is_named(run, broker):
    with pytest.raises(json.JSONDecodeError) as raised:
        process(run, broker, BadRecordAction.FAIL, lambda _: False)
    assert raised.value.__notes__ == ["in [0], offset 1, task 0_0"]
    assert committed(broker).get(0, 0) <= 1


@RUNS
def test_an_output_that_is_refused_ends_the_loop_if_it_is_decided_so(run, broker):
    def decide(bad):
        fails = bad.stage is BadRecordStage.PRODUCTION
        return BadRecordAction.FAIL if fails else BadRecordAction.SKIP

    with pytest.raises(OutputTooLarge) as raised:
        process(run, broker, decide, lambda _: False)
    assert raised.value.__notes__ == ["in [0], offset 4, task 0_0"]


@RUNS
def test_a_topic_for_dead_letters_that_is_missing_holds_everything_until_it_is_there(run, broker):
    created = []

    def is_done(stores):
        if not created and "topic late does not exist" in stores.work.waits:
            assert committed(broker).get(0, 0) <= 1
            broker.create_topic("late")
            created.append(True)
        return committed(broker) == {0: len(VALUES)}

    assert process(run, broker, DeadLetter("late"), is_done)[0] == 3
    assert len(records_of(broker, "late")) == len(BAD | LARGE)


def test_a_deserializer_of_the_client_is_no_decision_of_on_bad_record(broker):
    """It has raised before the member has the record."""
    with pytest.raises(UnreadableRecord, match="offset 1 cannot be read"):
        process(
            run_aiokafka,
            broker,
            BadRecordAction.SKIP,
            lambda _: False,
            value_deserializer=lambda value: json.loads(value) and value,
        )
