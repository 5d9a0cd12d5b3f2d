"""A member on a real client: internal topics, errors, queries, the end of the group."""

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

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

LIMIT_S = 240
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
        self.sentences, self.ended = [], threading.Event()
        super().__init__(tell=self.sentences.append)

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
            heartbeat_interval_ms=100,
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
    for running in made:
        running.close()


def until(holds, what):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, f"not {what()} in {LIMIT_S} s"
        time.sleep(0.05)


def runs(tasks, *members):
    until(
        lambda: sorted(task for other in members for task in other.active) == tasks,
        lambda: f"{tasks}, but {[(other.active, other.assignor.failures) for other in members]}",
    )


def topics(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    rows = {row["name"]: len(row["partitions"]) for row in admin.describe_topics()}
    admin.close()
    return rows


def test_internal_topics_are_there_before_the_first_task(broker, member):
    running = member()
    runs(ALL, running)
    assert topics(broker) == {"lines": 3, CHANGELOG: 3, BY_WORD: 3}
    taken = [event for event in running.seen if isinstance(event, AssignmentTaken)]
    first = next(event for event in taken if event.active_tasks)
    assert list(first.active_tasks) == ALL, "none before, then all at once"
    asked = [request.api for request in broker.requests()]
    assert asked.count("CreateTopics") == 1


def test_a_second_member_shares_the_work_and_creates_nothing(broker, member):
    first = member()
    runs(ALL, first)
    second = member()
    runs(ALL, first, second)
    until(lambda: first.active and second.active, lambda: "shared")
    assert len(broker.requests("CreateTopics")) == 1


def test_a_changelog_with_another_count_stops_its_tasks_only_until_it_is_mended(broker, member):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    compacted = {"num_partitions": 2, "configs": {"cleanup.policy": "compact"}}
    admin.create_topics({CHANGELOG: compacted})
    first = member()
    runs(ALL[:3], first)
    until(
        lambda: any(
            "has 2 partitions instead of 3" in sentence for sentence in first.listener.sentences
        ),
        lambda: f"the error, but {first.listener.sentences}",
    )
    admin.create_partitions({CHANGELOG: 3})
    admin.close()
    runs(ALL, first)


def test_a_cluster_that_refuses_to_create_a_topic_is_reported_and_asked_again(broker, member):
    broker.inject(Fault(api="CreateTopics", error=29, times=3))
    first = member()
    until(lambda: first.listener.sentences and first.assignor.failures, lambda: "the error")
    runs(ALL, first)


def test_a_fenced_member_ends_once_with_what_to_do(broker, member):
    first = member(consumer={"group_instance_id": "me"})
    runs(ALL, first)
    for api in ("Heartbeat", "JoinGroup", "SyncGroup"):
        broker.inject(Fault(api=api, error=FENCED, times=1_000_000))
    first.thread.join(LIMIT_S)
    assert not first.thread.is_alive()
    assert "FencedInstanceIdError" in first.error
    assert "group.instance.id" in first.error


def test_an_error_that_passes_is_waited_for_and_not_spun_on(broker, member):
    broker.inject(Fault(api="JoinGroup", error=-1, times=3))
    first = member()
    runs(ALL, first)
    assert first.error is None


def test_one_member_asks_and_the_whole_group_stops(broker, member):
    first, second = member(), member()
    runs(ALL, first, second)
    until(lambda: first.active and second.active, lambda: "shared")
    second.assignor.request_shutdown()
    for each in (first, second):
        each.thread.join(LIMIT_S)
        assert not each.thread.is_alive()
        assert each.listener.ended.is_set()
        assert each.assignor.shutdown_requested
        codes = [e.error_code for e in each.seen if isinstance(e, AssignmentTaken)]
        assert codes[-1] == AssignorError.SHUTDOWN_REQUESTED
    assert first.error is None


def test_a_key_is_asked_for_where_its_task_runs(broker, member):
    first = member(endpoint="one:1", num_standby_replicas=1)
    second = member(endpoint="two:2", num_standby_replicas=1)
    runs(ALL, first, second)
    until(lambda: first.active and second.active, lambda: "shared")
    host = {"one": HostInfo("one", 1), "two": HostInfo("two", 2)}

    def is_right(asked, key):
        task = TaskId(1, partition_for_key(key, 3))
        owner, other = ("one", "two") if task in first.active else ("two", "one")
        found = asked.assignor.hosts_for_key("counts", key)
        standby = (
            (host[other],) if task in (first if other == "one" else second).listener.standby else ()
        )
        return (found.active, found.standby) == (host[owner], standby)

    keys = [f"word-{number}".encode() for number in range(30)]
    until(
        lambda: all(is_right(asked, k) for asked in (first, second) for k in keys), lambda: "right"
    )


@pytest.mark.kip("268-5", "loop")
@pytest.mark.parametrize(("release", "words"), [("2.1.1", (4, 4)), ("2.3.1", (4, 4))])
def test_an_old_leaders_empty_answer_to_a_future_member_carries_two_numbers_only(
    member, monkeypatch, release, words
):
    """The user data that a member of 2.4 or newer gets from an old leader."""
    taken = []
    take = StreamsAssignor.on_assignment

    def on_assignment(assignor, assignment, generation):
        taken.append((assignor, assignment.user_data))
        return take(assignor, assignment, generation)

    monkeypatch.setattr(StreamsAssignor, "on_assignment", on_assignment)
    old = member(release=release, endpoint="one:1")
    runs(ALL, old)
    second = member(release="2.4.1", endpoint="two:2")
    until(lambda: second.active and old.active, lambda: "shared")
    first = next(data for assignor, data in taken if assignor is second.assignor)
    assert struct.unpack(">6i", first) == (*words, 0, 0, 0, 0)


def test_a_restarted_process_is_who_it_was_and_knows_what_the_group_agreed_on(broker, tmp_path):
    identities = []
    for _ in range(2):
        first = Member(broker, state_dir=tmp_path)
        runs(ALL, first)
        until(
            lambda member=first: member.assignor.directory.remembered_version,
            lambda: "remembered",
        )
        identities.append(
            (first.assignor.directory.process_id, first.assignor.directory.remembered_version)
        )
        first.close()
    assert identities[0] == identities[1]


def test_repartitioned_records_are_written_and_read_through_the_created_topic(broker, member):
    first = member()
    runs(ALL, first)
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
        session_timeout_ms=60_000,
        metadata_max_age_ms=200,
    )
    assignor.attach(consumer)

    def polled(count):
        consumer.poll(timeout_ms=50)
        return len(assignor.tasks.active) == count

    until(lambda: polled(3), lambda: "assigned")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    # Longer than a poll: the response arrives between two polls.
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
        session_timeout_ms=60_000,
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
