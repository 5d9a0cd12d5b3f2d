"""Changelogs through kafka-python, on a broker: append, follow, lose records, fail."""

import logging
from contextlib import closing, nullcontext, suppress
from types import SimpleNamespace

import pytest
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from assignor import ConfigError
from assignor.adapters.kafka_python import KafkaChangelogs
from assignor.adapters.kafka_python.changelog_reader import ChangelogReader
from assignor.embedding import ClusterUnavailable, NewRecord
from assignor.embedding.state_stores.records import Owner, owned_record
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.tables import DictTable
from assignor.stores import StoreError
from encoding import TopicPartition
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import until

CHANGELOGS = [TopicPartition("app-counts-changelog", number) for number in range(2)]
OWNER = Owner(1, b"12345678")
FAST = {"request_timeout_ms": 1000, "delivery_timeout_ms": 2000, "max_block_ms": 2000}


@pytest.fixture(scope="module")
def broker(clock):
    topics = {"app-counts-changelog": 2, "out": 3}
    with running_broker(BrokerConfig(topics=topics, max_batch_bytes=100_000)) as running:
        yield running


@pytest.fixture
def changelogs(broker):
    with closing(KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)) as made:
        yield made


def replicas():
    return [Replica("counts", changelog, DictTable("counts")) for changelog in CHANGELOGS]


def records(keys, changelog=CHANGELOGS[0]):
    return [owned_record(changelog, key.encode(), b"1", OWNER) for key in keys]


def read_all(changelogs, stores):
    ends = changelogs.end_offsets([store.changelog for store in stores])
    while any(store.position < ends[store.changelog] for store in stores):
        changelogs.read(stores, wait_s=0.1)


def test_records_get_the_next_offsets_and_are_read_with_their_owners(changelogs):
    begin = changelogs.end_offsets(CHANGELOGS)
    both = [*records("ab"), *records("c", CHANGELOGS[1])]
    first, second = begin.values()
    assert changelogs.append(both) == [first, first + 1, second]
    assert changelogs.append([]) == []
    stores = replicas()
    read_all(changelogs, stores)
    assert [store.position for store in stores] == [first + 2, second + 1]
    assert [store.owner for store in stores] == [OWNER, OWNER]
    assert stores[0].table.get(b"a") == b"1"
    assert changelogs.read([]) == 0
    # A store that is followed again is read from where it is.
    changelogs.append(records("d"))
    read_all(changelogs, stores)
    assert stores[0].table.get(b"d") == b"1"


def test_only_topics_that_are_needed_are_asked_for_and_none_is_created(broker):
    gone = [TopicPartition("gone", 0), TopicPartition("gone", 1)]
    with closing(KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)) as changelogs:
        cluster = changelogs._reader._consumer._cluster
        changelogs.end_offsets(CHANGELOGS)
        assert cluster.topics() == {"app-counts-changelog"}
        assert changelogs.input_state("app", gone) == {}
        found = changelogs.input_state("app", [TopicPartition("out", 2), *gone])
        assert [*found] == [TopicPartition("out", 2)]
        assert cluster.topics() <= {"out"}  # or none, if it was refreshed since
        assert "gone" not in cluster._topics
        # What has been forgotten meanwhile is asked for again.
        assert changelogs.end_offsets(CHANGELOGS).keys() == {*CHANGELOGS}
    assert "gone" not in broker.call(lambda embedded: embedded.cluster.catalog.names())


def test_a_record_whose_acknowledgement_is_lost_is_written_once(broker, changelogs):
    [first, _] = changelogs.end_offsets(CHANGELOGS).values()
    broker.inject(Fault(api="Produce", lose_answer=True))
    assert changelogs.append(records("ab")) == [first, first + 1]
    assert changelogs.append(records("c")) == [first + 2]


def test_outputs_are_acknowledged_by_flush(broker, changelogs):
    changelogs.send("out", b"key", b"value", None)
    changelogs.send("out", None, b"value", 2)
    changelogs.flush()
    changelogs.flush()
    assert sum(n for (topic, _), n in broker.end_offsets().items() if topic == "out") == 2


