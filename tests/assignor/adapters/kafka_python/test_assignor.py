"""The kafka-python adapter with kafka-python's protocol values, without a network."""

import asyncio
from types import SimpleNamespace

import pytest
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
)

from assignor import ConfigError, TasksListener, Topology
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.errors import CopartitionMismatch, LeaderRefused
from assignor.observe import (
    AnswerHandled,
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    RejoinRequested,
    SubscriptionWritten,
)
from encoding import Assignment, TaskId, decode_subscription, encode_assignment
from probing.versions import START_VERSION
from tests.assignor.adapters.members import (
    Coordinator,
    Listener,
    cluster,
    followups,
    joined,
    made,
    on_the_wire,
)
from tests.assignor.rebalance.groups import TOPOLOGY
from tests.versions import NEWEST


def test_a_rebalance_of_two_through_the_clients_own_bytes():
    (leader, _, seen), (follower, _, _) = made(number=1), made(number=2)
    answers = leader.assign(cluster(lines=4), [joined(leader, "m1"), joined(follower, "m2")])
    leader.on_assignment(on_the_wire(answers["m1"]), 1)
    follower.on_assignment(on_the_wire(answers["m2"]), 1)
    assert sorted([*leader.tasks.active, *follower.tasks.active]) == [
        TaskId(0, p) for p in range(4)
    ]
    kinds = [type(event) for event in seen]
    assert kinds == [SubscriptionWritten, AnswersDecided, AssignmentTaken, AnswerHandled]
    assert (seen[0].version, seen[0].latest_supported_version) == (START_VERSION, NEWEST)


def test_the_subscription_names_the_topics_sorted_and_owns_nothing_under_eager():
    assignor, _, _ = made()
    metadata = assignor.metadata({"b", "a"})
    assert list(metadata.topics) == ["a", "b"]
    assert list(metadata.owned_partitions) == []


@pytest.mark.parametrize(
    ("release", "version"), [("native", 1), ("2.3.1", 1), ("3.3.2", 1), ("3.4.0", 3), ("4.3", 3)]
)
def test_a_member_writes_the_consumer_protocol_of_its_release(release, version):
    assignor, _, _ = made(release=release)
    written = assignor.metadata({"lines"})
    assert int.from_bytes(written.encode()[:2], "big") == version
    read = decode_subscription(bytes(written.user_data))
    assert read.version == min(read.latest_supported_version, START_VERSION)


def test_tasks_are_revoked_before_the_next_join_and_still_reported_as_running():
    listener = Listener()
    assignor, _, _ = made(listener=listener)
    answers = assignor.assign(cluster(lines=2), [joined(assignor, "m")])
    assignor.on_assignment(on_the_wire(answers["m"]), 1)
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    again = assignor.metadata({"lines"})
    assert listener.calls == [("assigned", tasks), ("revoked", tasks)]
    assert list(decode_subscription(bytes(again.user_data)).prev_tasks) == tasks
    assignor.metadata({"lines"})
    assert len(listener.calls) == 2, "a retried join revokes nothing twice"


def test_a_member_that_fell_out_of_the_group_stops_claiming_its_tasks():
    assignor, coordinator, _ = made()
    answers = assignor.assign(cluster(lines=2), [joined(assignor, "m")])
    assignor.on_assignment(on_the_wire(answers["m"]), 1)
    coordinator._generation.generation_id = -1
    assert not decode_subscription(bytes(assignor.metadata({"lines"}).user_data)).prev_tasks


def answer(version, common, **fields):
    value = Assignment(version=version, commonly_supported_version=common, **fields)
    return ConsumerProtocolAssignment(
        version=1, assigned_partitions=[], user_data=encode_assignment(value)
    )


def test_an_answer_in_a_lower_version_makes_it_rejoin_at_once_with_other_bytes():
    assignor, coordinator, seen = made()
    before = bytes(assignor.metadata({"lines"}).user_data)
    assignor.on_assignment(answer(10, 10), 1)
    assert coordinator.requests == 1
    (rejoin,) = [event for event in seen if isinstance(event, RejoinRequested)]
    assert (rejoin.used_version_before, rejoin.used_version_after) == (11, 10)
    assert rejoin.for_version
    after = bytes(assignor.metadata({"lines"}).user_data)
    assert decode_subscription(after).version == 10
    assert after != before


