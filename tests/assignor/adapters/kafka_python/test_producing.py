"""A producer that fails for good is replaced; a refusal that repeats ends the member."""

import math
import threading
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import InvalidRecordError, KafkaTimeoutError

from assignor import JSON, TEXT, DictStore, TaskId, Topology
from assignor.adapters.kafka_python import KafkaChangelogs, StreamsApplication, producing
from assignor.adapters.kafka_python.producing import ReplacedProducer
from assignor.adapters.kafka_python.settings import ChangelogSettings, ConsumerSettings
from assignor.adapters.threads import LOOP_END
from assignor.embedding import ClusterUnavailable, MemberStopped, StoreNotHeld
from assignor.embedding.state_stores.records import COMMIT_KEY, OWNER_KEY, Owner, owned_record
from encoding import TopicPartition
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import until

CHANGELOG = TopicPartition("app-counts-changelog", 0)
UNKNOWN, TOPIC_RIGHTS, CLUSTER_RIGHTS, INVALID = -1, 29, 31, 87
COUNTS = DictStore("counts", key=TEXT, value=JSON)
TOPOLOGY = (
    Topology()
    .add_source("read", topics=["words"])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)


@pytest.fixture(scope="module")
def broker(clock):
    topics = {CHANGELOG.topic: 1, "out": 1, "other": 1, "words": 1}
    with running_broker(BrokerConfig(topics=topics)) as running:
        yield running


@pytest.fixture
def changelogs(broker):
    with closing(KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)) as made:
        yield made


def claim():
    return [owned_record(CHANGELOG, OWNER_KEY, b"", Owner(1, b"12345678"))]


def commit():
    return [owned_record(CHANGELOG, COMMIT_KEY, b"1", Owner(1, b"12345678"))]


def refused(error, times=1):
    return Fault(api="Produce", error=error, times=times)


@pytest.mark.parametrize("error", [UNKNOWN, INVALID])
def test_one_refusal_costs_one_call_and_a_third_in_a_row_the_member(broker, changelogs, error):
    broker.inject(refused(error))
    with pytest.raises(ClusterUnavailable, match=CHANGELOG.topic):
        changelogs.append(commit())
    [end] = changelogs.end_offsets([CHANGELOG]).values()
    assert changelogs.append(commit()) == [end]
    for match in (ClusterUnavailable, ClusterUnavailable, MemberStopped):
        # A claim succeeds in between, as whenever a task is taken over again.
        changelogs.append(claim())
        broker.inject(refused(error))
        with pytest.raises(match, match=f"changelog {CHANGELOG.topic} cannot be written: "):
            changelogs.append(commit())


def test_the_error_of_an_output_names_its_own_topic_and_ends_with_it(broker, changelogs):
    for match in (ClusterUnavailable, ClusterUnavailable, MemberStopped):
        broker.inject(refused(INVALID))
        changelogs.send("out", None, b"value", None)
        with pytest.raises(match, match=r"topic out cannot be written: .*InvalidRecordError"):
            changelogs.flush()
        # What was sent since is not written with the error of another record.
        changelogs.send("other", b"key", b"value", None)
        changelogs.flush()


def test_records_that_a_failed_producer_drops_are_not_taken_for_written(broker, changelogs):
    broker.inject(refused(INVALID))
    changelogs.send("out", None, b"value", None)
    with pytest.raises(ClusterUnavailable, match="topic out"):
        changelogs._producer._acknowledged(changelogs._producer.unflushed[0], math.inf)
    with pytest.raises(ClusterUnavailable, match="topic out"):
        changelogs.flush()
    changelogs.flush()


class Unanswered:
    """The future of a record that no broker acknowledges, by virtual time."""

    exception = None

    def __init__(self, at):
        self.now_s, self.at = 0.0, at

    def monotonic(self):
        return self.now_s

    def get(self, timeout_s):
        self.now_s += timeout_s
        self.at(self.now_s)
        raise KafkaTimeoutError


@pytest.mark.parametrize(
    ("stop_s", "first_s", "second_s"), [(None, 130, 130), (0, 5, 0), (3, 8, 0), (128, 130, 3)]
)
def test_the_wait_for_an_answer_ends_soon_after_the_loop_is_to_end(
    changelogs, monkeypatch, stop_s, first_s, second_s
):
    ended = threading.Event()
    future = Unanswered(lambda now_s: stop_s is not None and now_s >= stop_s and ended.set())
    monkeypatch.setattr(producing, "time", future)
    monkeypatch.setattr(changelogs._producer, "_lacks", lambda *_: False)
    sent = SimpleNamespace(future=future, kind="changelog", topic=CHANGELOG.topic)
    token = LOOP_END.set(ended)
    if stop_s == 0:
        ended.set()
    try:
        waits = []
        for _ in range(2):
            begin_s = future.now_s
            with pytest.raises(ClusterUnavailable, match="no broker has acknowledged"):
                changelogs._producer._answer(sent, changelogs._producer._end_s())
            waits.append(future.now_s - begin_s)
    finally:
        LOOP_END.reset(token)
    assert waits == [first_s, second_s]