def test_a_changelog_that_lost_records_while_it_is_followed_is_read_anew(
    broker, changelogs, caplog
):
    caplog.set_level(logging.INFO)
    [store, _] = replicas()
    changelogs.append(records("abc"))
    read_all(changelogs, [store])

    def lose(running):
        log = running.cluster.catalog.log(*store.changelog)
        log._batches.clear()
        log._last_offsets.clear()
        log.start_offset = log.end_offset = log.end_offset + 5

    broker.call(lose)
    changelogs.append(records("new"))
    read_all(changelogs, [store])
    assert sorted(dict(store.table.items())) == [b"e", b"n", b"w"]
    assert "is rebuilt: the changelog begins at" in caplog.text


def test_a_changelog_that_was_made_anew_is_read_from_its_start(broker, caplog):
    caplog.set_level(logging.INFO)
    changelog = TopicPartition("app-anew-changelog", 0)
    broker.create_topic(changelog.topic)
    store = Replica("anew", changelog, DictTable("anew"))
    settings = {"bootstrap_servers": broker.bootstrap_servers, "metadata_max_age_ms": 200}
    with closing(KafkaChangelogs(**settings)) as changelogs:
        changelogs.append(records("abc", changelog))
        read_all(changelogs, [store])
        first = store.table.progress.topic_id

        def make_anew(running):
            running.cluster.delete_topic(changelog.topic)
            running.cluster.create_topic(changelog.topic, 1)

        broker.call(make_anew)
        # Longer than the copy: its offsets alone tell nothing.
        with closing(KafkaChangelogs(**settings)) as other:
            other.append(records("defghi", changelog))

        def has_all():
            with suppress(ClusterUnavailable):
                changelogs.read([store], wait_s=0.1)
            return dict(store.table.items()).keys() == set(map(str.encode, "defghi"))

        until(has_all)
    assert store.table.progress.topic_id not in (None, first)
    assert "is rebuilt: the changelog was deleted and made anew" in caplog.text


def test_a_record_that_is_too_large_is_one_sentence(changelogs):
    for size in (200_000, 2_000_000):
        large = [NewRecord(partition=CHANGELOGS[0], key=b"a", value=bytes(size))]
        with pytest.raises(StoreError, match=r"a record is too large .* raise max_request_size"):
            changelogs.append(large)


@pytest.mark.usefixtures("clock")
def test_a_cluster_that_is_gone_is_one_sentence():
    with pytest.raises(ClusterUnavailable, match="changelogs cannot be read: "):
        KafkaChangelogs(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=200)
    with running_broker(BrokerConfig(topics={"app-counts-changelog": 2})) as broker:
        made = KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers, **FAST)
        made.append(records("a"))
        broker.stop_node(1)
        with (
            closing(made),
            pytest.raises(ClusterUnavailable, match=r"changelog .* cannot be written"),
        ):
            made.append(records("b"))


def test_a_setting_that_no_client_has_is_refused():
    with pytest.raises(ConfigError, match="boostrap_servers"):
        KafkaChangelogs(boostrap_servers="127.0.0.1:1")


@pytest.mark.parametrize(
    "name",
    ["acks", "enable_idempotence", "key_serializer", "partitioner", "transactional_id"],
)
def test_settings_that_decide_how_state_is_written_are_refused(name):
    with pytest.raises(ConfigError, match=name):
        KafkaChangelogs(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=1, **{name: None})


def test_settings_of_the_input_do_not_slow_a_restore(broker):
    of_input = {"max_poll_records": 1, "fetch_min_bytes": 1_000_000, "fetch_max_wait_ms": 60_000}
    with closing(
        ChangelogReader({"bootstrap_servers": broker.bootstrap_servers} | of_input)
    ) as reader:
        config = reader._consumer.config
        assert [config[name] for name in of_input] == [5000, 1, 500]