def test_nothing_is_raised_for_an_answer_that_cannot_be_read_and_it_asks_again_later():
    listener = Listener()
    assignor, coordinator, _ = made(listener=listener)
    garbage = ConsumerProtocolAssignment(version=1, assigned_partitions=[], user_data=b"\x00")
    assignor.on_assignment(garbage, 1)
    assert "unreadable" in assignor.failures[0]
    assert [kind for kind, _ in listener.calls] == ["assigned", "error"]
    assert assignor.failed is None
    assert coordinator.requests == 0
    coordinator.timers.fire()
    assert coordinator.requests == 1


def test_an_emulated_release_ends_at_an_answer_that_it_cannot_read():
    assignor, _, seen = made(release="0.10.2")
    assignor.on_assignment(answer(3, 3), 1)
    assert "version 3" in assignor.failed
    assert [event for event in seen if isinstance(event, MemberFailed)]


def test_an_emulated_leader_ends_at_a_version_it_does_not_know_and_sends_nothing():
    old, _, seen = made(number=1, release="0.10.2")
    new, _, _ = made(number=2, release="2.0")
    with pytest.raises(LeaderRefused, match=r"upgrade\.from=0\.10\.2"):
        old.assign(cluster(lines=2), [joined(old, "m1"), joined(new, "m2")])
    assert "version=3" in old.failed
    assert isinstance(seen[-1], MemberFailed)


def test_topics_that_do_not_fit_are_reported_to_the_listener_and_nothing_is_sent():
    topology = (
        Topology()
        .add_source("s", topics=["a", "b"])
        .add_processor("p", parents=["s"])
        .copartition("a", "b")
    )
    listener = Listener()
    assignor, _, _ = made(topology=topology, listener=listener)
    with pytest.raises(CopartitionMismatch):
        assignor.assign(cluster(a=1, b=2), [joined(assignor, "m")])
    assert "a has 1, b has 2" in listener.calls[-1][1]


def test_unknown_partition_counts_give_an_empty_answer_without_an_error():
    assignor, _, _ = made()
    answers = assignor.assign(cluster(), [joined(assignor, "m")])
    assignor.on_assignment(on_the_wire(answers["m"]), 1)
    assert assignor.failures == []
    assert not assignor.tasks.active


def test_a_listener_or_observer_that_raises_disturbs_nobody():
    class Broken(TasksListener):
        def on_tasks_assigned(self, active, standby):
            raise ValueError("application bug")

        def task_offsets(self):
            raise ValueError("no offsets today")

    assignor, _, _ = made(listener=Broken())
    assignor._driver.reporter.observer = lambda _: 1 / 0
    first = assignor.metadata({"lines"})
    assert decode_subscription(bytes(first.user_data)).version == 11
    assignor.on_assignment(answer(11, 11), 1)
    assert any("application bug" in why for why in assignor.failures)


def test_settings_have_kafkas_names_and_unknown_ones_are_refused():
    with pytest.raises(ConfigError, match=r"num\.standby\.replicas|num_standby_replicas"):
        made(num_standby_replica=1)


class Joining(Coordinator):
    """A coordinator that answers joins at once, with their number."""

    def __init__(self, session_timeout_ms=6000):
        super().__init__()
        self.config = {"session_timeout_ms": session_timeout_ms}
        self.joins, self.failure, self.answer = 0, None, None

    async def _do_join_and_sync_async(self):
        self.busy = True
        self.joins += 1
        if self.failure:
            raise self.failure
        return self.answer or of_join(self.joins)


def of_join(number):
    user_data = b"%d" % number
    return ConsumerProtocolAssignment(
        version=1, assigned_partitions=[("lines", [0])], user_data=user_data
    ).encode()


