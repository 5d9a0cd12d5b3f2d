"""What no answer, listener or observer does to a member: end it, freeze it, hide its tasks."""

import asyncio
from types import SimpleNamespace

import pytest

from assignor import RebalanceHook
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from encoding import (
    Assignment,
    NativeAssignment,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from tests.assignor.adapters.members import Listener, made

LINES = tuple(TopicPartition("lines", number) for number in range(2))
TASKS = tuple(TaskId(0, number) for number in range(2))


class Delays:
    """Starts no timer and keeps for how many seconds each would have run."""

    def __init__(self):
        self.seconds = []

    def __call__(self, delay_s, call):
        self.seconds.append(delay_s)
        return SimpleNamespace(cancel=lambda: None)


def member(**options):
    """An assignor, its coordinator, and the delays of its timer."""
    assignor, coordinator, seen = made(**options)
    delays = Delays()
    assignor._timer = FollowupTimer(coordinator.request_rejoin, lambda: False, delays)
    return assignor, coordinator, delays, seen


def answer(version=11, common=11, tasks=TASKS, **fields):
    value = Assignment(
        version=version, commonly_supported_version=common, active_tasks=tasks, **fields
    )
    return encode_assignment(value)


GOOD = answer()
UNTAKEABLE = {
    "empty": b"",
    "cut": GOOD[:20],
    "a version to come": b"\0\0\0\x0c" * 9,
    "no version": b"\xff" * 12,
    "another topology": answer(tasks=(TaskId(0, 0), TaskId(4, 1))),
    "a named topology": answer(tasks=(TaskId(0, 0), TaskId(0, 1, "named"))),
}


@pytest.mark.parametrize("name", UNTAKEABLE)
def test_an_answer_that_cannot_be_taken_is_asked_for_again_however_it_fails(name):
    listener = Listener()
    assignor, _, delays, _ = member(listener=listener)
    for generation in range(1, 9):
        assignor.metadata({"lines"})
        assignor._take(LINES, UNTAKEABLE[name], generation)
    assert delays.seconds == [1, 2, 4, 8, 16, 32, 60, 60]
    assert assignor.failed is None
    assert [kind for kind, _ in listener.calls].count("error") == 8
    before = decode_subscription(bytes(assignor.metadata({"lines"}).user_data))
    assignor._take(LINES, GOOD, 9)
    assert tuple(assignor.tasks.active) == TASKS
    assert before.version == 11
    assignor._take(LINES, b"", 10)
    assert delays.seconds[-1] == 1, "an answer that was taken ends the back-off"


def test_an_exception_that_nobody_thought_of_is_an_answer_that_cannot_be_taken(monkeypatch):
    listener = Listener()
    assignor, _, delays, _ = member(listener=listener)
    assignor._take(LINES, GOOD, 1)

    def broken(*_, **__):
        raise RecursionError("\x1b[31mtoo deep")

    monkeypatch.setattr(assignor._member, "receive", broken)
    assignor._take(LINES, GOOD, 2)
    assert delays.seconds == [1]
    assert "RecursionError" in listener.calls[-1][1]
    assert "\x1b" not in listener.calls[-1][1]
    assert not assignor.tasks.active
    monkeypatch.undo()
    assignor._take([(None, 0), ("lines", 0)], answer(), 3)
    assert delays.seconds == [1, 2]


def test_a_topology_name_on_one_of_two_tasks_keeps_no_observer_from_sorting_them():
    # A member without a topology takes named tasks; observing them must not fail.
    ends = []

    class Hook(RebalanceHook):
        def on_rebalance_end(self, end):
            ends.append(end)

    listener = Listener()
    listener.on_tasks_assigned = lambda active, _: listener.calls.append(tuple(active))
    assignor, _, _, seen = member(listener=listener, hooks=[Hook()])
    assignor._member._subtopologies = ()
    tasks = (TaskId(0, 1), TaskId(0, 1, "named"))
    assignor._take(LINES, answer(tasks=tasks), 1)
    assert listener.calls == [tasks]
    assert seen[0].active_tasks == tasks
    assert ends[0].gained_tasks == tasks
    assert assignor.failures == []


@pytest.mark.parametrize("error", [ValueError, SystemExit, RecursionError])
def test_whatever_a_callback_raises_the_tasks_are_told_and_the_follow_up_is_asked_for(error):
    told = []

    def broken(*_):
        raise error("a user's own")

    class Hook(RebalanceHook):
        on_rebalance_end = broken

    listener = Listener()
    listener.on_tasks_assigned = lambda active, _: told.append(tuple(active))
    assignor, coordinator, _, _ = member(listener=listener, hooks=[Hook()])
    assignor._observer = broken
    assignor._take(LINES, answer(next_rebalance_ms=0), 1)
    assert told == [TASKS]
    assert coordinator.requests == 1
    listener.on_tasks_assigned = broken
    listener.on_error = broken
    assignor._take(LINES, answer(next_rebalance_ms=0), 2)
    assert coordinator.requests == 2
    assignor._take(LINES, b"", 3)
    assert assignor._timer._timer is not None
    assert any("a user's own" in failure for failure in assignor.failures)


def test_a_listener_knows_its_tasks_before_an_observer_hears_of_them():
    order = []
    listener = Listener()
    listener.on_tasks_assigned = lambda *_: order.append("listener")
    assignor, _, _, _ = member(listener=listener)
    assignor._observer = lambda event: order.append(type(event).__name__)
    assignor._take(LINES, answer(next_rebalance_ms=0), 1)
    assert order == ["listener", "AssignmentTaken", "RejoinRequested", "AnswerHandled"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, GeneratorExit, MemoryError, asyncio.CancelledError]
)
def test_what_is_nobody_s_failure_passes(error):
    def interrupted(*_):
        raise error

    listener = Listener()
    listener.on_tasks_assigned = interrupted
    assignor, _, _, _ = member(listener=listener)
    with pytest.raises(error):
        assignor._take(LINES, GOOD, 1)