class Unready:
    """A consumer of a changelog whose first offsets cannot be read."""

    def __init__(self):
        self.assigned, self.positions, self.asked, self.end = set(), {}, 0, 9
        self._cluster = SimpleNamespace(topic_id=lambda _: None)
        self._net = SimpleNamespace(run=lambda _, answer, __: answer)
        self._manager = SimpleNamespace(call_soon=self.ask, wait_for=None)
        self._fetcher = SimpleNamespace(_send_list_offsets_requests=None)
        self.config = {"request_timeout_ms": 1000}

    def assignment(self):
        return self.assigned

    def assign(self, partitions):
        self.assigned = set(partitions)

    def unsubscribe(self):
        self.assigned = set()

    def knowing(self, _topics, **_):
        return nullcontext()

    def ask(self, _ask, wanted):
        self.asked += 1
        if self.asked == 1:
            raise KafkaError
        offsets = {OffsetSpec.EARLIEST: 3, OffsetSpec.LATEST: self.end}
        return {each: SimpleNamespace(offset=offsets[at]) for each, at in wanted.items()}, set()

    def seek(self, partition, offset):
        self.positions[partition] = offset

    def poll(self, timeout_ms):
        return {}


def test_a_changelog_whose_offsets_could_not_be_read_is_begun_by_the_next_read():
    reader = reader_of(Unready())
    [store, _] = replicas()
    with pytest.raises(KafkaError):
        reader.read([store])
    reader.read([store])
    assert reader._consumer.positions == {store.changelog: 3}


class Ready(Unready):
    """A consumer that has records, and then its position behind offsets without any."""

    def __init__(self, *batches, end=9):
        super().__init__()
        self.asked, self.batches, self.end = 1, list(batches), end

    def position(self, partition):
        return self.positions[partition]

    def poll(self, timeout_ms):
        [partition] = self.assigned
        batch = self.batches.pop(0) if self.batches else ()
        if not batch:
            self.positions[partition] = self.end
            return {}
        self.positions[partition] = batch[-1].offset + 1
        return {partition: batch}


def read_records(*offsets):
    return [
        SimpleNamespace(offset=offset, key=b"k", value=b"1", headers=(), timestamp=-1)
        for offset in offsets
    ]


class CheckedStore:
    """A store that is checked whenever the test wants it."""

    def __init__(self):
        self.changelog, self.position = CHANGELOGS[0], 0
        self.needs_check, self.checks, self.taken, self.refuses = False, [], [], None

    def check_range(self, start, end, topic_id, asked_ms):
        assert topic_id is None
        assert asked_ms > 0
        self.checks.append((start, end))
        self.position, self.needs_check = max(self.position, start), False

    def restore(self, records):
        refuses, self.refuses = self.refuses, None
        if isinstance(refuses, Exception):
            raise refuses
        if refuses:
            self.needs_check = True
            return
        self.taken += [record.offset for record in records]
        self.position = self.taken[-1] + 1


def reader_of(consumer):
    reader = object.__new__(ChangelogReader)
    reader._consumer, reader._ids = consumer, {}
    return reader


def test_a_store_is_checked_again_with_the_end_of_the_records_that_there_are():
    """Offsets at the end may have no records, such as the markers of transactions."""
    store, consumer = CheckedStore(), Ready(read_records(3, 4))
    reader = reader_of(consumer)
    assert reader.read([store]) == 2
    store.needs_check = True
    reader.read([store])
    assert store.checks == [(3, 9), (3, 9)], "the rest is not read yet"
    store.needs_check = True
    reader.read([store])
    assert store.checks[-1] == (3, 5)


@pytest.mark.parametrize("refusal", [True, StoreError("the disk is full")])
def test_records_that_a_store_does_not_take_are_read_again(refusal):
    store, consumer = CheckedStore(), Ready(read_records(3), read_records(4, 5))
    reader = reader_of(consumer)
    reader.read([store])
    store.refuses = refusal
    with suppress(StoreError):
        reader.read([store])
    consumer.batches = [read_records(*range(4, 7))]
    assert not consumer.assigned or consumer.positions == {store.changelog: 4}
    reader.read([store])
    assert store.taken == [3, 4, 5, 6]
    assert store.checks == [(3, 9)] * 2


def test_a_missing_output_topic_is_named_soon(changelogs):
    settings = changelogs._producer._producer.config
    assert settings["max_block_ms"] == 5000  # and not the client's minute
    settings["max_block_ms"] = 1000
    with pytest.raises(ClusterUnavailable) as raised:
        changelogs.send("nowhere", b"k", b"v", None)
    assert str(raised.value) == (
        "topic nowhere does not exist, so no record can be written to it; create it"
    )
