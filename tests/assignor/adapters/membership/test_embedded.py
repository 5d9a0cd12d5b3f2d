"""A member and its surroundings, with kafka-python's values and a cluster in memory."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor import MissingSourceTopic, TasksListener, Topology, TopologyError
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.embedding import ProcessDirectory
from assignor.stores import StoreError
from assignor.stores.persisted import PROCESS_NAME
from encoding import AssignorError, HostInfo, TaskId, decode_subscription
from probing.persisted_formats import PersistedSettings
from tests.assignor.adapters.members import Coordinator, cluster, followups, joined, on_the_wire
from tests.assignor.embedding.clusters import CHANGELOG, Cluster, until

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
def member():
    made = []

    def make(cluster=None, **options):
        assignor = StreamsAssignor(TOPOLOGY, application_id="app", **options)
        coordinator = Coordinator()
        assignor.attach(SimpleNamespace(_coordinator=coordinator))
        if cluster is not None:
            assignor._watch_cluster(lambda: cluster)
        made.append(assignor)
        return assignor, coordinator

    yield make
    for one in made:
        one.close()


def rebalance(*assignors, partitions=2):
    """One generation, led by the first."""
    group = [joined(one, f"m{number}", "words") for number, one in enumerate(assignors)]
    answers = assignors[0].assign(cluster(words=partitions), group)
    for number, one in enumerate(assignors):
        one.on_assignment(on_the_wire(answers[f"m{number}"]), 1)


def test_no_task_before_its_changelog_and_a_rebalance_as_soon_as_it_is_there(member):
    cluster = Cluster(words=2)
    one, coordinator = member(cluster)
    rebalance(one)
    assert not one.tasks.active
    until(lambda: coordinator.requests)
    assert cluster.topics[CHANGELOG] == 2
    rebalance(one)
    assert sorted(one.tasks.active) == TASKS


def test_topics_that_come_behind_the_leaders_answer_are_asked_for_once_it_has_arrived(member):
    one, coordinator = member()
    one._timer, timers = followups(coordinator)
    group = [joined(one, "m0", "words")]
    coordinator.busy = True
    answers = one.assign(cluster(words=2), group)
    one._answer_again()
    timers.fire()
    one.on_assignment(on_the_wire(answers["m0"]), 1)  # it says that no follow-up is wanted
    coordinator.busy = False
    timers.fire()
    assert coordinator.requests == 1


def test_a_wrong_changelog_is_told_to_the_listener_and_hands_nothing_out(member):
    listener = Listener()
    one, _ = member(Cluster(words=2, **{CHANGELOG: 7}), listener=listener)
    rebalance(one)
    until(lambda: listener.errors)
    rebalance(one)
    assert not one.tasks.active
    assert "has 7 partitions, 2 are needed" in listener.errors[0]
    assert one.failures == listener.errors


def test_a_cluster_that_is_slow_delays_no_answer(member):
    cluster = Cluster(words=2, **{CHANGELOG: 2})
    cluster.gate.clear()
    one, _ = member(cluster)
    rebalance(one)
    assert not one.tasks.active
    cluster.gate.set()


@pytest.mark.parametrize("options", [{"internal_topics": None}, {"release": "3.9"}])
def test_nobody_looks_where_topics_are_somebody_elses_care(member, options):
    one, _ = member(Cluster(), **options)
    rebalance(one)
    assert sorted(one.tasks.active) == TASKS


def test_the_whole_group_hears_that_it_shall_stop(member):
    listeners = [Listener(), Listener()]
    (one, _), (two, coordinator) = (
        member(listener=listener, process_id=UUID(int=number + 1))
        for number, listener in enumerate(listeners)
    )
    rebalance(one, two)
    assert one.tasks.active
    assert two.tasks.active
    two.request_shutdown()
    assert coordinator.requests == 1
    said = decode_subscription(bytes(two.metadata({"words"}).user_data))
    assert said.error_code == AssignorError.SHUTDOWN_REQUESTED
    rebalance(one, two)
    assert (one.shutdown_requested, two.shutdown_requested) == (True, True)
    assert [listener.ended for listener in listeners] == [1, 1]
    assert not one.tasks.active
    assert not two.tasks.active


def test_a_state_directory_gives_the_process_id_and_the_version_to_start_with(member, tmp_path):
    newest = PersistedSettings(message_format_version=2)
    place = ProcessDirectory(tmp_path, newest)
    place.remember(9)
    place.close()
    one, _ = member(state_dir=tmp_path, message_format_version=2)
    said = decode_subscription(bytes(one.metadata({"words"}).user_data))
    assert said.process_id == place.process_id
    assert said.version == 9


def test_the_version_that_the_group_agrees_on_is_kept(member, tmp_path):
    one, _ = member(state_dir=tmp_path)
    rebalance(one)
    assert one.directory.remembered_version == one._member.state.used_version


def test_settings_that_cannot_be_leave_the_directory_to_others(tmp_path):
    with pytest.raises(TopologyError):
        StreamsAssignor(Topology(), application_id="app", state_dir=tmp_path)
    lock = ProcessDirectory(tmp_path)._lock
    assert lock.lock_counter == 1
    lock.release()


def test_a_key_is_where_its_task_runs(member):
    (one, _), (two, _) = (
        member(endpoint=f"{name}:1", process_id=UUID(int=number + 1), num_standby_replicas=1)
        for number, name in enumerate(("one", "two"))
    )
    rebalance(one, two)
    rebalance(one, two)
    hosts = {one: HostInfo("one", 1), two: HostInfo("two", 1)}
    for key in (b"a", b"b", b"c", b"d"):
        found = one.hosts_for_key("counts", key)
        task = TaskId(0, found.partition)
        owner, other = (one, two) if task in one.tasks.active else (two, one)
        assert found.active == hosts[owner]
        assert found.standby == (hosts[other],)
        assert two.hosts_for_key("counts", key) == found


def test_an_unknown_store_and_a_store_without_known_input_are_sentences(member):
    one, _ = member(endpoint="one:1")
    with pytest.raises(TopologyError, match="no state store 'count'; known: counts"):
        one.hosts_for_key("count", b"k")
    with pytest.raises(MissingSourceTopic):
        one.hosts_for_key("counts", b"k")


@pytest.mark.parametrize(
    ("is_stable", "sends", "joins", "is_silent"),
    [
        (True, True, False, False),
        (True, False, False, True),
        (False, False, False, False),
        # It joins anew and looks for the coordinator, which may take as long as it likes.
        (True, False, True, False),
    ],
)
def test_a_member_is_silent_when_it_counts_as_one_without_heartbeats(
    member, is_stable, sends, joins, is_silent
):
    one, coordinator = member()
    coordinator.stable = lambda: is_stable
    coordinator.rejoining = joins
    coordinator._heartbeat_enabled = sends
    assert one.is_silent is is_silent


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
def test_the_state_directory_is_written_in_the_message_format_unless_told_otherwise(
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
