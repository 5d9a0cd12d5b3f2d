"""Version probing on real clients: what each member is assigned and writes, per rebalance.

Members of Kafka's releases are emulated by the adapter; all of them are polled in turns.
"""

import time

import pytest
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.observe import AnswersDecided, AssignmentTaken, RejoinRequested, SubscriptionWritten
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

LIMIT_S = 240
COUNTED = Topology().add_source("lines", topics=["lines"]).add_processor("n", parents=["lines"])


class Member:
    """An assignor, its consumer, and its observations."""

    def __init__(self, broker, release):
        self.seen = []
        self.assignor = StreamsAssignor(
            COUNTED, application_id="app", release=release, observer=self.seen.append
        )
        self.consumer = KafkaConsumer(
            "lines",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="app",
            partition_assignment_strategy=[self.assignor],
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
            enable_auto_commit=False,
        )
        self.assignor.attach(self.consumer)

    def of(self, kind):
        return [event for event in self.seen if isinstance(event, kind)]

    @property
    def wrote(self):
        """Versions of its subscriptions."""
        return [event.version for event in self.of(SubscriptionWritten)]

    def taken(self, generation):
        """Return the assignment that it took in a generation."""
        return next(event for event in self.of(AssignmentTaken) if event.generation == generation)

    def close(self):
        self.consumer.close(autocommit=False)
        self.assignor.close()


@pytest.fixture
def group():
    """Start members one after the other, and poll them until a condition holds."""
    members = []
    with running_broker(BrokerConfig(topics={"lines": 4})) as broker:

        def start(release):
            members.append(Member(broker, release))
            return members[-1]

        def until(holds, what):
            end = time.monotonic() + LIMIT_S
            while not holds():
                assert time.monotonic() < end, (what, [(m.wrote, m.seen[-3:]) for m in members])
                for member in members:
                    member.consumer.poll(timeout_ms=100)

        def stop(member):
            members.remove(member)
            member.close()

        start.until, start.stop = until, stop
        yield start
        for member in members:
            member.close()


def shared(*members):
    """Return whether these members have the four tasks, each at least one."""
    tasks = [sorted(member.assignor.tasks.active) for member in members]
    return all(tasks) and len({task for some in tasks for task in some}) == 4


@pytest.mark.kip("268-6", "loop")
@pytest.mark.parametrize("release", ["2.1.1", "2.3.1"])
def test_while_one_member_probes_the_others_keep_their_tasks_in_the_same_rebalance(group, release):
    first_member, two = group(release), group(release)
    group.until(lambda: shared(first_member, two), "shared by two")
    new = group("2.4.1")
    group.until(lambda: shared(first_member, two, new), "shared by three")
    led = [answers for member in (first_member, two) for answers in member.of(AnswersDecided)]
    assert {answers.placed_tasks for answers in led if answers.version_probing} == {4}
    first = new.of(AssignmentTaken)[0]
    assert first.active_tasks == ()
    others = [member.taken(first.generation) for member in (first_member, two)]
    assert all(answer.active_tasks for answer in others)
    assert len({task for answer in others for task in answer.active_tasks}) == 4
    assert {answer.error_code for answer in others} == {0}


@pytest.mark.kip("268-9", "loop")
def test_a_lowered_native_member_goes_up_again_while_a_jvm_member_leads(group):
    old = group("2.8.2")
    group.until(lambda: shared(old), "one member")
    jvm = group("3.9.1")
    group.until(lambda: shared(old, jvm) and jvm.wrote[-1] == 9, "two members")
    native = group("native")
    group.until(lambda: shared(old, jvm, native) and native.wrote[-1] == 9, "three members")
    group.stop(old)
    group.until(lambda: shared(jvm, native) and native.wrote[-1] == 11, "lifted")
    assert jvm.of(AnswersDecided), "a JVM member leads"
    assert not native.of(AnswersDecided)
    rejoins = native.of(RejoinRequested)
    versions = [(r.used_version_before, r.used_version_after) for r in rejoins if r.for_version]
    assert [(before, after) for before, after in versions if before != after] == [(11, 9), (9, 11)]
