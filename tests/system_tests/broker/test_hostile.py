"""Hostile requests: each gets an error or closes its connection, with one line in the log."""

import gzip
import logging
import struct
import tracemalloc
import zlib

import pytest
from kafka.protocol import consumer, producer
from kafka.record.util import calc_crc32c

from system_tests.broker import BrokerConfig, node
from system_tests.broker.partition_log import PartitionLog
from system_tests.broker.wire import APIS
from tests.log_records import records_of
from tests.system_tests.broker.wire_client import on_broker

lz4 = pytest.importorskip("lz4.frame")

CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_RECORD, UNSUPPORTED_COMPRESSION = 2, 10, 87, 76
INVALID_TOPIC, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, UNKNOWN_SERVER_ERROR = 17, 24, 25, -1
LIMIT = 100_000


def batch(records, *, codec, count=1):
    """A v2 batch with arbitrary bytes instead of records."""
    body = struct.pack(">hiqqqhii", codec, count - 1, 5, 5, -1, -1, -1, count) + records
    crc = calc_crc32c(body)
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc) + body


def xerial(*sizes):
    """Snappy blocks that claim to hold this number of bytes."""
    blocks = [bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) for size in sizes]
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + framed


BOMBS = {
    "gzip": (1, gzip.compress(bytes(50_000_000), 6)),
    "gzip in two members": (1, gzip.compress(bytes(600_000)) * 2),
    "snappy": (2, xerial(600_000, 600_000)),
    "snappy without frames": (2, b"\xff\xff\xff\xff\x0f" + bytes(20)),
    "lz4": (3, lz4.compress(bytes(10_000_000))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_batch_that_grows_beyond_the_limit_is_too_large_and_takes_no_memory(name):
    codec, records = BOMBS[name]
    log, data = PartitionLog(max_batch_bytes=LIMIT), batch(records, codec=codec)
    tracemalloc.start()
    appended = log.append(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (appended.error, log.end_offset) == (MESSAGE_TOO_LARGE, 0)
    assert peak < 2_000_000
    assert "bytes after decompression" in appended.message


@pytest.mark.parametrize(
    ("codec", "records"),
    [
        (1, b"no gzip"),
        (1, gzip.compress(b"x" * 100)[:-9]),
        (1, gzip.compress(b"x" * 100)[:-8] + bytes(8)),
        (1, zlib.compress(b"x" * 100)),
        (1, b""),
        (2, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xff"),
        (3, b"no lz4"),
        (3, lz4.compress(b"x" * 100)[:-5]),
    ],
    ids=range(8),
)
def test_a_batch_that_cannot_be_decompressed_is_corrupt(codec, records):
    appended = PartitionLog(max_batch_bytes=LIMIT).append(batch(records, codec=codec))
    assert appended.error == CORRUPT_MESSAGE


def test_a_codec_that_does_not_exist_and_more_records_than_fit_are_refused():
    log = PartitionLog(max_batch_bytes=LIMIT)
    assert log.append(batch(b"", codec=6)).error == UNSUPPORTED_COMPRESSION
    for codec, records in ((0, bytes(70)), (1, gzip.compress(bytes(70)))):
        refused = log.append(batch(records, codec=codec, count=2**31 - 1))
        assert refused.error == INVALID_RECORD
        assert log.append(batch(records, codec=codec, count=10)).error == 0


@pytest.mark.parametrize("records", [b"\xff" * 200, bytes(200), b"\x01" * 200], ids=range(3))
def test_undecodable_records_do_not_stop_a_search_by_time(records):
    log = PartitionLog(max_batch_bytes=LIMIT)
    for codec, data in ((0, records), (1, gzip.compress(records)), (3, lz4.compress(records))):
        assert log.append(batch(data, codec=codec, count=3)).error == 0
    assert log.find_timestamp(1).timestamp_ms in (-1, *range(10))


def lines(caplog):
    ours = records_of(caplog, "system_tests")
    assert all(each.exc_info is None for each in ours if each.levelno > logging.DEBUG)
    return [each.getMessage() for each in ours if each.levelno >= logging.WARNING]


def protocol(name="r", metadata=b""):
    return consumer.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)


JOIN = {
    "group_id": "g",
    "session_timeout_ms": 1_000,
    "rebalance_timeout_ms": 1_000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [protocol()],
}
BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
NULLS = {
    "join": ("JoinGroup", 5, JOIN | {"group_id": None}, INVALID_GROUP_ID),
    "join, member": ("JoinGroup", 5, JOIN | {"member_id": None}, UNKNOWN_MEMBER_ID),
    "sync": ("SyncGroup", 3, BEAT | {"group_id": None, "assignments": []}, INVALID_GROUP_ID),
    "heartbeat": ("Heartbeat", 3, BEAT | {"group_id": None}, INVALID_GROUP_ID),
    "heartbeat, flexible": ("Heartbeat", 4, BEAT | {"group_id": None}, INVALID_GROUP_ID),
    "heartbeat, member": ("Heartbeat", 3, BEAT | {"member_id": None}, UNKNOWN_MEMBER_ID),
    "leave": ("LeaveGroup", 2, {"group_id": None, "member_id": "m"}, INVALID_GROUP_ID),
    "offsets": ("OffsetFetch", 7, {"group_id": None, "topics": []}, INVALID_GROUP_ID),
    "delete": ("OffsetDelete", 0, {"group_id": None, "topics": []}, INVALID_GROUP_ID),
}


@pytest.mark.parametrize("name", NULLS)
def test_a_null_id_gets_kafkas_error_and_the_connection_stays_open(name, caplog):
    api, version, fields, error = NULLS[name]

    async def work(_, connect):
        client = await connect()
        assert (await client.ask(api, version, **fields)).error_code == error
        assert (await client.ask("Heartbeat", 3, **BEAT)).error_code == UNKNOWN_MEMBER_ID

    on_broker(work)
    assert lines(caplog) == []


def test_null_ids_in_lists_get_the_error_in_every_row(caplog):
    async def work(_, connect):
        client = await connect()
        described = await client.ask("DescribeGroups", 4, groups=["a", None])
        assert {group.error_code for group in described.groups} == {INVALID_GROUP_ID}
        deleted = await client.ask("DeleteGroups", 1, groups_names=[None])
        assert [group.error_code for group in deleted.results] == [INVALID_GROUP_ID]
        found = await client.ask("FindCoordinator", 2, key=None)
        assert found.error_code == INVALID_GROUP_ID
        topic = consumer.ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(partition_index=0, timestamp=-1)
        rows = [topic(name=None, partitions=[partition])]
        offsets = await client.ask("ListOffsets", 5, replica_id=-1, topics=rows)
        assert offsets.topics[0].partitions[0].error_code == INVALID_TOPIC

    on_broker(work)
    assert lines(caplog) == []


@pytest.mark.parametrize(
    ("api", "version", "fields"),
    [
        ("JoinGroup", 5, JOIN | {"protocols": None}),
        ("JoinGroup", 5, JOIN | {"protocols": [protocol(metadata=None)]}),
        ("SyncGroup", 3, BEAT | {"assignments": None}),
        ("ListOffsets", 5, {"replica_id": -1, "topics": None}),
        ("Produce", 8, {"acks": 1, "timeout_ms": 1, "topic_data": None}),
        ("CreateTopics", 5, {"topics": None}),
    ],
)
def test_any_other_null_closes_its_connection_with_one_line(api, version, fields, caplog):
    async def work(_, connect):
        client, other = await connect(), await connect()
        client.send(request(api, fields), version)
        assert await client.is_closed()
        assert (await other.ask("Heartbeat", 3, **BEAT)).error_code == UNKNOWN_MEMBER_ID

    on_broker(work)
    [line] = lines(caplog)
    assert "is null" in line
    assert api in line


def request(api, fields):
    return next(row for row in APIS if row.name == api).request(**fields)


def test_whatever_a_handler_raises_is_one_error_and_one_line(caplog, monkeypatch):
    async def explode(_):
        raise RecursionError("forged\nline")

    monkeypatch.setitem(node.HANDLERS, "Heartbeat", explode)
    monkeypatch.setitem(node.HANDLERS, "Metadata", explode)
    monkeypatch.setitem(node.HANDLERS, "Produce", explode)

    async def work(_, connect):
        client, other, silent = await connect(), await connect(), await connect()
        assert (await client.ask("Heartbeat", 3, **BEAT)).error_code == UNKNOWN_SERVER_ERROR
        assert (await client.ask("ListGroups", 4)).error_code == 0
        # This version of Metadata has no error field, and acks=0 no response.
        other.send(request("Metadata", {"topics": []}), 1)
        assert await other.is_closed()
        silent.send(request("Produce", {"acks": 0, "timeout_ms": 1, "topic_data": []}), 8)
        assert await silent.is_closed()
        assert (await client.ask("ListGroups", 4)).error_code == 0

    on_broker(work)
    found = lines(caplog)
    assert len(found) == 3
    assert all("forged\\nline" in line for line in found)


def test_a_response_that_cannot_be_written_closes_its_connection(caplog, monkeypatch):
    async def nonsense(_):
        return consumer.HeartbeatResponse(error_code=2**40)

    monkeypatch.setitem(node.HANDLERS, "Heartbeat", nonsense)

    async def work(_, connect):
        client, other = await connect(), await connect()
        client.send(request("Heartbeat", BEAT), 3)
        assert await client.is_closed()
        assert (await other.ask("ListGroups", 4)).error_code == 0

    on_broker(work)
    assert len(lines(caplog)) == 1


def test_a_produced_bomb_is_refused_on_the_wire():
    async def work(_, connect):
        client = await connect()
        row = producer.ProduceRequest.TopicProduceData
        part = row.PartitionProduceData(index=0, records=batch(BOMBS["gzip"][1], codec=1))
        answer = await client.ask(
            "Produce", 8, acks=1, timeout_ms=1, topic_data=[row(name="t", partition_data=[part])]
        )
        assert answer.responses[0].partition_responses[0].error_code == MESSAGE_TOO_LARGE

    on_broker(work, BrokerConfig(topics={"t": 1}))
