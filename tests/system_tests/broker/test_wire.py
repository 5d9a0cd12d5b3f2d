"""Frames, versions and broken bytes on a real socket."""

import asyncio
import struct

import pytest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)

from system_tests.broker import BrokerConfig, Fault
from system_tests.broker.handlers.refusals import refuse
from system_tests.broker.node import HANDLERS
from system_tests.broker.wire import APIS
from tests.system_tests.broker.wire_client import on_broker


def test_every_version_that_is_advertised_is_answered():
    fields_by_api = {
        "FindCoordinator": {"key": "g", "coordinator_keys": ["g"]},
        "JoinGroup": {
            "group_id": "g",
            "session_timeout_ms": 1_000,
            "rebalance_timeout_ms": 1_000,
            "member_id": "ghost",
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequest.JoinGroupRequestProtocol(name="r", metadata=b"")],
        },
        "Heartbeat": {"group_id": "g", "generation_id": 1, "member_id": "x"},
        "SyncGroup": {"group_id": "g", "generation_id": 1, "member_id": "x", "assignments": []},
        "LeaveGroup": {"group_id": "g", "member_id": "x", "members": []},
        "OffsetCommit": {"group_id": "g", "topics": []},
        "OffsetFetch": {"group_id": "g", "topics": [], "groups": []},
        "OffsetDelete": {"group_id": "g", "topics": []},
        "DescribeGroups": {"groups": ["g"]},
        "DeleteGroups": {"groups_names": ["g"]},
        "Metadata": {"topics": []},
        "Produce": {"acks": 1, "timeout_ms": 1, "topic_data": []},
        "Fetch": {"max_wait_ms": 0, "min_bytes": 0, "topics": []},
        "ListOffsets": {"replica_id": -1, "topics": []},
        "OffsetForLeaderEpoch": {"topics": []},
        "CreateTopics": {"topics": []},
        "DeleteTopics": {"topics": [], "topic_names": []},
        "CreatePartitions": {"topics": []},
        "DescribeConfigs": {"resources": []},
        "InitProducerId": {"transactional_id": None, "transaction_timeout_ms": 1},
    }

    async def work(_, connect):
        client = await connect()
        for api in APIS:
            for version in range(api.min_version, api.max_version + 1):
                response = await client.ask(api.name, version, **fields_by_api.get(api.name, {}))
                assert response.header.correlation_id == version

    on_broker(work)


def test_every_api_has_a_handler_and_a_refusal():
    assert set(HANDLERS) == {api.name for api in APIS}
    for api in APIS:
        empty = {f.name: [] for f in api.request._struct._fields if f.is_array()}
        assert refuse(api.name, api.max_version, api.request(**empty), 15) is not None


def test_without_a_field_for_the_whole_request_each_partition_is_refused():
    """OffsetFetch v1 was answered without any row, so without the error."""
    api = next(api for api in APIS if api.name == "OffsetFetch")
    topic = api.request.OffsetFetchRequestTopic(name="lines", partition_indexes=[0, 3])
    request = api.request(group_id="g", topics=[topic])
    (refused,) = refuse("OffsetFetch", 1, request, 15).topics
    assert refused.name == "lines"
    assert [(p.partition_index, p.error_code) for p in refused.partitions] == [(0, 15), (3, 15)]


def test_an_api_versions_request_from_the_future_is_answered_in_version_0():
    async def work(_, connect):
        client = await connect()
        client.writer.write(struct.pack(">ihhih", 10, 18, 99, 7, -1))
        size = struct.unpack(">i", await client.reader.readexactly(4))[0]
        response = ApiVersionsResponse.decode(
            await client.reader.readexactly(size), version=0, header=True
        )
        assert response.error_code == 35
        assert {(a.api_key, a.max_version) for a in response.api_keys} >= {(18, 4), (11, 9)}
        assert (await client.ask("ApiVersions", 4)).error_code == 0

    on_broker(work)


BROKEN_FRAMES = {
    "negative size": struct.pack(">i", -1),
    "too small for a header": struct.pack(">i", 3) + b"abc",
    "larger than allowed": struct.pack(">i", 10_001),
    "unknown api": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "version not served": struct.pack(">ihhih", 10, 3, 77, 1, -1),
    "body ends early": struct.pack(">ihhih", 10, 11, 0, 1, -1),
    "array of two thousand millions": struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1),
    "client id longer than the frame": struct.pack(">ihhih", 10, 3, 1, 1, 30_000),
}


