"""Input on a real broker: transactions, topics made anew, and the embedded broker compared."""

import socket
import struct
import time
import uuid
from contextlib import closing

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafka.record import MemoryRecords

from system_tests.broker import BrokerConfig, running_broker
from system_tests.broker.transactions import control_batch, transactional_batch
from tests.assignor.adapters.reports import background, logs

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

LIMIT_S = 60
# Values of a transaction, and how it ends; None: it stays open.
SCRIPT = (([b"a", b"b", b"c"], True), ([b"x"] * 4, False), ([b"y"], False), ([b"d", b"e"], None))
OFFSETS = (0, 1, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14)
EARLIEST, LATEST = -2, -1


class Connection:
    """Single requests to a broker."""

    def __init__(self, opened):
        self.socket = opened

    def ask(self, request, response_class, version):
        request.API_VERSION = version
        request.with_header(correlation_id=version, client_id="test")
        self.socket.sendall(request.encode(header=True, framed=True))
        size = struct.unpack(">i", self._read(4))[0]
        return response_class.decode(self._read(size), version=version, header=True)

    def _read(self, size):
        data = b""
        while len(data) < size:
            data += self.socket.recv(size - len(data))
        return data


def fetched(connection, topic, offset, isolation_level, version=11):
    """What a broker answers to a Fetch."""
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    answer = connection.ask(request, FetchResponse, version)
    [row] = answer.responses[0].partitions
    producers, batches = {}, []
    records = MemoryRecords(bytes(row.records or b""))
    while (batch := records.next_batch()) is not None:
        number = producers.setdefault(batch.producer_id, len(producers))
        kinds = (batch.is_control_batch, batch.is_transactional, number)
        keys = [record.key for record in batch] if batch.is_control_batch else None
        batches.append((batch.base_offset, batch.next_offset, *kinds, keys))
    aborted = row.aborted_transactions
    return {
        "error": row.error_code,
        "end": row.high_watermark,
        "stable end": row.last_stable_offset,
        "start": row.log_start_offset,
        "aborted": None if aborted is None else sorted(each.first_offset for each in aborted),
        "batches": batches,
    }


def listed(connection, topic, timestamp, isolation_level, version=5):
    """What a broker answers to ListOffsets."""
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    partition = topic_type.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[topic_type(name=topic, partitions=[partition])],
    )
    answer = connection.ask(request, ListOffsetsResponse, version)
    [row] = answer.topics[0].partitions
    return row.error_code, row.offset


def answers(server, topic):
    """What a broker answers to all requests of the script."""
    with socket.create_connection(address(server), timeout=LIMIT_S) as opened:
        return _answers(Connection(opened), topic)


def address(server):
    host, _, port = server.rpartition(":")
    return host, int(port)


def _answers(connection, topic):
    found = {
        ("fetch", isolation, offset): fetched(connection, topic, offset, isolation)
        for isolation in (0, 1)
        for offset in OFFSETS
    }
    return found | {
        ("list", isolation, at): listed(connection, topic, at, isolation)
        for isolation in (0, 1)
        for at in (EARLIEST, LATEST)
    }


def write_really(server, topic):
    """Run the script with librdkafka's transactional producers; return the one that stays open."""
    admin = KafkaAdminClient(bootstrap_servers=server)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    for values, is_committed in SCRIPT:
        producer = Producer(
            {
                "bootstrap.servers": server,
                "transactional.id": str(uuid.uuid4()),
                "linger.ms": 500,
            }
        )
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(LIMIT_S) == 0
        if is_committed is None:
            return producer
        if is_committed:
            producer.commit_transaction(LIMIT_S)
        else:
            producer.abort_transaction(LIMIT_S)
    raise AssertionError


def append(embedded, topic):
    """Append what the log has after the script."""
    log = embedded.cluster.catalog.log(topic, 0)
    for producer_id, (values, is_committed) in enumerate(SCRIPT):
        log.append(transactional_batch(values, producer_id=producer_id))
        if is_committed is not None:
            log.append(control_batch(producer_id=producer_id, is_commit=is_committed))


