"""Start and stop of the embedded broker and its nodes."""

import contextlib
import socket
import threading
import time

import pytest

from system_tests.broker import BrokerConfig, running_broker
from system_tests.coordinator import JoinGroup, Protocol


@pytest.mark.usefixtures("clock")
def test_stopping_the_broker_leaves_no_thread_behind():
    before = threading.active_count()
    with running_broker(BrokerConfig(topics={"t": 1})) as broker:
        assert threading.active_count() == before + 1
        host, port = broker.addresses[1].rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
    assert threading.active_count() == before
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""
    connection.close()


@pytest.mark.usefixtures("clock")
def test_port_in_use_is_an_os_error_and_leaves_no_thread_behind():
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = BrokerConfig(nodes=2, ports=(0, taken.getsockname()[1]))
        with pytest.raises(OSError, match="in use"), running_broker(config):
            pass
    assert threading.active_count() == before


@pytest.mark.usefixtures("clock")
def test_stopped_node_starts_again_on_its_port_or_on_another():
    with running_broker(BrokerConfig(nodes=2, topics={"t": 4})) as broker:
        address = broker.addresses[2]
        broker.stop_node(2)
        assert list(broker.addresses) == [1]
        broker.start_node(2)
        assert broker.addresses[2] == address
        broker.stop_node(2)
        broker.start_node(2, port=0)
        assert broker.addresses[2] != address
        with pytest.raises(ValueError, match="running nodes are"):
            broker.start_node(2)
        with pytest.raises(ValueError, match="does not run"):
            broker.move_coordinator("g", 9)


@pytest.mark.usefixtures("clock")
def test_the_port_of_a_stopped_node_is_not_given_to_another_process():
    def takes(port):
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))

    with running_broker(BrokerConfig(nodes=2)) as broker:
        ports = [int(address.rsplit(":", 1)[1]) for address in broker.addresses.values()]
        broker.stop_node(2)
        broker.replace_nodes()
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            with pytest.raises(OSError, match="in use"):
                takes(port)
    for port in ports:
        takes(port)


@pytest.mark.usefixtures("clock")
def test_bootstrap_listener_outlives_every_node():
    with running_broker(BrokerConfig(bootstrap_listener=True)) as broker:
        bootstrap = broker.bootstrap_servers
        assert bootstrap[0] not in broker.addresses.values()
        broker.stop_node(1)
        broker.start_node(2)
        assert broker.bootstrap_servers == bootstrap
        with socket.create_connection(("127.0.0.1", int(bootstrap[0].rsplit(":", 1)[1]))):
            pass


@pytest.mark.usefixtures("clock")
def test_events_reach_subscribers_with_the_time_of_the_monotonic_clock():
    seen = []
    began_ms = int(time.monotonic() * 1_000)
    with running_broker() as broker:
        broker.subscribe(seen.append)
        broker.call(lambda b: b.cluster.delete_group("nobody"))
        broker.run(_join(broker))
    assert seen
    assert began_ms <= seen[0].at_ms <= time.monotonic() * 1_000
    assert [e.kind.name for e in seen][:2] == ["MEMBER_JOINED", "LEADER_ELECTED"]


async def _join(broker):
    request = JoinGroup(
        group_id="g",
        protocol_type="consumer",
        protocols=(Protocol("range", b""),),
        session_timeout_ms=1_000,
        rebalance_timeout_ms=1_000,
        needs_known_member_id=False,
    )
    return await broker._broker.cluster.ask(request)


@pytest.mark.parametrize(
    "fields",
    [{"nodes": 0}, {"ports": (1, 2)}, {"topics": {"t": 0}}],
)
def test_invalid_settings_are_refused(fields):
    with pytest.raises(ValueError, match=r"give|node"):
        BrokerConfig(**fields)
