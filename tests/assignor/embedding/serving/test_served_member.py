"""Health, metrics and servers of a member, without a client: from the start to after its close."""

import socket
from contextlib import closing
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from assignor.embedding import MemberStopped
from assignor.embedding.serving import ServedMember
from assignor.embedding.state_stores import DictStore
from tests.assignor.embedding.state_stores.logs import TASK, WORDS, Cluster, Member

RECORDS = "streams_application_records_total"
LABELS = {"group": "app", "client_id": "one", "task": str(TASK)}

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def member():
    made = Member(Cluster(), kind=DictStore)
    with closing(made.stores):
        yield made


@pytest.fixture
def served(member):
    assignor = SimpleNamespace(
        client_id="one",
        endpoint="127.0.0.1:0",
        failed=None,
        is_settled=True,
        poll_limit_s=300.0,
        stopped=(),
        unheard_s=0.0,
    )
    with ServedMember(assignor, member.stores) as made:
        member.stores.work.ended = ""
        yield made


def port_of(served):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    served(f"127.0.0.1:{port}")
    return port


def get(port, path):
    with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_each_running_task_has_a_count_of_records_before_its_first(member, served):
    registry = CollectorRegistry()
    port_of(lambda endpoint: served.serve_probes(endpoint, registry=registry))
    assert registry.get_sample_value(RECORDS, LABELS) is None
    member.assign()
    member.finish()
    assert registry.get_sample_value(RECORDS, LABELS) == 0
    member.cluster.write(*WORDS)
    member.finish()
    assert registry.get_sample_value(RECORDS, LABELS) == len(WORDS)
    member.revoke()
    member.stores.on_tasks_assigned({}, {})
    assert registry.get_sample_value(RECORDS, LABELS) == len(WORDS)


def test_tasks_that_may_come_back_after_a_rebalance_count(member, served):
    member.assign()
    member.revoke()  # an eager rebalance: the next assignment says whether they stay
    assert (served.health().active, served.ready()) == ({TASK}, False)
    member.assign()
    member.finish()
    assert (served.health().active, served.ready()) == ({TASK}, True)
    member.revoke()
    assert (served.health().active, served.ready()) == ({TASK}, True)
    member.stores.on_tasks_assigned({}, {})
    assert (served.health().active, served.ready()) == (set(), True)


def test_probes_that_cannot_listen_leave_nothing_behind(served):
    registry = CollectorRegistry()
    with closing(socket.create_server(("127.0.0.1", 0))) as busy:
        for _ in range(3):
            with pytest.raises(OSError, match="in use"):
                served.serve_probes(f"127.0.0.1:{busy.getsockname()[1]}", registry=registry)
    assert not [*registry.collect()]
    port = port_of(lambda endpoint: served.serve_probes(endpoint, registry=registry))
    assert get(port, "/metrics")[1].count("\nstreams_application_ready{") == 1


def test_a_closed_member_serves_nothing(member, served, monkeypatch):
    registry, opened = CollectorRegistry(), []
    port = port_of(lambda endpoint: served.serve_probes(endpoint, registry=registry))
    served.close()
    monkeypatch.setattr(socket, "create_server", lambda *given, **_: opened.append(given))
    with pytest.raises(MemberStopped, match="closed"):
        served.serve_probes(f"127.0.0.1:{port}", registry=registry)
    with pytest.raises(MemberStopped, match="closed"):
        served.serve_queries(member.words, lambda *_: b"")
    assert (opened, [*registry.collect()]) == ([], [])


def test_what_is_served_while_a_member_closes_is_closed(served, monkeypatch):
    """A thread may have passed the check before another one closes the member."""
    registry, register = CollectorRegistry(), CollectorRegistry.register
    monkeypatch.setattr(
        CollectorRegistry, "register", lambda *given: register(*given) or served.close()
    )
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(MemberStopped, match="closed"):
        served.serve_probes(f"127.0.0.1:{port}", registry=registry)
    assert not [*registry.collect()]
    with pytest.raises(ConnectionRefusedError):
        get(port, "/live")
