"""An application with records that it cannot deserialize, process or write, on a broker."""

import json
import threading

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition
from kafka.serializer import Deserializer

from assignor import (
    JSON,
    TEXT,
    BadRecordAction,
    BadRecordStage,
    ConfigError,
    DeadLetter,
    SqliteStore,
    Topology,
    UnreadableRecord,
)
from assignor.adapters.kafka_python import StreamsApplication
from system_tests.broker import BrokerConfig, running_broker

pytestmark = pytest.mark.usefixtures("clock")
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)
TOPOLOGY = (
    Topology()
    .add_source("s", topics=["in"])
    .add_processor("p", parents=["s"])
    .add_state_store("counts", processors=["p"])
)
GOOD, BAD_JSON, BAD_DIVISOR, TOO_LARGE = b"1", b"{", b"0", b"7"
WRITTEN_MS = 1_700_000_000_000
VALUES = [GOOD, BAD_JSON, GOOD, BAD_DIVISOR, TOO_LARGE, GOOD]


def handle(record, state):
    key = record.key
    state[COUNTS].put(key, (state[COUNTS].get(key) or 0) + 1 // record.value)
    state.send("out", key=b"k", value=b"x" * (3 << 20 if record.value == 7 else 1))


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"in": 1, "out": 1, "dead": 1})) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap_servers) as producer:
            for value in VALUES:
                producer.send("in", value, b"a", headers=[("trace", b"1")], timestamp_ms=WRITTEN_MS)
        yield running


def application(broker, state_dir, **options):
    settings = {
        "group_id": "app",
        "bootstrap_servers": broker.bootstrap_servers,
        "state_dir": state_dir,
        "key_deserializer": bytes.decode,
        "value_deserializer": json.loads,
        "session_timeout_ms": 60_000,
        "heartbeat_interval_ms": 200,
    }
    return StreamsApplication(TOPOLOGY, handle, stores=[COUNTS], **{**settings, **options})


def run_to_the_end(app, broker):
    """Run until the group has committed all input."""
    stop = threading.Event()
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="app") as consumer:

        def look():
            while not stop.wait(0.05):
                if consumer.committed(ClientPartition("in", 0)) == len(VALUES):
                    stop.set()

        looking = threading.Thread(target=look)
        looking.start()
        try:
            app.run(stop)
        finally:
            stop.set()
            looking.join()


def records_of(broker, topic):
    where = ClientPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end, found = consumer.end_offsets([where])[where], []
        while consumer.position(where) < end:
            found += consumer.poll(timeout_ms=500).get(where, [])
    return found


def test_each_stage_writes_a_dead_letter_and_all_else_counts(broker, tmp_path):
    with application(broker, tmp_path, on_bad_record=DeadLetter("dead")) as app:
        run_to_the_end(app, broker)
        [task] = app.stores.active
        assert app.stores[task][COUNTS].get("a") == 3
        assert app.stores.work.bad_records == {
            (stage, "dead letter"): 1 for stage in BadRecordStage
        }
    letters = {}
    for record in records_of(broker, "dead"):
        headers = dict(record.headers)
        letters[int(headers["__streams.errors.offset"])] = (
            record.key,
            record.value,
            headers["trace"],
            headers["__streams.errors.exception"].decode(),
        )
    assert {record.timestamp for record in records_of(broker, "dead")} == {WRITTEN_MS}
    assert letters == {
        1: (b"a", BAD_JSON, b"1", "json.decoder.JSONDecodeError"),
        3: (b"a", BAD_DIVISOR, b"1", "builtins.ZeroDivisionError"),
        4: (b"a", TOO_LARGE, b"1", "assignor.stores.errors.OutputTooLarge"),
    }
    assert {len(record.value) for record in records_of(broker, "out")} == {1}


def test_a_decision_to_fail_has_topic_partition_and_offset(broker, tmp_path):
    with application(broker, tmp_path, on_bad_record=lambda _: BadRecordAction.FAIL) as app:
        with pytest.raises(UnreadableRecord) as raised:
            run_to_the_end(app, broker)
        error = raised.value
        assert (error.topic, error.partition, error.offset) == ("in", 0, 1)
        assert isinstance(error.__cause__, json.JSONDecodeError)
        assert "leave it out: have on_bad_record return BadRecordAction.SKIP" in str(error)


def test_a_function_decides_by_stage_and_gets_what_was_raised(broker, tmp_path):
    raised_there = []

    def decide(bad):
        raised_there.append(type(bad.error))
        is_skipped = bad.stage is not BadRecordStage.PROCESSING
        return BadRecordAction.SKIP if is_skipped else BadRecordAction.FAIL

    with application(broker, tmp_path, on_bad_record=decide) as app:
        with pytest.raises(ZeroDivisionError) as raised:
            run_to_the_end(app, broker)
        assert raised.value.__notes__ == ["in [0], offset 3, task 0_0"]
        assert app.stores.work.bad_records == {(BadRecordStage.DESERIALIZATION, "skip"): 1}
        assert raised_there == [json.JSONDecodeError, ZeroDivisionError]


class Named(Deserializer):
    """Of kafka-python's kind: it gets the topic and the headers, too."""

    def deserialize(self, topic, headers, data):
        assert (topic, headers) == ("in", [("trace", b"1")])
        return 1 if data == BAD_JSON else json.loads(data)


def test_deserializers_of_the_client_s_kind_get_topic_and_headers(broker, tmp_path):
    options = {"value_deserializer": Named(), "on_bad_record": BadRecordAction.SKIP}
    with application(broker, tmp_path, **options) as app:
        run_to_the_end(app, broker)
        [task] = app.stores.active
        assert app.stores[task][COUNTS].get("a") == 4


def test_the_producer_has_its_settings(broker, tmp_path):
    """The remedy for an output that is too large, as the message of the error names it."""
    options = {"max_request_size": 4 << 20, "on_bad_record": DeadLetter("dead")}
    with application(broker, tmp_path, **options) as app:
        assert "max_request_size" not in app.consumer.config
        run_to_the_end(app, broker)
        # The broker refuses it when all outputs are acknowledged; then records go one by one.
        assert app.stores.work.bad_records[BadRecordStage.PRODUCTION, "dead letter"] == 1
        assert {stage for stage, _ in app.stores.work.bad_records} == {*BadRecordStage}
    for value in ("much", -1):
        with pytest.raises(ConfigError, match="max_request_size"):
            application(broker, tmp_path, max_request_size=value)


def test_what_is_no_deserializer_is_refused(broker, tmp_path):
    options = {"value_deserializer": "json", "on_bad_record": BadRecordAction.SKIP}
    with pytest.raises(ConfigError, match="value_deserializer='json'"):
        application(broker, tmp_path, **options)