@pytest.mark.parametrize("name", sorted(BROKEN_FRAMES))
def test_broken_frame_closes_its_connection_and_no_other(name, caplog):
    async def work(_, connect):
        bystander = await connect()
        client = await connect()
        client.writer.write(BROKEN_FRAMES[name])
        assert await client.is_closed()
        assert (await bystander.ask("Metadata", 9, topics=None)).brokers

    on_broker(work, BrokerConfig(max_frame_bytes=10_000))
    assert "closes the connection" in caplog.text


def test_frame_that_ends_early_is_noticed_and_a_clean_end_is_not(caplog):
    async def work(broker, connect):
        clean, cut = await connect(), await connect()
        await clean.ask("ApiVersions", 0)
        clean.writer.close()
        cut.writer.write(struct.pack(">i", 100) + b"half")
        cut.writer.write_eof()
        assert await cut.is_closed()

    on_broker(work)
    assert caplog.text.count("closes the connection") == 1


def join_request(member_id="", metadata=b"m"):
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="r", metadata=metadata)],
    )


def test_waiting_join_holds_up_its_own_connection_and_no_other():
    async def work(broker, connect):
        first, second = await connect(), await connect()
        fields = join_request()
        names = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "protocol_type")
        base = {name: getattr(fields, name) for name in names} | {"protocols": fields.protocols}
        joined = await first.ask("JoinGroup", 3, member_id="", **base)
        two_is_in = asyncio.create_task(second.ask("JoinGroup", 3, member_id="", **base))
        await asyncio.sleep(0.05)
        assert not two_is_in.done()
        beat = {"group_id": "g", "generation_id": 1, "member_id": joined.member_id}
        assert (await first.ask("Heartbeat", 4, **beat)).error_code == 27
        again = await first.ask("JoinGroup", 3, member_id=joined.member_id, **base)
        assert again.generation_id == (await two_is_in).generation_id == 2

    on_broker(work)


def test_a_connection_with_many_requests_holds_up_no_other():
    async def work(broker, connect):
        busy, other = await connect(), await connect()
        await other.ask("ApiVersions", 0)
        for _ in range(2_000):
            busy.send(MetadataRequest(topics=[]), 9)
        while not broker.requests("Metadata"):  # noqa: ASYNC110 - a broker has no event to wait for
            await asyncio.sleep(0)
        await other.ask("FindCoordinator", 3, key="g")
        begun = len(broker.requests("Metadata"))
        for _ in range(2_000):
            await busy.receive(MetadataResponse, 9)
        return begun

    assert on_broker(work) < 1_000


def test_answers_of_one_connection_come_in_the_order_of_its_requests():
    async def work(broker, connect):
        broker.inject(Fault(api="Metadata", delay_ms=100))
        client = await connect()
        client.send(MetadataRequest(topics=[]), 9)
        client.send(ApiVersionsRequest(), 0)
        client.send(FindCoordinatorRequest(key="g"), 3)
        got = []
        for _ in range(3):
            size = struct.unpack(">i", await client.reader.readexactly(4))[0]
            got.append(struct.unpack_from(">i", await client.reader.readexactly(size))[0])
        assert got == [9, 0, 3]

    on_broker(work)


def test_only_the_coordinator_of_a_group_answers_for_it():
    async def work(broker, connect):
        node = (await (await connect()).ask("FindCoordinator", 3, key="g")).node_id
        other = 3 - node
        beat = {"group_id": "g", "generation_id": 1, "member_id": "x"}
        right, wrong = await connect(node), await connect(other)
        assert (await right.ask("Heartbeat", 4, **beat)).error_code == 25
        assert (await wrong.ask("Heartbeat", 4, **beat)).error_code == 16
        broker.move_coordinator("g", other)
        assert (await wrong.ask("Heartbeat", 4, **beat)).error_code == 25
        assert (await right.ask("Heartbeat", 4, **beat)).error_code == 16
        found = await right.ask("FindCoordinator", 4, coordinator_keys=["g"])
        assert found.coordinators[0].node_id == other

    on_broker(work, BrokerConfig(nodes=2))