def test_close_gives_up_records_that_no_broker_acknowledges(monkeypatch, broker):
    monkeypatch.setattr(producing, "_LAST_S", 0.2)
    changelogs = KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
    broker.inject(Fault(api="Produce", delay_ms=60_000))
    changelogs.send("out", b"key", b"value", None)
    sender = changelogs._producer._producer._sender
    changelogs.close()
    until(lambda: not sender.is_alive())


class Sent:
    """What a producer returns for a record; it fails when it is asked to."""

    def add_errback(self, note):
        self.note = note

    def fail(self):
        self.note(InvalidRecordError())

    def get(self, _timeout_s):
        raise InvalidRecordError


def test_the_first_record_that_failed_is_named_and_not_those_that_failed_with_it(monkeypatch):
    sent = []

    def send(*_, **__):
        sent.append(Sent())
        return sent[-1]

    def connect(self):
        self._producer = SimpleNamespace(send=send, flush=lambda _: None, close=lambda **_: None)

    monkeypatch.setattr(ReplacedProducer, "_connect", connect)
    producer = ReplacedProducer({})
    for topic in ("dropped", "refused"):
        producer.send(topic, b"key", b"value", None)
    for each in reversed(sent):
        each.fail()
    with pytest.raises(ClusterUnavailable, match="topic refused cannot be written"):
        producer.flush()


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (TOPIC_RIGHTS, "may not write it; grant WRITE on the topic"),
        (CLUSTER_RIGHTS, "grant IDEMPOTENT_WRITE on the cluster"),
    ],
)
def test_a_missing_right_to_write_ends_the_member_with_the_right(broker, changelogs, error, remedy):
    broker.inject(refused(error))
    with pytest.raises(
        MemberStopped, match=f"changelog {CHANGELOG.topic} cannot be written: .*{remedy}"
    ):
        changelogs.append(commit())


def written(broker, number):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(number):
            producer.send("words", key=b"word")


class Running:
    """An application on a thread of its own, and the errors that have ended it."""

    def __init__(self, broker, group_id, handle):
        self.stop, self.errors = threading.Event(), []
        self._handle = handle
        self.application = StreamsApplication(
            TOPOLOGY,
            self._count,
            stores=[COUNTS],
            group_id=group_id,
            client_id="writer",
            bootstrap_servers=broker.bootstrap_servers,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _count(self, record, state):
        state[COUNTS].put("n", state[COUNTS].get("n", 0) + 1)
        self._handle(record, state)

    def _run(self):
        try:
            self.application.run(self.stop)
        except MemberStopped as error:
            self.errors.append(str(error))

    def count(self):
        with suppress(StoreNotHeld):
            return self.application.stores[TaskId(0, 0)][COUNTS].get("n", 0)
        return None

    def close(self):
        self.stop.set()
        self._thread.join()
        self.application.close()


def test_an_application_goes_on_after_a_refusal_and_ends_after_the_same_one_again(broker):
    broken = threading.Event()

    def handle(record, state):
        if broken.is_set():
            state.send("out", value=b"no key")

    with closing(Running(broker, "refused", handle)) as running:
        written(broker, 10)
        until(lambda: running.count() == 10)
        broker.inject(Fault(api="Produce", error=UNKNOWN, client_id="writer"))
        written(broker, 10)
        until(lambda: running.count() == 20)
        broken.set()
        broker.inject(Fault(api="Produce", error=INVALID, times=3, client_id="writer"))
        written(broker, 1)
        until(lambda: running.errors)
        assert "topic out cannot be written" in running.errors[0]
        assert "give each record a key" in running.errors[0]
        until(lambda: not broker.groups()["refused"].members)


def test_type_checkers_know_the_settings_of_both_clients():
    own = {"acks", "enable_idempotence", "key_serializer", "partitioner", "transactional_id"}
    of_producer = KafkaProducer.DEFAULT_CONFIG.keys() - KafkaConsumer.DEFAULT_CONFIG.keys()
    more = ChangelogSettings.__annotations__.keys() - ConsumerSettings.__annotations__.keys()
    recovery = {name for name in more if name.startswith("metadata_recovery")}
    assert more - recovery - {"bootstrap_servers", "group_id"} == (
        of_producer - own - {"value_serializer"}
    )
