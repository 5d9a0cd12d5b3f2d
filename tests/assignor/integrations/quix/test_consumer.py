"""What the consumer in Quix's place changes between Quix and the client, with both faked."""

from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID
from confluent_kafka import TopicPartition as Position
from quixstreams.exceptions import PartitionAssignmentError

from assignor import TaskId, Topology
from assignor.integrations.quix.consumer import QuixConsumer
from assignor.integrations.quix.state import QuixState

LOGS = {"words": "words-log", "other": "other-log"}


class Client:
    """Records calls; `change` has the callbacks of `subscribe`."""

    def __init__(self, calls):
        self.calls, self.change = calls, {}

    def subscribe(self, topics, **callbacks):
        self.calls.append(("subscribe", topics))
        self.change = callbacks

    def position(self, partitions):
        return partitions

    def __getattr__(self, name):
        return lambda partitions: self.calls.append((name, names(partitions)))


def names(partitions):
    return [f"{each.topic}-{each.partition}" for each in partitions]


class Run:
    """A consumer between a client and an application that has two dataframes with state."""

    def __init__(self):
        topology = Topology()
        for topic, log in LOGS.items():
            topology.add_source(topic, topics=[topic])
            topology.add_processor(f"count {topic}", parents=[topic])
            topology.add_state_store(topic, processors=[f"count {topic}"], changelog_topic=log)
        self.calls, self.recoveries = [], {}
        self.manager = SimpleNamespace(
            partitions=self.recoveries, recovering=False, _position_cache={}
        )
        self.app = SimpleNamespace(
            _failed=False,
            _processing_context=SimpleNamespace(
                commit_checkpoint=lambda **_: self.calls.append(("checkpoint",)),
                init_checkpoint=lambda: self.calls.append(("new checkpoint",)),
            ),
            _state_manager=SimpleNamespace(_recovery_manager=self.manager),
        )
        copies = SimpleNamespace(
            run_here=lambda tasks: self.calls.append(("runs", sorted(map(str, tasks)))),
            turn=lambda: None,
            close=lambda: self.calls.append(("closed",)),
        )
        self.client = Client(self.calls)
        state = QuixState({}, {}, topology.subtopologies("app"))
        self.consumer = QuixConsumer(self.app, self.client, state, copies)
        self.consumer.subscribe(
            topics=["words", "other", *LOGS.values()],
            on_assign=lambda _, new: self.called("on_assign", new),
            on_revoke=lambda _, gone: self.called("on_revoke", gone),
            on_lost=lambda _, gone: self.called("on_lost", gone),
        )
        self.during = {}

    def called(self, name, partitions):
        self.calls.append((name, names(partitions)))
        self.during.get(name, lambda: None)()

    def change(self, name, *partitions):
        """Call back as the client does, and return what was called by that."""
        self.calls.clear()
        self.client.change[name](None, [Position(topic, number) for topic, number in partitions])
        return list(self.calls)


@pytest.fixture
def run():
    return Run()


def test_the_group_gets_the_inputs_only(run):
    assert run.calls == [("subscribe", ["other", "words"])]


def test_new_partitions_come_with_their_changelogs_and_are_added(run):
    assert run.change("on_assign", ("words", 1)) == [
        ("runs", ["1_1"]),
        ("on_assign", ["words-1", "words-log-1"]),
    ]
    run.calls.clear()
    run.consumer.assign([Position("words", 1), Position("words-log", 1)])
    assert run.calls == [
        ("incremental_assign", ["words-log-1"]),
        ("pause", ["words-log-1"]),
        ("incremental_assign", ["words-1"]),
    ]


def test_a_rebalance_that_brings_nothing_is_not_passed_on(run):
    assert run.change("on_assign") == []


def test_the_checkpoint_is_written_to_all_stores_before_quix_revokes_some(run):
    run.change("on_assign", ("words", 1), ("other", 1))
    assert run.change("on_revoke", ("words", 1)) == [
        ("checkpoint",),
        ("on_revoke", ["words-1", "words-log-1"]),
        ("incremental_unassign", ["words-1", "words-log-1"]),
        ("runs", ["0_1"]),
    ]


def test_a_failed_application_commits_nothing(run):
    run.change("on_assign", ("words", 1))
    run.app._failed = True
    assert ("checkpoint",) not in run.change("on_revoke", ("words", 1))


def test_a_failed_commit_ends_the_application_and_its_stores_are_closed(run):
    run.change("on_assign", ("words", 1))

    def failing(**_):
        raise ValueError("not committed")

    run.app._processing_context.commit_checkpoint = failing
    # Quix never ignores errors of this class, whatever the application's error callback says.
    with pytest.raises(PartitionAssignmentError):
        run.change("on_revoke", ("words", 1))
    assert [call[0] for call in run.calls] == ["on_revoke", "incremental_unassign", "runs"]


