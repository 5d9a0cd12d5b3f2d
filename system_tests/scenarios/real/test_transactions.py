"""Fetch and ListOffsets with transactions: the embedded broker's data against a real broker's."""

import socket
import struct
import uuid

import pytest
from confluent_kafka import Producer
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
