"""A member with cluster facts, a state directory and queries; the cluster is in memory."""

import threading
from uuid import UUID

import pytest

from assignor import TasksListener, Topology, TopologyError
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.embedding import InternalTopicManager, ProcessDirectory, internal_topic_manager
from assignor.errors import MissingSourceTopic
from assignor.stores import StoreError
from assignor.stores.persisted import PROCESS_NAME
from encoding import AssignorError, HostInfo, TaskId, decode_subscription
from probing.persisted_formats import PersistedSettings
from tests.assignor.adapters.members import (
    Coordinator,
    cluster,
    consumer_with,
    joined,
    on_the_wire,
    with_timers,
)
from tests.assignor.embedding.clusters import CHANGELOG, LIMIT_S, Cluster, until

TOPOLOGY = (
    Topology()
    .add_source("w", topics=["words"])
    .add_processor("c", parents=["w"])
    .add_state_store("counts", processors=["c"])
)
TASKS = [TaskId(0, 0), TaskId(0, 1)]


class Listener(TasksListener):
    def __init__(self):
        self.errors, self.ended = [], 0

    def on_error(self, why):
        self.errors.append(why)

    def on_shutdown_requested(self):
        self.ended += 1


@pytest.fixture
def _no_thread(monkeypatch):
    """Let the test query the cluster, in place of the member's thread."""
    monkeypatch.setattr(InternalTopicManager, "start", lambda _: None)


def query(assignor):
    assignor._driver.cluster._provider._query(0.0)


@pytest.fixture
def member():
    made = []

    def make(cluster=None, *, patience_s=0.0, **options):
        assignor = StreamsAssignor(TOPOLOGY, application_id="app", **options)
        coordinator = Coordinator()
        assignor.attach(consumer_with(coordinator))
        coordinator.timers = with_timers(assignor)
        if cluster is not None:
            assignor._driver.cluster.patience_s = patience_s
            assignor._driver.watch_cluster(lambda: cluster)
        made.append(assignor)
        return assignor, coordinator

    yield make
    for each in made:
        each.close()


def rebalance(*assignors, partitions=2):
    """Run one generation, led by the first member."""
    group = [joined(assignor, f"m{number}", "words") for number, assignor in enumerate(assignors)]
    answers = assignors[0].assign(cluster(words=partitions), group)
    for number, assignor in enumerate(assignors):
        assignor.on_assignment(on_the_wire(answers[f"m{number}"]), 1)


@pytest.mark.usefixtures("_no_thread")
def test_no_task_runs_before_its_changelog_exists_and_then_a_rebalance_is_requested(member):
    cluster = Cluster(words=2)
    assignor, coordinator = member(cluster)
    rebalance(assignor)
    assert not assignor.tasks.active
    query(assignor)
    coordinator.timers.fire()
    assert coordinator.requests == 1
    assert cluster.topics[CHANGELOG] == 2
    rebalance(assignor)
    assert sorted(assignor.tasks.active) == TASKS


def test_topics_created_after_the_leaders_answer_cause_a_rebalance_once_it_has_arrived(member):
    assignor, coordinator = member()
    timers = coordinator.timers
    group = [joined(assignor, "m0", "words")]
    coordinator.busy = True
    answers = assignor.assign(cluster(words=2), group)
    assignor._driver.timer.request_new_answer()
    timers.fire()
    assignor.on_assignment(on_the_wire(answers["m0"]), 1)  # it asks for no follow-up
    coordinator.busy = False
    timers.fire()
    assert coordinator.requests == 1


@pytest.mark.usefixtures("_no_thread")
def test_a_wrong_changelog_is_reported_to_the_listener_and_no_task_is_assigned(member):
    listener = Listener()
    assignor, _ = member(Cluster(words=2, **{CHANGELOG: 7}), listener=listener)
    rebalance(assignor)
    query(assignor)
    rebalance(assignor)
    assert not assignor.tasks.active
    assert "has 7 partitions instead of 2" in listener.errors[0]
    assert assignor.failures == listener.errors


@pytest.mark.usefixtures("clock")
def test_a_cluster_that_is_slow_delays_no_answer(member):
    cluster = Cluster(words=2, **{CHANGELOG: 2})
    cluster.gate.clear()
    assignor, _ = member(cluster)
    rebalance(assignor)
    assert not assignor.tasks.active
    cluster.gate.set()


@pytest.mark.usefixtures("clock")
def test_by_end_offsets_from_before_the_state_was_written_no_task_moves(member, monkeypatch):
    monkeypatch.setattr(internal_topic_manager, "_OFFSETS_FRESH_S", 0.0)
    cluster = Cluster(words=2, **{CHANGELOG: 2})
    leader, _ = member(cluster, patience_s=LIMIT_S, process_id=UUID(int=1))
    cluster.ends = 0
    leader.metadata({"words"})
    until(lambda: leader._driver.cluster.knowledge({"words": 2}).end_offset_sums)
    rebalance(leader)
    assert sorted(leader.tasks.active) == TASKS
    # The leader joins last: it decides before the query of its join has ended.
    cluster.ends = 36_000
    cluster.gate.clear()
    new, _ = member(process_id=UUID(int=2))
    opening = threading.Timer(0.1, cluster.gate.set)
    opening.start()
    rebalance(leader, new)
    opening.join()
    assert sorted(leader.tasks.active) == TASKS
    assert len(new.tasks.standby) == 1, "it is built first, as a warm-up"


