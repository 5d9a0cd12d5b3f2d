"""kafka-python under the supervisor, on the embedded broker: real sockets, real replacements."""

import contextlib
import hashlib
import inspect
import time

import kafka
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.cluster import ClusterMetadata
from kafka.coordinator.base import BaseCoordinator
from kafka.errors import KafkaError, NodeNotReadyError
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.metadata import MetadataRequest

from assignor.adapters.rebootstrap.kafka_python import supervise
from assignor.adapters.rebootstrap.supervisor import (
    AlreadySupervisedError,
    Rebootstrapped,
    RebootstrapRequiredError,
    UntestedClientError,
)
from probing.rebootstrap import RebootstrapConfigError
from system_tests.broker import Fault
from tests.assignor.adapters.rebootstrap.clusters import (
    PARTITIONS,
    TOPIC,
    Member,
    Names,
    calm,
    close_all,
    consumer_of,
    settled,
    until,
    write,
)

pytestmark = pytest.mark.timeout(600)
RELIED_ON = (
    KafkaConnectionManager.get_connection,
    KafkaConnectionManager._connect,
    KafkaConnectionManager.update_backoff,
    KafkaConnectionManager.connection_delay,
    KafkaConnectionManager.least_loaded_node,
    KafkaConnectionManager.socket_connection_setup_timeout_ms,
    KafkaConnection.close,
    KafkaConnection.connection_lost,
    ClusterMetadata._refresh_loop,
    ClusterMetadata._do_refresh_metadata,
    ClusterMetadata._generate_bootstrap_brokers,
    ClusterMetadata.broker_metadata,
    ClusterMetadata.failed_update,
    ClusterMetadata.request_update,
    ClusterMetadata.update_metadata,
    BaseCoordinator.coordinator_dead,
    BaseCoordinator.ensure_coordinator_ready_async,
    KafkaAdminClient._find_coordinator_ids,
    KafkaAdminClient._send_request_to_controller,
)


def test_the_functions_that_it_relies_on_have_not_changed():
    text = "".join(inspect.getsource(function) for function in RELIED_ON)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "6d8b3d668c253638", (
        f"kafka-python {kafka.__version__} has other insides: go through "
        "rebootstrap/kafka_python.py function by function, then write the new digest here"
    )


def test_an_untested_version_is_refused(monkeypatch):
    monkeypatch.setattr(kafka, "__version__", "3.1.0")
    with pytest.raises(UntestedClientError, match=r"3\.1\.0 was not tested"):
        supervise(object())


def test_something_else_than_a_client_is_refused():
    with pytest.raises(TypeError, match="object is not a client of kafka-python"):
        supervise(object())


def test_invalid_settings_are_refused(broker):
    with (
        KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer,
        pytest.raises(RebootstrapConfigError, match="set one of rebootstrap, none"),
    ):
        supervise(consumer, metadata_recovery_strategy="sometimes")


@pytest.fixture
def producer(broker):
    made = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, reconnect_backoff_max_ms=300)
    supervisor = supervise(made)
    yield made
    supervisor.close()
    made.close(timeout=1)


@pytest.mark.slow
@pytest.mark.kip("1102-3", "loop")
@pytest.mark.kip("1102-6", "loop")
@pytest.mark.kip("1102-7", "loop")
def test_a_group_in_the_middle_of_an_upgrade_goes_on_when_all_brokers_are_replaced(
    broker, producer
):
    """The default trigger is five minutes, so only KIP-899's rule can act in time."""
    servers = broker.bootstrap_servers
    old = Member(servers, "g", release="3.1", metadata_recovery_strategy="rebootstrap")
    new = Member(servers, "g", release="3.1", metadata_recovery_strategy="rebootstrap")
    alone = Member(servers, "without")
    until(lambda: settled(old, new) and settled(alone), "both groups settle")
    new.stop()
    new = Member(servers, "g", process_id=new.process_id, metadata_recovery_strategy="rebootstrap")
    until(lambda: calm(old, new), "a group of two releases settles")
    first = write(producer, "before")
    until(lambda: first <= old.seen | new.seen and first <= alone.seen, "all are read")
    until(lambda: calm(old, new), "no member joins any more")
    known = [(m.identity, m.version, sorted(m.partitions)) for m in (old, new)]
    connections = [
        c for m in (old, new) for c in list(m.consumer._manager._conns.values()) if c.connected
    ]

    broker.replace_nodes()
    second = write(producer, "after")

    until(lambda: second <= old.seen | new.seen, "the group reads on")
    assert [(m.identity, m.version, sorted(m.partitions)) for m in (old, new)] == known
    for member in (old, new):
        assert {rebootstrap.rule for rebootstrap in member.supervisor.rebootstraps} == {
            "no node is available"
        }
        assert member.problems == []
    assert all(connection.closed for connection in connections)
    until(
        lambda: (
            {k.partition: a.offset for k, a in broker.committed("g").items()}
            == dict.fromkeys(range(PARTITIONS), 2)
        ),
        "commits go on",
    )
    # The upgrade continues too.
    old.stop()
    last = Member(servers, "g", process_id=old.process_id, metadata_recovery_strategy="rebootstrap")
    until(lambda: settled(last, new), "the last member is bounced")
    # After the same time again, the consumer without a supervisor has read nothing.
    time.sleep(2)
    assert not second & alone.seen
    alone.rescued(second)
    for member in (last, new, alone):
        member.stop()


