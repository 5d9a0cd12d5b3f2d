"""`assignor inspect` on live members of the embedded broker: it shows what they hold."""

import json
import threading
import time
from contextlib import ExitStack
from uuid import UUID

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.cli import main
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.timeout(900)]
PARTITIONS = 6
PATIENCE_S = 180


def topology():
    return (
        Topology()
        .add_source("words", topics=["words"])
        .add_processor("count", parents=["words"])
        .add_state_store("counts", processors=["count"])
    )


class Member(threading.Thread):
    """A consumer in a thread, with a native assignor or a stock one."""

    def __init__(self, broker, group, name, assignor=None):
        super().__init__(daemon=True)
        strategy = {} if assignor is None else {"partition_assignment_strategy": [assignor]}
        self.assignor = assignor
        self.consumer = KafkaConsumer(
            "words",
            client_id=name,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group,
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
            enable_auto_commit=False,
            metrics_enabled=False,
            **strategy,
        )
        if assignor is not None:
            assignor.attach(self.consumer)
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.is_set():
            self.consumer.poll(timeout_ms=100)

    def close(self):
        self.ended.set()
        self.join()
        if self.assignor is not None:
            self.assignor.close()
        self.consumer.close()


def native_member(broker, number, **settings):
    assignor = StreamsAssignor(
        topology(), application_id="app", process_id=UUID(int=number), **settings
    )
    return Member(broker, "app", f"app-m{number}", assignor)


def document(broker, group):
    done = CliRunner().invoke(
        main,
        ["inspect", "--bootstrap-server", broker.bootstrap_servers[0], "--group", group,
         "--format", "json", "--timeout", "60"],
    )  # fmt: skip
    return json.loads(done.stdout)


def wait_for(look, is_expected):
    """Call `look` until its result is as expected; the failure shows the last result."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_expected(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def actives(found):
    return {
        client["client"]: sorted(int(task[2:]) for task in client["active"])
        for client in found.get("clients", ())
        if "active" in client
    }


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"words": PARTITIONS})) as running:
        yield running


def test_tasks_and_versions_are_those_of_the_members(broker):
    with ExitStack() as stack:
        for number in (1, 2, 3):
            stack.callback(native_member(broker, number).close)
        found = wait_for(
            lambda: document(broker, "app"),
            lambda found: sorted(map(len, actives(found).values())) == [2, 2, 2],
        )
    assert set(actives(found)) == {"m1", "m2", "m3"}
    assert sorted(task for held in actives(found).values() for task in held) == list(
        range(PARTITIONS)
    )
    assert {client["process_id"] for client in found["clients"]} == {
        str(UUID(int=number)) for number in (1, 2, 3)
    }
    assert {member["native"] for client in found["clients"] for member in client["members"]} == {
        101
    }
    assert set(found["leader"]["candidates"]) <= {"m1", "m2", "m3"}
    assert found["version"]["held_by"] == []
    assert found["subtopologies"]["0"]["sources"] == ["words"]


def test_a_native_member_that_is_pinned_is_named(broker):
    with ExitStack() as stack:
        stack.callback(native_member(broker, 1).close)
        stack.callback(native_member(broker, 2, upgrade_from="1.1").close)
        found = wait_for(
            lambda: document(broker, "app"),
            lambda found: sorted(map(len, actives(found).values())) == [3, 3],
        )
    (held,) = found["version"]["held_by"]
    assert (held["client"], held["kind"], held["version"]) == ("m2", "forgotten pin", 2)
    assert "holds-version" in [finding["kind"] for finding in found["findings"]]


def test_a_stock_group_shows_its_partitions_and_an_empty_one_is_marked(broker):
    member = Member(broker, "stock", "plain")
    try:
        found = wait_for(
            lambda: document(broker, "stock"),
            lambda found: bool(found.get("clients")) and bool(found["clients"][0]["partitions"]),
        )
        assert found["streams"] is False
        assert found["assignor"] == "range"
        assert found["clients"][0]["partitions"] == [f"words-{n}" for n in range(PARTITIONS)]
    finally:
        member.close()
    found = wait_for(lambda: document(broker, "stock"), lambda found: found["members"] == 0)
    assert found["summary"] == "group stock has no members now; its state is Empty"
