"""aiokafka under the supervisor, on the embedded broker: real sockets, real replacements."""

import asyncio
import contextlib
import hashlib
import inspect

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import KafkaError

from assignor.adapters.rebootstrap.aiokafka import supervise
from assignor.adapters.rebootstrap.supervisor import (
    AlreadySupervisedError,
    RebootstrapRequiredError,
    UntestedClientError,
    monotonic_ms,
)
from probing.rebootstrap import ConnectionLost, RebootstrapConfigError
from system_tests.broker import Fault
from tests.assignor.adapters.rebootstrap.aiokafka_clients import (
    Member,
    broker_and_producer,
    calm,
    settled,
    until,
    write,
)
from tests.assignor.adapters.rebootstrap.clusters import LIMIT_S, TOPIC, Names

pytestmark = pytest.mark.timeout(600)
loop = pytest.mark.usefixtures("clock")
RELIED_ON = (
    AIOKafkaClient._get_conn,
    AIOKafkaClient._metadata_update,
    AIOKafkaClient._md_synchronizer,
    AIOKafkaClient._on_connection_closed,
    AIOKafkaClient._get_conn_lock.fget,
    AIOKafkaClient.force_metadata_update,
    AIOKafkaClient.ready,
    AIOKafkaAdminClient._send_to_controller,
    AIOKafkaAdminClient._send_request_to_node,
    AIOKafkaConnection.close,
    AIOKafkaConnection.send,
    AIOKafkaConnection._do_version_lookup,
    ClusterMetadata.brokers,
    ClusterMetadata.broker_metadata,
    ClusterMetadata.update_metadata,
    GroupCoordinator.coordinator_dead,
    GroupCoordinator.ensure_coordinator_known,
)


def test_the_functions_that_it_relies_on_have_not_changed():
    text = "".join(inspect.getsource(function) for function in RELIED_ON)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "098bead3bacfa07a", (
        f"aiokafka {aiokafka.__version__} has other insides: go through rebootstrap/aiokafka.py "
        "function by function, then write the new digest here"
    )


def test_an_untested_version_is_refused(monkeypatch):
    monkeypatch.setattr(aiokafka, "__version__", "1.0.0")
    with pytest.raises(UntestedClientError, match=r"1\.0\.0 was not tested"):
        supervise(object())


def test_something_else_than_a_client_is_refused():
    with pytest.raises(TypeError, match="object is not a client of aiokafka"):
        supervise(object())


def test_invalid_settings_are_refused():
    with pytest.raises(RebootstrapConfigError, match=r"did you mean 'reconnect\.backoff\.ms'"):
        supervise(object(), reconnect_back_ms=5)


@loop
@pytest.mark.slow
@pytest.mark.kip("1102-3", "loop")
@pytest.mark.kip("1102-6", "loop")
@pytest.mark.kip("1102-7", "loop")
def test_a_group_in_the_middle_of_an_upgrade_goes_on_when_all_brokers_are_replaced():
    async def play():
        async with broker_and_producer() as (broker, servers, producer):
            old = await Member.started(
                servers, "g", release="3.1", metadata_recovery_strategy="rebootstrap"
            )
            new = await Member.started(servers, "g", metadata_recovery_strategy="rebootstrap")
            alone = await Member.started(servers, "without")
            await until(lambda: calm(old, new) and settled(alone), "both groups settle")
            first = await write(producer, "before")
            await until(lambda: first <= old.seen | new.seen, "the group reads")
            await until(lambda: first <= alone.seen, "the other one reads")
            await until(lambda: calm(old, new), "no member joins any more")
            known = [(m.identity, m.version, m.partitions) for m in (old, new)]
            before = [c for m in (old, new) for c in m.consumer._client._conns.values()]

            await broker.replace_nodes()
            second = await write(producer, "after")

            await until(lambda: second <= old.seen | new.seen, "the group reads on")
            assert [(m.identity, m.version, m.partitions) for m in (old, new)] == known
            for member in (old, new):
                rules = {rebootstrap.rule for rebootstrap in member.supervisor.rebootstraps}
                assert rules == {"no node is available"}
                assert member.problems == []
            assert not any(connection.connected() for connection in before)
            await old.stop()
            last = await Member.started(servers, "g", metadata_recovery_strategy="rebootstrap")
            await until(lambda: settled(last, new), "the last member is bounced")
            # After the same time again, the consumer without a supervisor has read nothing.
            await asyncio.sleep(2)
            assert not second & alone.seen
            await alone.rescued(second)
            for member in (last, new, alone):
                await member.stop()

    asyncio.run(play())