@pytest.mark.kip("1102-4", "loop")
@pytest.mark.kip("1102-6", "loop")
def test_a_demand_of_the_server_is_followed_at_once_and_everything_survives(broker, producer):
    reports = []
    member = Member(broker.bootstrap_servers, "g", listener=reports.append)
    until(lambda: settled(member), "the member has everything")
    first = write(producer, "before")
    until(lambda: first <= member.seen, "all is read")
    until(lambda: calm(member), "no member joins any more")
    # Not the generation: a leader that reads new metadata can start one more rebalance.
    known = member.identity[0], member.version, sorted(member.partitions)
    before = list(member.consumer._manager._conns.values())

    broker.demand_rebootstrap()
    member.consumer._cluster.request_update()
    until(lambda: reports, "the demand is followed")
    until(lambda: all(connection.closed for connection in before), "all connections are closed")
    broker.demand_rebootstrap([])

    second = write(producer, "after")
    until(lambda: second <= member.seen, "the member reads on")
    assert {report.rule for report in reports} == {"demanded by the server"}
    assert all(isinstance(report, Rebootstrapped) for report in reports)
    until(lambda: calm(member), "no member joins any more")
    assert (member.identity[0], member.version, sorted(member.partitions)) == known
    assert member.problems == []
    asked = broker.requests("Metadata")
    assert any(request.node_id == 0 and request.version == 13 for request in asked)
    member.stop()


@pytest.mark.kip("1102-4", "loop")
def test_a_client_that_asks_in_an_older_version_never_gets_the_demand(broker):
    consumer = consumer_of(broker.bootstrap_servers, None, api_version=(2, 3))
    assert consumer.topics() == {TOPIC}  # with a version given, only now does it bootstrap
    supervisor = supervise(consumer)
    broker.demand_rebootstrap()
    asked = len(broker.requests("Metadata"))
    assert consumer.topics() == {TOPIC}
    requests = broker.requests("Metadata")[asked:]
    assert requests
    assert all(request.version < 13 and request.node_id > 0 for request in requests)
    assert list(supervisor.rebootstraps) == []
    close_all(supervisor, consumer)


@pytest.mark.kip("1102-5", "loop")
def test_with_none_a_demand_is_reported_to_the_application_and_nothing_is_closed(broker):
    reports = []
    consumer = consumer_of(broker.bootstrap_servers, None)
    supervisor = supervise(consumer, metadata_recovery_strategy="none", listener=reports.append)
    assert consumer.topics() == {TOPIC}
    before = [c for c in consumer._manager._conns.values() if c.connected]
    broker.demand_rebootstrap()
    consumer._cluster.request_update()
    until(lambda: reports, "the demand is reported")
    assert isinstance(reports[0], RebootstrapRequiredError)
    assert "metadata.recovery.strategy=none forbids it" in str(supervisor.required)
    assert before
    assert all(connection.connected for connection in before)
    assert list(supervisor.rebootstraps) == []
    close_all(supervisor, consumer)


