"""Time of a leader inside its client's callback, from the client's values to the client's values.

Run with `make bench` or `pytest benchmarks/clients/embedding.py --benchmark-only`. 100 members of
50 processes with state, standbys and endpoints join with 1,000 tasks. The callback decodes
subscriptions, computes lags, places tasks, writes and checks answers, and converts them.
"""

from threading import Event, Thread
from time import perf_counter, process_time, sleep
from types import SimpleNamespace
from uuid import UUID

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignor import TasksListener, Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.embedding import InternalTopicStatus, LeaderFacts
from benchmarks.rows import at_most
from encoding import TopicPartition

MEMBERS, TASKS = 100, 1_000
PART = "embedding"
GOAL_MS = 50.0
HEARTBEAT_S = 0.01
CHANGELOG = "app-counts-changelog"
TOPOLOGY = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
)
CLUSTER = SimpleNamespace(partitions_for_topic=lambda _: range(TASKS))


class Facts:
    """Replaces the thread that polls the cluster; all facts are known."""

    def __init__(self):
        ends = {TopicPartition(CHANGELOG, p): 1_000_000 + p for p in range(TASKS)}
        topics = {CHANGELOG: InternalTopicStatus(partitions=TASKS)}
        self._facts = LeaderFacts(topics=topics, end_offsets=ends)

    def facts(self):
        return self._facts

    def join(self):
        pass

    def lead(self, _, *, waits):
        assert not waits

    def close(self):
        pass


class Coordinator:
    """What `attach` looks for in a consumer."""

    group_id = "app"

    def request_rejoin(self):
        """Never called: nothing is due here."""

    def rebalance_in_progress(self):
        return False


class Listener(TasksListener):
    """Reports that every standby lacks a few records."""

    standby = ()

    def on_tasks_assigned(self, _, standby):
        self.standby = tuple(standby)

    def task_offsets(self):
        return {task: 1_000_000 + task.partition - 7 for task in self.standby}


def members():
    made = []
    for number in range(MEMBERS):
        assignor = StreamsAssignor(
            TOPOLOGY,
            application_id="app",
            process_id=UUID(int=number // 2 + 1),
            endpoint=f"host-{number // 2}:9000",
            num_standby_replicas=1,
            listener=Listener(),
        )
        assignor.attach(SimpleNamespace(_coordinator=Coordinator()))
        assignor._driver.cluster._provider = Facts()  # noqa: SLF001 no cluster is asked here
        made.append(assignor)
    return made


def group(assignors):
    wires = [assignor.metadata({"lines"}).encode() for assignor in assignors]
    return [
        SimpleNamespace(member_id=f"m{n:03}", metadata=ConsumerProtocolSubscription.decode(wire))
        for n, wire in enumerate(wires)
    ]


def rebalance(assignors):
    joined = group(assignors)
    answers = assignors[0].assign(CLUSTER, joined)
    for number, assignor in enumerate(assignors):
        answer = type(answers["m000"]).decode(answers[f"m{number:03}"].encode())
        assignor.on_assignment(answer, 1)


# CPU time: the callback does not wait, and the machine may be busy.
@pytest.mark.benchmark(timer=process_time)
def test_leader_in_the_callback(benchmark):
    assignors = members()
    for _ in range(3):
        rebalance(assignors)
    assert len({task for assignor in assignors for task in assignor.tasks.active}) == TASKS
    joined = group(assignors)
    benchmark(lambda: assignors[0].assign(CLUSTER, joined))
    milliseconds = benchmark.stats.stats.median * 1000
    print()
    at_most(PART, f"leader's callback, {MEMBERS} x {TASKS:,}, CPU", milliseconds, GOAL_MS, "ms")
    # The goal is for an idle machine.
    assert milliseconds < 4 * GOAL_MS


def worst_lateness_ms(stop, found):
    """Record how late a thread wakes up that sleeps like a heartbeat thread."""
    while not stop.is_set():
        slept = perf_counter()
        sleep(HEARTBEAT_S)
        found.append((perf_counter() - slept - HEARTBEAT_S) * 1000)


def test_heartbeats_beside_the_leader(benchmark):
    """A client's heartbeat thread must not be late while the callback runs."""
    assignors = members()
    for _ in range(3):
        rebalance(assignors)
    joined = group(assignors)
    lateness = {}
    for name, work in (
        ("idle", lambda: sleep(0.05)),
        ("leader", lambda: assignors[0].assign(CLUSTER, joined)),
    ):
        stop, found = Event(), []
        thread = Thread(target=worst_lateness_ms, args=(stop, found))
        thread.start()
        for _ in range(40):
            work()
        stop.set()
        thread.join()
        lateness[name] = max(found)
    benchmark.pedantic(lambda: assignors[0].assign(CLUSTER, joined), rounds=3)
    print(f"\nbeside nothing {lateness['idle']:.1f} ms late, of an interval of 3,000")
    late = max(0.0, lateness["leader"] - lateness["idle"])
    at_most(PART, "heartbeat later beside the leader, at most by", late, GOAL_MS, "ms")