@loop
@pytest.mark.kip("1102-4", "loop")
@pytest.mark.kip("1102-6", "loop")
def test_the_supervisors_own_requests_receive_a_demand():
    async def play():
        async with broker_and_producer() as (broker, servers, producer):
            member = await Member.started(servers, "g", metadata_recovery_strategy="rebootstrap")
            await until(lambda: calm(member), "the member has everything")
            first = await write(producer, "before")
            await until(lambda: first <= member.seen, "all is read")
            known = member.identity, member.version, member.partitions
            before = list(member.consumer._client._conns.values())

            broker.demand_rebootstrap()
            member.consumer._client.force_metadata_update()
            rebootstraps = member.supervisor.rebootstraps
            await until(lambda: rebootstraps, "the demand is followed")
            broker.demand_rebootstrap([])
            assert {rebootstrap.rule for rebootstrap in rebootstraps} == {"demanded by the server"}
            second = await write(producer, "after")
            await until(lambda: second <= member.seen, "the member reads on")
            assert not any(connection.connected() for connection in before)
            assert (member.identity, member.version, member.partitions) == known
            assert member.problems == []
            asked = {request.version for request in broker.requests("Metadata")}
            assert asked == {5, 13}
            await member.stop()

    asyncio.run(play())


@loop
@pytest.mark.slow
@pytest.mark.kip("1102-5", "loop")
def test_with_none_nothing_ever_makes_it_begin_again():
    async def play():
        async with broker_and_producer() as (broker, servers, producer):
            reports = []
            none = await Member.started(
                servers,
                "none",
                listener=reports.append,
                metadata_recovery_strategy="none",
                metadata_recovery_rebootstrap_trigger_ms=100,
            )
            other = await Member.started(servers, "with", metadata_recovery_strategy="rebootstrap")
            await until(lambda: calm(none) and calm(other), "both have everything")
            first = await write(producer, "before")
            await until(lambda: first <= none.seen and first <= other.seen, "all is read")
            before = list(none.consumer._client._conns.values())
            broker.demand_rebootstrap()
            none.consumer._client.force_metadata_update()
            await until(lambda: reports, "the demand is reported")
            assert isinstance(reports[0], RebootstrapRequiredError)
            assert all(connection.connected() for connection in before)

            broker.demand_rebootstrap([])
            await broker.replace_nodes()
            second = await write(producer, "after")
            await until(lambda: second <= other.seen, "the other one reads on")
            await asyncio.sleep(2)
            assert not second & none.seen
            assert list(none.supervisor.rebootstraps) == []
            await none.rescued(second)
            for member in (none, other):
                await member.stop()

    asyncio.run(play())


@loop
def test_connections_that_are_stuck_do_not_hold_the_trigger_back():
    async def play():
        async with broker_and_producer() as (broker, servers, producer):
            member = await Member.started(
                servers, "g", metadata_recovery_rebootstrap_trigger_ms=1_000
            )
            await until(lambda: calm(member), "the member has everything")
            stuck = broker.live
            for node_id in stuck:
                broker.inject(Fault(node_id=node_id, delay_ms=3_600_000, times=10**6))
            await broker.start_node(max(stuck) + 1, port=0)
            for connection in list(member.consumer._client._conns.values()):
                connection.close()
            member.consumer._client.force_metadata_update()
            rebootstraps = member.supervisor.rebootstraps
            await until(
                lambda: "metadata is overdue" in {rebootstrap.rule for rebootstrap in rebootstraps},
                "the trigger fires",
            )
            for node_id in stuck:
                await broker.stop_node(node_id)
            broker.clear_faults()
            values = await write(producer, "after")
            await until(lambda: values <= member.seen, "the member reads on")
            await member.stop()

    asyncio.run(play())