@pytest.mark.slow
@pytest.mark.kip("1102-5", "loop")
def test_with_none_a_consumer_whose_brokers_are_all_replaced_stays_where_it_is(broker, producer):
    member = Member(broker.bootstrap_servers, "with", metadata_recovery_strategy="rebootstrap")
    none = Member(
        broker.bootstrap_servers,
        "none",
        metadata_recovery_strategy="none",
        metadata_recovery_rebootstrap_trigger_ms=100,
    )
    until(lambda: settled(member) and settled(none), "both have everything")
    first = write(producer, "before")
    until(lambda: first <= member.seen and first <= none.seen, "all is read")
    broker.replace_nodes()
    second = write(producer, "after")
    until(lambda: second <= member.seen, "the other one reads on")
    time.sleep(2)
    assert not second & none.seen
    assert list(none.supervisor.rebootstraps) == []
    none.rescued(second)
    member.stop()
    none.stop()


def test_connections_that_are_stuck_do_not_hold_the_trigger_back(broker, producer):
    """KIP-1102's motivation: a connection attempt that neither succeeds nor fails."""
    member = Member(broker.bootstrap_servers, "g", metadata_recovery_rebootstrap_trigger_ms=1_000)
    until(lambda: settled(member), "the member has everything")
    first = write(producer, "before")
    until(lambda: first <= member.seen, "all is read")
    stuck = broker.call(lambda b: b.live)
    for node_id in stuck:
        broker.inject(Fault(node_id=node_id, delay_ms=3_600_000, times=10**6))
    new = broker.run(_joined_by_new(broker, stuck))
    member.consumer._manager.call_soon(
        lambda: [c.close() for c in list(member.consumer._manager._conns.values())]
    )
    member.consumer._cluster.request_update()
    until(
        lambda: (
            "metadata is overdue"
            in {rebootstrap.rule for rebootstrap in member.supervisor.rebootstraps}
        ),
        "the trigger fires",
    )
    assert new
    for node_id in stuck:
        broker.stop_node(node_id)
    broker.clear_faults()
    second = write(producer, "after")
    until(lambda: second <= member.seen, "the member reads on")
    member.stop()


async def _joined_by_new(running, stuck):
    """Start a node besides the unresponsive ones."""
    return await running._broker.start_node(max(stuck) + 1, port=0)


def test_names_are_looked_up_again_off_the_io_thread_until_they_are_found(monkeypatch, broker):
    first, *_ = broker.addresses.values()
    names = Names(monkeypatch, first)
    member = Member(Names.SERVER, "g", metadata_recovery_strategy="rebootstrap")
    until(lambda: settled(member), "the member has everything")
    names.address = None
    names.lookups.clear()
    second, *_ = broker.replace_nodes().values()
    until(lambda: names.lookups.count("bootstrap-servers") >= 3, "the name is asked for again")
    assert set(names.lookups) == {"bootstrap-servers"}
    names.address = second
    producer = KafkaProducer(bootstrap_servers=second)
    values = write(producer, "after")
    until(lambda: values <= member.seen, "the member reads on")
    assert member.problems == []
    member.stop()
    producer.close()


def test_an_admin_client_goes_on_and_a_closed_one_is_let_go(broker):
    admin = KafkaAdminClient(
        bootstrap_servers=broker.bootstrap_servers, reconnect_backoff_max_ms=300
    )
    supervisor = supervise(admin)
    assert TOPIC in admin.list_topics()
    broker.replace_nodes()

    def listed():
        with contextlib.suppress(KafkaError):
            return TOPIC in admin.list_topics()
        return False

    until(listed, "the admin client finds the new brokers")
    assert supervisor.rebootstraps
    admin.close()
    supervisor.close()


def test_a_request_to_a_node_that_a_rebootstrap_has_forgotten_is_repeated(broker):
    """KafkaConsumer.poll would raise UnknownBrokerIdError, which is not retriable."""
    consumer = consumer_of(broker.bootstrap_servers, None)
    supervisor = supervise(consumer)
    future = consumer._manager.send(MetadataRequest(), node_id=99)
    assert isinstance(future.exception, NodeNotReadyError)
    supervisor.close()
    consumer.close()


def test_a_supervisor_that_is_closed_leaves_the_client_as_it_was(broker):
    consumer = consumer_of(broker.bootstrap_servers, None)
    manager, cluster = consumer._manager, consumer._cluster
    supervisor = supervise(consumer)
    assert "get_connection" in vars(manager)
    with pytest.raises(AlreadySupervisedError, match="close that one first"):
        supervise(consumer)
    supervisor.close()
    assert not {"get_connection", "update_backoff"} & set(vars(manager))
    assert not {"metadata_request", "update_metadata", "failed_update"} & set(vars(cluster))
    assert consumer.topics() == {TOPIC}
    consumer.close()
