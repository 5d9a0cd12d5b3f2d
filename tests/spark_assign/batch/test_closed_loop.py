"""A live group: it is saved and worth touching, its leader's snapshot is placed, the plan taken."""

import json
import threading
import time
from contextlib import closing
from tempfile import TemporaryDirectory
from uuid import UUID

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.cli import main as assignor
from assignor.stores import OffloadedPlans, PlanStore
from spark_assign.cli.main import main
from system_tests.broker import BrokerConfig, running_broker
from system_tests.coordinator import GroupState

pytestmark = [
    pytest.mark.timeout(900),
    # kafka-python leaves the sockets of connections that broke to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PARTITIONS = 8
GROUP = "word-count"


def topology():
    return (
        Topology()
        .add_source("words", topics=["words"])
        .add_processor("count", parents=["words"])
        .add_state_store("counts", processors=["count"])
    )


class Member(threading.Thread):
    """A member that polls in a thread."""

    def __init__(self, broker, number, store):
        super().__init__(daemon=True)
        self.assignor = StreamsAssignor(
            topology(),
            application_id=GROUP,
            process_id=UUID(int=number),
            strategy=OffloadedPlans(store, group=GROUP, tasks_at_least=PARTITIONS),
            observer=self.see,
        )
        self.warnings = []
        self.consumer = KafkaConsumer(
            "words",
            bootstrap_servers=broker.bootstrap_servers,
            group_id=GROUP,
            partition_assignment_strategy=[self.assignor],
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
            enable_auto_commit=False,
        )
        self.assignor.attach(self.consumer)
        self.ended = threading.Event()
        self.start()

    def see(self, observation):
        self.warnings += getattr(observation, "warnings", ())

    def run(self):
        while not self.ended.is_set():
            self.consumer.poll(timeout_ms=1_000)

    def tasks(self):
        return sorted(task.partition for task in self.assignor.tasks.active)

    def rejoin(self):
        """Request a rebalance, as the follow-up timer does."""
        self.consumer._coordinator.request_rejoin()

    def close(self):
        self.ended.set()
        self.join()
        self.assignor.close()
        self.consumer.close()


def wait_for(condition, what, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def test_group_takes_the_plan_that_spark_made_of_the_leaders_snapshot(spark, tmp_path):
    store = PlanStore(tmp_path / "plans")
    with (
        running_broker(BrokerConfig(topics={"words": PARTITIONS})) as broker,
        closing(Member(broker, 1, store)) as first,
    ):
        wait_for(lambda: len(first.tasks()) == PARTITIONS, "the first member runs everything")
        with closing(Member(broker, 2, store)) as second:
            wait_for(lambda: snapshot_clients(store) == 2, "the leader wants a plan for two")
            wait_for(lambda: is_stable(broker), "every member has its answer")
            # The group keeps its assignment until the plan is there.
            wait_for(lambda: len(first.tasks()) == PARTITIONS, "the first member has all tasks")
            assert second.tasks() == []

            assert_worth_touching(broker, tmp_path)
            done = call("batch", "--store", str(store.directory), "--strategy", "sticky")
            assert f"1 of 1 plans are in {store.directory} for their leaders" in done.stdout

            first.rejoin()
            half = PARTITIONS // 2
            wait_for(lambda: len(first.tasks()) == len(second.tasks()) == half, "the plan is taken")
            assert sorted(first.tasks() + second.tasks()) == list(range(PARTITIONS))
            planned = store.read_plan(GROUP).assignment.active.tolist()
            assert second.tasks() == [p for p in range(PARTITIONS) if planned[p] == 1]

            # A truncated plan is rejected, and the assignment stays.
            path = store.plan_path(GROUP)
            path.write_bytes(path.read_bytes()[:-7])
            before = first.tasks()
            generation = broker.groups()[GROUP].generation
            first.rejoin()
            wait_for(lambda: broker.groups()[GROUP].generation > generation, "a rebalance")
            wait_for(lambda: first.tasks() == before, "the first member keeps its tasks")

            # Another command makes a plan of the snapshot, too.
            done = call("group", "--store", str(store.directory), "--name", GROUP)
            assert done.stdout.startswith(f"{PARTITIONS} tasks placed on 2 clients")
            assert len(store.read_plan(GROUP).assignment.active) == PARTITIONS


def call(command, *arguments):
    with TemporaryDirectory() as folder:
        done = CliRunner().invoke(main, [command, "--out", f"{folder}/out", *arguments])
    assert done.exit_code == 0, done.stderr
    return done


def assert_worth_touching(broker, folder):
    """The saved live group is the one that a plan is worth making for."""
    path, where = f"{folder}/groups.jsonl", ("--bootstrap-server", broker.bootstrap_servers[0])
    saved = CliRunner().invoke(assignor, ["inspect", *where, "--all", "--save", path])
    assert saved.exit_code == 0, saved.stderr
    done = call("batch", "--in", path, "--only-worth", "10", "--format", "json")
    [listed] = json.loads(done.stdout)["most_worth"]
    half = PARTITIONS // 2
    assert (listed["name"], listed["gained"], listed["touched"]) == (GROUP, half, 2 * half)
    assert (listed["balance_before"], listed["balance_settled"]) == (2.0, 1.0)


def is_stable(broker):
    return broker.groups()[GROUP].state is GroupState.STABLE


def snapshot_clients(store):
    snapshot = store.read_snapshot(GROUP)
    return 0 if snapshot is None else len(snapshot.state.clients)
