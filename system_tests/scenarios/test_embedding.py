"""A member's surroundings on a real client: topics, errors, queries, the end of the group."""

import struct
import threading
import time

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.polling import polled
from assignor.embedding import MemberStopped, RunningTasks, partition_for_key
from assignor.observe import AnswersDecided, AssignmentTaken
from encoding import AssignorError, HostInfo, TaskId
from system_tests.broker import BrokerConfig, Fault, running_broker

pytestmark = [pytest.mark.loop, pytest.mark.slow, pytest.mark.timeout(900)]

LIMIT_S = 120
REPARTITIONED = (
    Topology()
    .add_repartition_topic("by-word")
    .add_source("lines", topics=["lines"])
    .add_sink("out", topic="by-word", parents=["lines"])
    .add_source("words", topics=["by-word"])
    .add_processor("count", parents=["words"])
    .add_state_store("counts", processors=["count"])
)
CHANGELOG, BY_WORD = "app-counts-changelog", "app-by-word-repartition"
ALL = [TaskId(s, p) for s in (0, 1) for p in range(3)]
FENCED = 82


class Listener(RunningTasks):
    def __init__(self):
        self.said, self.ended = [], threading.Event()
        super().__init__(tell=self.said.append)

    def on_shutdown_requested(self):
        self.ended.set()


class Member:
    """A consumer in a thread of its own that polls until it is stopped."""

    def __init__(self, broker, **settings):
        self.listener, self.seen, self.error = Listener(), [], None
        consumer_settings = settings.pop("consumer", {})
        self.assignor = StreamsAssignor(
            REPARTITIONED,
            application_id="app",
            listener=self.listener,
            observer=self.seen.append,
            **settings,
        )
        self.consumer = KafkaConsumer(
            *REPARTITIONED.source_topics("app"),
            bootstrap_servers=broker.bootstrap_servers,
            group_id="app",
            partition_assignment_strategy=[self.assignor],
            session_timeout_ms=60_000,
            heartbeat_interval_ms=200,
            **consumer_settings,
        )
        self.assignor.attach(self.consumer)
        self.stop = threading.Event()
        self.polls = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            for _ in polled(self.consumer, self.assignor, stop=self.stop):
                self.polls += 1
        except MemberStopped as error:
            self.error = str(error)

    @property
    def active(self):
        return sorted(self.listener.active)

    def close(self):
        self.stop.set()
        self.thread.join(LIMIT_S)
        self.consumer.close(autocommit=False)
        self.assignor.close()


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"lines": 3})) as running:
        yield running