@pytest.mark.parametrize("options", [{"internal_topics": None}, {"release": "3.9"}])
def test_the_cluster_is_not_read_for_topics_that_the_application_creates(member, options):
    assignor, _ = member(Cluster(), **options)
    rebalance(assignor)
    assert sorted(assignor.tasks.active) == TASKS


def test_a_request_to_shut_down_reaches_the_listener_of_every_member(member, caplog):
    caplog.set_level("INFO", logger="assignor")
    listeners = [Listener(), Listener()]
    (assignor, _), (other, coordinator) = (
        member(listener=listener, process_id=UUID(int=number + 1))
        for number, listener in enumerate(listeners)
    )
    rebalance(assignor, other)
    assert assignor.tasks.active
    assert other.tasks.active
    other.request_shutdown()
    assert coordinator.requests == 1
    subscription = decode_subscription(bytes(other.metadata({"words"}).user_data))
    assert subscription.error_code == AssignorError.SHUTDOWN_REQUESTED
    rebalance(assignor, other)
    assert (assignor.shutdown_requested, other.shutdown_requested) == (True, True)
    assert [listener.ended for listener in listeners] == [1, 1]
    # It was asked for: no failure.
    assert "the whole group was asked to stop" in caplog.text
    assert [each.failures for each in (assignor, other)] == [[], []]
    assert not assignor.tasks.active
    assert not other.tasks.active


def test_a_state_directory_gives_the_process_id_and_the_version_to_start_with(member, tmp_path):
    newest = PersistedSettings(message_format_version=2)
    place = ProcessDirectory(tmp_path, newest)
    place.remember(9)
    place.close()
    assignor, _ = member(state_dir=tmp_path, message_format_version=2)
    subscription = decode_subscription(bytes(assignor.metadata({"words"}).user_data))
    assert subscription.process_id == place.process_id
    assert subscription.version == 9


def test_the_version_that_the_group_agrees_on_is_kept(member, tmp_path):
    assignor, _ = member(state_dir=tmp_path)
    rebalance(assignor)
    assert assignor.directory.remembered_version == assignor._driver.member.state.used_version


def test_invalid_options_unlock_the_state_directory(tmp_path):
    with pytest.raises(TopologyError):
        StreamsAssignor(Topology(), application_id="app", state_dir=tmp_path)
    lock = ProcessDirectory(tmp_path)._lock
    assert lock.lock_counter == 1
    lock.release()


def test_a_key_is_where_its_task_runs(member):
    (first, _), (second, _) = (
        member(endpoint=f"{name}:1", process_id=UUID(int=number + 1), num_standby_replicas=1)
        for number, name in enumerate(("one", "two"))
    )
    rebalance(first, second)
    rebalance(first, second)
    hosts = {first: HostInfo("one", 1), second: HostInfo("two", 1)}
    for key in (b"a", b"b", b"c", b"d"):
        found = first.hosts_for_key("counts", key)
        task = TaskId(0, found.partition)
        owner, other = (first, second) if task in first.tasks.active else (second, first)
        assert found.active == hosts[owner]
        assert found.standby == (hosts[other],)
        assert second.hosts_for_key("counts", key) == found


def test_an_unknown_store_and_a_store_without_known_input_are_errors(member):
    assignor, _ = member(endpoint="one:1")
    with pytest.raises(TopologyError, match="no state store 'count'; choose from counts"):
        assignor.hosts_for_key("count", b"k")
    with pytest.raises(MissingSourceTopic):
        assignor.hosts_for_key("counts", b"k")


@pytest.mark.parametrize(
    ("is_stable", "sends", "joins", "is_silent"),
    [
        (True, True, False, False),
        (True, False, False, True),
        (False, False, False, False),
        # It rejoins and looks for the coordinator, for any length of time.
        (True, False, True, False),
    ],
)
def test_a_member_is_silent_when_it_counts_as_one_without_heartbeats(
    member, is_stable, sends, joins, is_silent
):
    assignor, coordinator = member()
    coordinator.stable = lambda: is_stable
    coordinator.rejoining = joins
    coordinator._heartbeat_enabled = sends
    assert assignor.is_silent is is_silent


@pytest.mark.kip("384-3", "core")
@pytest.mark.parametrize(
    ("settings", "magic"),
    [
        ({}, b'{"proces'),
        ({"message_format_version": 1}, b'{"proces'),
        ({"message_format_version": 2}, b"SRPROC01"),
        ({"message_format_version": 1, "persistent_metadata_version": 2}, b"SRPROC01"),
    ],
)
def test_the_state_directory_is_written_in_the_message_format_by_default(
    member, tmp_path, settings, magic
):
    member(state_dir=tmp_path, **settings)
    assert (tmp_path / PROCESS_NAME).read_bytes()[:8] == magic


@pytest.mark.kip("384-3", "core")
def test_a_member_with_a_message_format_above_is_refused_at_start(member, tmp_path):
    with pytest.raises(
        StoreError, match=r"message.format.version=2 is above persistent.metadata.version=1"
    ):
        member(state_dir=tmp_path, message_format_version=2, persistent_metadata_version=1)
    assert not (tmp_path / PROCESS_NAME).exists()