@loop
@pytest.mark.parametrize("setup_ms", [1_000, 60_000])
def test_a_slow_connection_is_given_up_in_time_and_no_other_one_waits_for_it(setup_ms):
    async def play():
        async with broker_and_producer() as (broker, servers, producer):
            member = await Member.started(
                servers,
                "g",
                socket_connection_setup_timeout_ms=setup_ms,
                socket_connection_setup_timeout_max_ms=setup_ms,
            )
            await until(lambda: calm(member), "the member has everything")
            client, stuck = member.consumer._client, broker.addresses[1]
            broker.inject(Fault(api="ApiVersions", node_id=1, delay_ms=3_600_000, times=10**6))
            slow = asyncio.ensure_future(client._get_conn(1, group=7))
            if setup_ms == 1_000:
                assert await slow is None
            else:
                nodes = member.supervisor._connecting
                await until(lambda: stuck in nodes.values(), "the connection is under way")
                other = client._get_conn(2, group=7)
                assert await asyncio.wait_for(other, LIMIT_S) is not None
                assert not slow.done()
                slow.cancel()
                await asyncio.gather(slow, return_exceptions=True)
            broker.clear_faults()
            values = await write(producer, "after")
            await until(lambda: values <= member.seen, "the member reads")
            await member.stop()

    asyncio.run(play())


@loop
def test_a_node_that_failed_is_left_alone_until_its_back_off_is_over():
    async def play():
        async with broker_and_producer() as (broker, servers, _):
            member = await Member.started(servers, "g", metadata_recovery_strategy="rebootstrap")
            await until(lambda: calm(member), "the member has everything")
            supervisor, client = member.supervisor, member.consumer._client
            failed = {"now_ms": monotonic_ms(), "node": broker.addresses[1]}
            supervisor._see(ConnectionLost(**failed, back_off_ms=3_600_000))
            waiting = asyncio.ensure_future(client._get_conn(1, group=7))
            await asyncio.sleep(0.5)
            assert not waiting.done()
            supervisor._see(ConnectionLost(**failed, back_off_ms=0))
            assert await asyncio.wait_for(waiting, LIMIT_S) is not None
            await member.stop()

    asyncio.run(play())


@loop
def test_names_are_looked_up_again_until_they_are_found(monkeypatch):
    async def play():
        async with broker_and_producer() as (broker, _, producer):
            names = Names(monkeypatch, next(iter(broker.addresses.values())))
            member = await Member.started(
                Names.SERVER, "g", metadata_recovery_strategy="rebootstrap"
            )
            await until(lambda: calm(member), "the member has everything")
            names.address = None
            names.lookups.clear()
            second = next(iter((await broker.replace_nodes()).values()))
            await until(lambda: len(names.lookups) >= 3, "the name is asked for again")
            assert "MainThread" not in names.lookups
            names.address = second
            values = await write(producer, "after")
            await until(lambda: values <= member.seen, "the member reads on")
            assert member.problems == []
            await member.stop()

    asyncio.run(play())


@loop
def test_an_admin_client_goes_on_and_a_closed_supervisor_leaves_the_client_as_it_was():
    async def play():
        async with broker_and_producer() as (broker, servers, _):
            admin = AIOKafkaAdminClient(bootstrap_servers=servers)
            await admin.start()
            supervisor = supervise(admin)
            await broker.replace_nodes()

            async def listed():
                while True:
                    with contextlib.suppress(KafkaError):
                        return TOPIC in await admin.list_topics()

            assert await asyncio.wait_for(listed(), LIMIT_S)
            assert supervisor.rebootstraps
            with pytest.raises(AlreadySupervisedError, match="close that one first"):
                supervise(admin)
            supervisor.close()
            assert not {"_get_conn", "_metadata_update"} & set(vars(admin._client))
            assert TOPIC in await admin.list_topics()
            await admin.close()

    asyncio.run(play())