def test_the_recovery_of_a_store_that_stays_goes_on(run):
    run.change("on_assign", ("words", 1), ("other", 1))
    staying, going = object(), object()
    run.manager.recovering = True
    run.recoveries[1] = {"other-log": staying, "words-log": going}
    run.during["on_revoke"] = run.recoveries.clear  # as Quix does: by the number of the partition
    assert run.change("on_revoke", ("words", 1))[-1] == ("resume", ["other-log-1"])
    assert run.recoveries == {1: {"other-log": staying}}


def test_a_recovery_that_has_not_begun_is_kept_and_nothing_of_it_is_fetched(run):
    run.change("on_assign", ("words", 1), ("other", 1))
    staying, going = object(), object()
    run.recoveries[1] = {"other-log": staying, "words-log": going}
    run.during["on_revoke"] = run.recoveries.clear
    assert "resume" not in [call[0] for call in run.change("on_revoke", ("words", 1))]
    assert run.recoveries == {1: {"other-log": staying}}, "it seeks and resumes when it begins"


def message(topic, partition, offset=0):
    return SimpleNamespace(topic=lambda: topic, partition=lambda: partition, offset=lambda: offset)


def test_changelogs_are_assigned_at_their_ends(run):
    given = []
    run.client.incremental_assign = given.extend
    run.consumer.assign([Position("words", 1), Position("words-log", 1)])
    offsets = {each.topic: each.offset for each in given}
    assert offsets == {"words": OFFSET_INVALID, "words-log": OFFSET_END}


def test_quix_streams_1146_no_record_of_a_changelog_is_passed_on_outside_a_recovery(run):
    run.change("on_assign", ("words", 1))
    word, change = message("words", 1), message("words-log", 1)
    run.client.poll = lambda _: change
    run.client.consume = lambda *_: [change, word]
    assert run.consumer.poll(1.0) is None
    assert run.calls[-1] == ("pause", ["words-log-1"])
    assert run.consumer.consume(2, 1.0) == [word]
    run.manager.recovering = True
    assert run.consumer.poll(1.0) is change
    run.client.poll = lambda _: word
    assert run.consumer.poll(1.0) is word, "Quix itself pauses and rewinds it"


def test_a_recovery_ends_once_all_of_its_records_are_read(run):
    run.change("on_assign", ("words", 1))
    run.manager.recovering = True
    run.recoveries[1] = {"words-log": SimpleNamespace(changelog_highwater=7)}
    run.manager._position_cache["words-log:1"] = "of before"
    at, waits = [Position("words-log", 1, 5)], []

    def poll(wait_s):
        waits.append(wait_s)
        at[0].offset += 1  # a record is read by the client, or was applied just now

    run.client.poll = poll
    run.client.position = lambda _: at
    assert run.consumer.poll(1000.0) is None
    assert len(waits) == 2
    assert max(waits) < 1.0
    assert run.manager._position_cache == {}, "Quix looks at the position again"


def test_a_position_that_is_not_known_yet_does_not_end_a_recovery(run):
    run.change("on_assign", ("words", 1))
    run.manager.recovering = True
    run.recoveries[1] = {"words-log": SimpleNamespace(changelog_highwater=7)}
    run.client.poll = lambda _: None
    run.client.position = lambda _: [Position("words-log", 1, OFFSET_INVALID)]
    assert run.consumer.poll(0.01) is None, "as long as Quix waits"


def test_a_recovery_that_quix_goes_on_with_is_left_alone(run):
    run.change("on_assign", ("words", 1), ("other", 2))
    run.recoveries[2] = {"other-log": object()}
    assert ("resume", ["other-log-2"]) not in run.change("on_revoke", ("words", 1))


def test_what_was_processed_of_lost_partitions_is_never_written(run):
    run.change("on_assign", ("words", 1))
    assert run.change("on_lost", ("words", 1)) == [
        ("new checkpoint",),
        ("on_lost", ["words-1", "words-log-1"]),
        ("incremental_unassign", ["words-1", "words-log-1"]),
        ("runs", []),
    ]


def test_other_methods_are_those_of_the_client(run):
    partitions = [Position("words", 0)]
    assert run.consumer.position(partitions) is partitions


def test_copies_are_closed_even_if_the_client_fails_to_close(run):
    def failing():
        raise ValueError("not closed")

    run.client.close = failing
    with pytest.raises(ValueError, match="not closed"):
        run.consumer.close()
    assert run.calls[-1] == ("closed",)


def test_an_application_without_changelogs_has_nothing_to_recover(run):
    run.app._state_manager._recovery_manager = None
    run.change("on_assign", ("words", 1))
    assert run.change("on_revoke", ("words", 1))[-1] == ("runs", [])
    assert run.consumer._tasks == frozenset[TaskId]()