def attached(coordinator, **options):
    made(coordinator=coordinator, **options)
    return lambda: asyncio.run(coordinator._do_join_and_sync_async())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\0", "no assignment"),
        (b"\0\1\xff\xff\xff\xff\xff\xff\xff\xff", "no assignment"),
        (b"\0\1\x7f\xff\xff\xff", "no assignment"),
        (of_join(1), "not subscribed to"),
    ],
)
def test_bytes_that_the_client_would_raise_for_become_an_answer_without_anything(answer, why):
    listener = Listener()
    coordinator = Joining()
    coordinator._subscription = SimpleNamespace(subscription={"other"})
    assignor, *_ = made(coordinator=coordinator, listener=listener)
    coordinator.answer = answer
    taken = ConsumerProtocolAssignment.decode(asyncio.run(coordinator._do_join_and_sync_async()))
    assert (taken.partitions(), bytes(taken.user_data)) == ([], b"")
    assignor.on_assignment(taken, 1)
    (sentence,) = assignor.failures
    assert why in sentence
    assert listener.calls[-1] == ("error", sentence)
    assignor.on_assignment(taken, 2)
    assert "unreadable" in assignor.failures[-1], "the reason is that of one answer"
    assignor.close()


def test_an_answer_that_nobody_took_is_taken_by_the_next_poll_and_only_by_one():
    coordinator = Joining()
    join = attached(coordinator)
    assert [join(), join(), join()] == [of_join(1), of_join(1), of_join(2)]
    coordinator.busy = False  # taken
    assert join() == of_join(3)


def test_a_join_for_changed_metadata_is_one_that_the_next_poll_looks_for():
    coordinator = Joining()
    join = attached(coordinator)
    assert coordinator.requests == 0
    join()
    assert coordinator.requests == 1


def test_an_answer_is_not_kept_beyond_its_generation_or_session():
    coordinator = Joining()
    join = attached(coordinator)
    join()
    coordinator._generation = SimpleNamespace(generation_id=2)
    assert join() == of_join(2)
    late = attached(Joining(session_timeout_ms=0))
    assert [late(), late()] == [of_join(1), of_join(2)]


def test_a_join_that_failed_is_made_again():
    coordinator = Joining()
    join = attached(coordinator)
    coordinator.failure = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        join()
    coordinator.failure = None
    assert join() == of_join(2)


def test_attach_refuses_what_is_no_group_consumer():
    assignor = StreamsAssignor(TOPOLOGY)
    with pytest.raises(TypeError, match="made with a group_id"):
        assignor.attach(SimpleNamespace(_coordinator=None))


def test_a_follow_up_waits_until_no_rebalance_runs():
    coordinator = Coordinator()
    coordinator.busy = True
    timer, timers = followups(coordinator)
    timer.schedule(0)
    timers.fire()
    assert coordinator.requests == 0
    coordinator.busy = False
    timers.fire()  # it tried again (KAFKA-14382)
    assert coordinator.requests == 1
    assert timers.calls == []
    timer.close()
    timer.schedule(0)
    assert timers.calls == []


def test_a_follow_up_that_was_replaced_or_dropped_never_asks_even_if_it_fires():
    coordinator = Coordinator()
    timer, timers = followups(coordinator)
    timers.is_late = True
    timer.schedule(0)
    timer.schedule(0)
    timers.fire()
    assert coordinator.requests == 1
    for drop in (timer.clear, timer.close):
        timer.schedule(0)
        drop()
        timers.fire()
    assert coordinator.requests == 1


def test_a_strategy_that_fails_moves_nothing_and_is_asked_again_after_its_back_off():
    asked = []

    def failing(state):
        asked.append(state)
        raise ZeroDivisionError("by nothing")

    listener = Listener()
    assignor, coordinator, seen = made(strategy=failing, listener=listener)
    for generation in (1, 2):
        answers = assignor.assign(cluster(lines=4), [joined(assignor, "m1")])
        assignor.on_assignment(on_the_wire(answers["m1"]), generation)
        assert sorted(assignor.tasks.active) == [TaskId(0, p) for p in range(4)]
    # The second time is within the back-off, and a rebalance is scheduled for its end.
    assert len(asked) == 1
    coordinator.timers.fire()
    assert coordinator.requests == 1
    warnings = [w for event in seen if isinstance(event, AnswersDecided) for w in event.warnings]
    line = failing.__code__.co_firstlineno + 2
    raised = f"ZeroDivisionError: by nothing (test_assignor.py, line {line})"
    assert len([w for w in warnings if f"{raised} (once)" in w]) == 2