@pytest.fixture
def member(broker):
    made = []

    def make(**settings):
        made.append(Member(broker, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def until(holds, what):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, f"not {what()} in {LIMIT_S} s"
        time.sleep(0.05)


def runs(tasks, *members):
    until(
        lambda: sorted(task for one in members for task in one.active) == tasks,
        lambda: f"{tasks}, but {[(one.active, one.assignor.failures) for one in members]}",
    )


def topics(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    rows = {row["name"]: len(row["partitions"]) for row in admin.describe_topics()}
    admin.close()
    return rows


def test_internal_topics_are_there_before_the_first_task(broker, member):
    one = member()
    runs(ALL, one)
    assert topics(broker) == {"lines": 3, CHANGELOG: 3, BY_WORD: 3}
    taken = [event for event in one.seen if isinstance(event, AssignmentTaken)]
    first = next(event for event in taken if event.active_tasks)
    assert list(first.active_tasks) == ALL, "none before, then all at once"
    asked = [request.api for request in broker.requests()]
    assert asked.count("CreateTopics") == 1


def test_a_second_member_shares_the_work_and_creates_nothing(broker, member):
    one = member()
    runs(ALL, one)
    two = member()
    runs(ALL, one, two)
    until(lambda: one.active and two.active, lambda: "shared")
    assert len(broker.requests("CreateTopics")) == 1


def test_a_changelog_with_another_count_stops_its_tasks_only_until_it_is_mended(broker, member):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    compacted = {"num_partitions": 2, "configs": {"cleanup.policy": "compact"}}
    admin.create_topics({CHANGELOG: compacted})
    one = member()
    runs(ALL[:3], one)
    until(
        lambda: any("has 2 partitions, 3 are needed" in said for said in one.listener.said),
        lambda: f"said, but {one.listener.said}",
    )
    admin.create_partitions({CHANGELOG: 3})
    admin.close()
    runs(ALL, one)


def test_a_cluster_that_refuses_to_create_is_told_and_asked_again(broker, member):
    broker.inject(Fault(api="CreateTopics", error=29, times=3))
    one = member()
    until(lambda: one.listener.said and one.assignor.failures, lambda: "said")
    runs(ALL, one)


def test_a_fenced_member_ends_once_with_what_to_do(broker, member):
    one = member(consumer={"group_instance_id": "me"})
    runs(ALL, one)
    for api in ("Heartbeat", "JoinGroup", "SyncGroup"):
        broker.inject(Fault(api=api, error=FENCED, times=1_000_000))
    one.thread.join(LIMIT_S)
    assert not one.thread.is_alive()
    assert "FencedInstanceIdError" in one.error
    assert "group.instance.id" in one.error


def test_an_error_that_passes_is_waited_for_and_not_spun_on(broker, member):
    broker.inject(Fault(api="JoinGroup", error=-1, times=3))
    one = member()
    runs(ALL, one)
    assert one.error is None


def test_one_member_asks_and_the_whole_group_stops(broker, member):
    one, two = member(), member()
    runs(ALL, one, two)
    until(lambda: one.active and two.active, lambda: "shared")
    two.assignor.request_shutdown()
    for each in (one, two):
        each.thread.join(LIMIT_S)
        assert not each.thread.is_alive()
        assert each.listener.ended.is_set()
        assert each.assignor.shutdown_requested
        codes = [e.error_code for e in each.seen if isinstance(e, AssignmentTaken)]
        assert codes[-1] == AssignorError.SHUTDOWN_REQUESTED
    assert one.error is None


def test_a_key_is_asked_for_where_its_task_runs(broker, member):
    one = member(endpoint="one:1", num_standby_replicas=1)
    two = member(endpoint="two:2", num_standby_replicas=1)
    runs(ALL, one, two)
    until(lambda: one.active and two.active, lambda: "shared")
    host = {"one": HostInfo("one", 1), "two": HostInfo("two", 2)}

    def is_right(asked, key):
        task = TaskId(1, partition_for_key(key, 3))
        owner, other = ("one", "two") if task in one.active else ("two", "one")
        found = asked.assignor.hosts_for_key("counts", key)
        standby = (
            (host[other],) if task in (one if other == "one" else two).listener.standby else ()
        )
        return (found.active, found.standby) == (host[owner], standby)

    keys = [f"word-{number}".encode() for number in range(30)]
    until(lambda: all(is_right(asked, k) for asked in (one, two) for k in keys), lambda: "right")


@pytest.mark.kip("268-5", "loop")
@pytest.mark.parametrize(("release", "words"), [("2.1.1", (4, 4)), ("2.3.1", (4, 4))])
def test_an_old_leaders_empty_answer_to_a_future_member_carries_two_numbers_only(
    member, monkeypatch, release, words
):
    """The bytes that a member of 2.4 or newer gets from an old leader which knows two endpoints."""
    taken = []
    take = StreamsAssignor.on_assignment

    def on_assignment(assignor, assignment, generation):
        taken.append((assignor, assignment.user_data))
        return take(assignor, assignment, generation)

    monkeypatch.setattr(StreamsAssignor, "on_assignment", on_assignment)
    one = member(release=release, endpoint="one:1")
    runs(ALL, one)
    two = member(release="2.4.1", endpoint="two:2")
    until(lambda: two.active and one.active, lambda: "shared")
    first = next(data for assignor, data in taken if assignor is two.assignor)
    assert struct.unpack(">6i", first) == (*words, 0, 0, 0, 0)


def test_a_restarted_process_is_who_it_was_and_knows_what_the_group_agreed_on(broker, tmp_path):
    said = []
    for _ in range(2):
        one = Member(broker, state_dir=tmp_path)
        runs(ALL, one)
        until(lambda one=one: one.assignor.directory.remembered_version, lambda: "remembered")
        said.append((one.assignor.directory.process_id, one.assignor.directory.remembered_version))
        one.close()
    assert said[0] == said[1]


def test_repartitioned_records_are_written_and_read_through_the_created_topic(broker, member):
    one = member()
    runs(ALL, one)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        at = producer.send(BY_WORD, b"1", b"hello").get(LIMIT_S)
    assert at.partition == partition_for_key(b"hello", 3)


def test_a_join_for_new_partitions_that_ends_between_two_polls_is_taken(broker):
    assignor = StreamsAssignor(
        Topology().add_source("lines", topics=["lines"]).add_processor("n", parents=["lines"]),
        application_id="app",
    )
    consumer = KafkaConsumer(
        "lines",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="app",
        partition_assignment_strategy=[assignor],
        metadata_max_age_ms=200,
    )
    assignor.attach(consumer)

    def polled(count):
        consumer.poll(timeout_ms=50)
        return len(assignor.tasks.active) == count

    until(lambda: polled(3), lambda: "assigned")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    # Longer than a poll: its answer arrives while nobody polls.
    broker.inject(Fault(api="SyncGroup", delay_ms=500))
    admin.create_partitions({"lines": 4})
    admin.close()
    until(lambda: polled(4), lambda: "assigned anew")
    consumer.close(autocommit=False)
    assignor.close()


def test_a_join_that_ends_between_two_polls_costs_no_rebalance(broker):
    seen = []
    assignor = StreamsAssignor(
        Topology().add_source("lines", topics=["lines"]).add_processor("n", parents=["lines"]),
        application_id="app",
        observer=seen.append,
    )
    consumer = KafkaConsumer(
        "lines",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="app",
        partition_assignment_strategy=[assignor],
    )
    assignor.attach(consumer)

    def polled_once_the_join_has_ended():
        consumer.poll(timeout_ms=1)
        join = consumer._coordinator._join_task
        until(lambda: join is None or join.is_done, lambda: "joined")
        return assignor.tasks.active

    until(polled_once_the_join_has_ended, lambda: "assigned")
    consumer.close(autocommit=False)
    assignor.close()
    assert [event.generation for event in seen if isinstance(event, AssignmentTaken)] == [1]
    assert len([event for event in seen if isinstance(event, AnswersDecided)]) == 1