def test_faults_hit_the_next_requests_that_match_and_then_are_gone():
    async def work(broker, connect):
        client = await connect()
        beat = {"group_id": "g", "generation_id": 1, "member_id": "x"}
        broker.inject(Fault(api="Heartbeat", error=15, times=2, group_id="g"))
        codes = [(await client.ask("Heartbeat", 4, **beat)).error_code for _ in range(3)]
        assert codes == [15, 15, 25]
        broker.inject(Fault(api="Heartbeat", error=15, member_id="y"))
        assert (await client.ask("Heartbeat", 4, **beat)).error_code == 25
        broker.clear_faults()
        broker.inject(Fault(drop=True, client_id="test"))
        client.send(HeartbeatRequest(**beat), 4)
        assert await client.is_closed()

    on_broker(work)


def test_a_delayed_request_is_answered_when_the_faults_are_cleared():
    async def work(broker, connect):
        client = await connect()
        broker.inject(Fault(api="Metadata", delay_ms=3_600_000))
        client.send(MetadataRequest(topics=[]), 9)
        while not broker.requests("Metadata"):  # noqa: ASYNC110 - a broker has no event to wait for
            await asyncio.sleep(0)
        broker.clear_faults()
        assert await client.receive(MetadataResponse, 9)

    on_broker(work)


def test_metadata_carries_an_error_of_its_own_from_version_13_on_only():
    async def work(broker, connect):
        client = await connect()
        broker.inject(Fault(api="Metadata", error=129, times=2))
        assert (await client.ask("Metadata", 13, topics=[])).error_code == 129
        older = await client.ask("Metadata", 12, topics=[])
        assert [b.node_id for b in older.brokers] == [1]

    on_broker(work)


def test_lost_answer_is_a_request_that_took_effect():
    async def work(broker, connect):
        broker.inject(Fault(api="CreateTopics", lose_answer=True))
        client = await connect()
        api = next(api for api in APIS if api.name == "CreateTopics")
        topic = api.request.CreatableTopic(
            name="t", num_partitions=2, replication_factor=1, assignments=[], configs=[]
        )
        client.send(api.request(topics=[topic]), 7)
        assert await client.is_closed()
        assert len(broker.end_offsets()) == 2

    on_broker(work)


def test_requests_are_recorded_and_the_record_is_bounded():
    async def work(broker, connect):
        client = await connect()
        for _ in range(5):
            await client.ask("Metadata", 9, topics=[])
        await client.ask("Heartbeat", 4, group_id="g", generation_id=1, member_id="x")
        record = broker.requests()
        assert [r.api for r in record] == ["Metadata", "Metadata", "Heartbeat"]
        last = record[-1]
        assert (last.version, last.client_id, last.group_id, last.member_id) == (
            4,
            "test",
            "g",
            "x",
        )
        assert len(broker.requests("Metadata")) == 2

    on_broker(work, BrokerConfig(requests_kept=3))


def test_restarted_leader_over_the_wire_skips_the_assignment_from_version_9_on():
    async def work(broker, connect):
        client = await connect()
        fields = join_request()
        base = {
            "group_id": "g",
            "session_timeout_ms": 1_000,
            "rebalance_timeout_ms": 1_000,
            "protocol_type": "consumer",
            "group_instance_id": "i",
            "member_id": "",
            "protocols": fields.protocols,
        }
        first = await client.ask("JoinGroup", 9, **base)
        sync = {"group_id": "g", "generation_id": 1, "member_id": first.member_id}
        rows = [{"member_id": first.member_id, "assignment": b"mine"}]
        row = next(a for a in APIS if a.name == "SyncGroup").request.SyncGroupRequestAssignment
        await client.ask("SyncGroup", 5, assignments=[row(**r) for r in rows], **sync)
        second = await client.ask("JoinGroup", 9, **base)
        assert second.skip_assignment
        assert second.leader == second.member_id != first.member_id
        old = await client.ask("Heartbeat", 4, group_instance_id="i", **sync)
        assert old.error_code == 82

    on_broker(work)