@pytest.mark.parametrize(
    "broker",
    [
        "kafka_4",
        pytest.param(
            "kafka_3_9", marks=pytest.mark.nightly("20 s; every run has the newest broker")
        ),
    ],
)
def test_the_embedded_broker_answers_as_a_real_one_with_transactions(request, broker):
    server = request.getfixturevalue(broker).bootstrap_servers
    topic = f"transactions-{uuid.uuid4()}"
    producer = write_really(server, topic)
    expected = answers(server, topic)
    assert expected["list", 0, LATEST] == (0, 13)
    assert expected["list", 1, LATEST] == (0, 11)
    producer.abort_transaction(LIMIT_S)
    with running_broker(BrokerConfig(topics={topic: 1})) as embedded:
        embedded.call(lambda made: append(made, topic))
        given = answers(embedded.bootstrap_servers[0], topic)
    assert given == expected


INPUT = TopicPartition("in", 0)


class Cluster:
    """A real broker, and a group on it that reads the topic `in`."""

    def __init__(self, server, group):
        self.server, self.group = server, group
        self.bootstrap_servers = [server]
        self.admin = KafkaAdminClient(bootstrap_servers=server)

    def make_anew(self):
        """Delete the topic if it exists, and create it once that is done."""
        if "in" in self.admin.list_topics():
            self.admin.delete_topics(["in"])
            until(lambda: "in" not in self.admin.list_topics())
            until(lambda: self.committed() is None)
        self.admin.create_topics([NewTopic("in", 1, 1)])
        until(lambda: "in" in self.admin.list_topics())

    def write(self, records):
        with KafkaProducer(bootstrap_servers=self.server) as producer:
            for number in range(records):
                producer.send("in", b"%d" % number, partition=0)

    def transaction(self, values, *, is_commit):
        """Write a transaction and its marker."""
        settings = {"bootstrap.servers": self.server, "transactional.id": str(uuid.uuid4())}
        producer = Producer(settings)
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        for value in values:
            producer.produce("in", value, partition=0)
        producer.flush(LIMIT_S)  # else an abort would drop them
        end = producer.commit_transaction if is_commit else producer.abort_transaction
        end(LIMIT_S)

    def committed(self):
        settings = {"group_id": self.group, "enable_auto_commit": False}
        with closing(KafkaConsumer(bootstrap_servers=self.server, **settings)) as consumer:
            return consumer.committed(INPUT)


def until(holds):
    end_s = time.monotonic() + 2 * LIMIT_S
    while not holds():
        assert time.monotonic() < end_s, "the condition never held"
        time.sleep(0.1)


@pytest.fixture
def cluster(kafka_4, monkeypatch):
    group = f"input-{uuid.uuid4()}"
    for module in (background, logs):
        monkeypatch.setattr(module, "GROUP", group)
    made = Cluster(kafka_4.bootstrap_servers, group)
    made.make_anew()
    yield made
    made.admin.delete_topics(["in"])
    made.admin.close()


def lines(caplog):
    found = [each for each in caplog.records if each.name == "assignor.embedding.input_rules"]
    return [each.getMessage() for each in found]


@pytest.mark.parametrize("client", sorted(background.ALL))
def test_kafka_6607_lag_of_transactional_input_reaches_0_on_a_real_broker(cluster, client):
    cluster.transaction([b"a", b"b"], is_commit=True)
    with background.running(client, cluster, isolation_level=background.COMMITTED) as seen:
        until(lambda: cluster.committed() == 3)
        cluster.transaction([b"x"] * 3, is_commit=False)
        until(lambda: cluster.committed() == 7)
    assert seen.records == [(0, 0), (0, 1)]


@pytest.mark.parametrize("client", sorted(background.STORES))
def test_a_topic_made_anew_is_processed_whole_on_a_real_broker(cluster, client, caplog):
    """The broker deletes the committed offsets with the topic; the state has its own."""
    cluster.write(4)
    with background.running(client, cluster) as seen:
        until(lambda: cluster.committed() == 4)
    cluster.make_anew()
    cluster.write(6)
    with background.running(client, cluster) as again:
        until(lambda: cluster.committed() == 6)
    assert [offset for _, offset in seen.records + again.records] == [*range(4), *range(6)]
    [line] = lines(caplog)
    assert (
        "state has its former one up to offset 4; all records of the new one, from offset 0 on"
        in (line)
    )