def hosts_without_me():
    return answer(partitions_by_host={("there", 1): LINES})


def test_an_endpoint_that_stays_out_of_the_routing_is_asked_for_at_once_only_once():
    listener = Listener()
    assignor, coordinator, delays, _ = member(endpoint="here:1", listener=listener)
    for generation in range(1, 6):
        assignor._take(LINES, hosts_without_me(), generation)
    assert coordinator.requests == 1
    assert delays.seconds == [1, 2, 4, 8]
    assert "2 answers in a row" in next(why for kind, why in listener.calls if kind == "error")
    assignor._take(LINES, answer(partitions_by_host={("here", 1): LINES}), 6)
    assignor._take(LINES, hosts_without_me(), 7)
    assert coordinator.requests == 2


@pytest.mark.parametrize("next_rebalance_ms", [0, -5, 1])
def test_a_leader_that_always_wants_the_next_rebalance_now_is_obeyed_for_a_while(next_rebalance_ms):
    assignor, coordinator, delays, _ = member()
    for generation in range(30):
        assignor._take(LINES, answer(next_rebalance_ms=next_rebalance_ms), generation)
        assert tuple(assignor.tasks.active) == TASKS
    at_once = coordinator.requests + delays.seconds.count(0)
    assert at_once == 16
    assert [one for one in delays.seconds if one] == [1, 2, 4, 8, 16, 32, *[60] * 8]


def test_a_level_that_a_member_cannot_meet_still_ends_it():
    assignor, _, delays, _ = member()
    native = NativeAssignment(
        sizes=(2,),
        partition_counts={"lines": 2},
        feature_levels={"assignment.protocol": 10_000},
        feature_epoch=3,
    )
    assignor._take(LINES, answer(native=native), 1)
    assert assignor.failed is not None
    assert delays.seconds == []
