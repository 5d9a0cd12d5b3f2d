"""No answer, listener or observer ends a member, blocks it or hides its tasks."""

import asyncio

import pytest

from assignor import RebalanceHook
from assignor.rebalance.forms.own import OwnTopology
from assignor.topology import plain
from encoding import (
    Assignment,
    NativeAssignment,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from tests.assignor.adapters.members import Listener
from tests.assignor.adapters.membership.clients import connected

LINES = tuple(TopicPartition("lines", number) for number in range(2))
TASKS = tuple(TaskId(0, number) for number in range(2))


def answer(version=11, common=11, tasks=TASKS, **fields):
    value = Assignment(
        version=version, commonly_supported_version=common, active_tasks=tasks, **fields
    )
    return encode_assignment(value)


VALID = answer()
INVALID = {
    "empty": b"",
    "cut": VALID[:20],
    "a version to come": b"\0\0\0\x0c" * 9,
    "no version": b"\xff" * 12,
    "another topology": answer(tasks=(TaskId(0, 0), TaskId(4, 1))),
    "a named topology": answer(tasks=(TaskId(0, 0), TaskId(0, 1, "named"))),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_answer_that_cannot_be_taken_is_asked_for_again_however_it_fails(name):
    listener = Listener()
    membership, client, _ = connected(listener=listener)
    for generation in range(1, 9):
        membership.join()
        membership.take(LINES, INVALID[name], generation)
    assert client.delays_s == [1, 2, 4, 8, 16, 32, 60, 60]
    assert membership.reporter.failed is None
    assert [kind for kind, _ in listener.calls].count("error") == 8
    before = decode_subscription(membership.join())
    membership.take(LINES, VALID, 9)
    assert tuple(membership.member.held.active) == TASKS
    assert before.version == 11
    membership.take(LINES, b"", 10)
    assert client.delays_s[-1] == 1, "an answer that was taken ends the back-off"


def test_an_unexpected_exception_is_an_answer_that_cannot_be_taken(monkeypatch):
    listener = Listener()
    membership, client, _ = connected(listener=listener)
    membership.take(LINES, VALID, 1)

    def broken(*_, **__):
        raise RecursionError("\x1b[31mtoo deep")

    monkeypatch.setattr(membership.member, "receive", broken)
    membership.take(LINES, VALID, 2)
    assert client.delays_s == [1]
    assert "RecursionError" in listener.calls[-1][1]
    assert "\x1b" not in listener.calls[-1][1]
    assert not membership.member.held.active
    monkeypatch.undo()
    membership.take([(None, 0), ("lines", 0)], answer(), 3)
    assert client.delays_s == [1, 2]


def test_a_topology_name_on_one_of_two_tasks_keeps_no_observer_from_sorting_them():
    # A member without a topology accepts named tasks; observing them must not fail.
    ends = []

    class Hook(RebalanceHook):
        def on_rebalance_end(self, end):
            ends.append(end)

    listener = Listener()
    listener.on_tasks_assigned = lambda active, _: listener.calls.append(tuple(active))
    membership, _, seen = connected(listener=listener, hooks=[Hook()])
    membership.member.topology = OwnTopology(plain(()))
    tasks = (TaskId(0, 1), TaskId(0, 1, "named"))
    membership.take(LINES, answer(tasks=tasks), 1)
    assert listener.calls == [tasks]
    assert seen[0].active_tasks == tasks
    assert ends[0].gained_tasks == tasks
    assert membership.reporter.failures == []


@pytest.mark.parametrize("error", [ValueError, SystemExit, RecursionError])
def test_whatever_a_callback_raises_the_tasks_are_assigned_and_the_rejoin_is_requested(error):
    assigned = []

    def broken(*_):
        raise error("a user's own")

    class Hook(RebalanceHook):
        on_rebalance_end = broken

    listener = Listener()
    listener.on_tasks_assigned = lambda active, _: assigned.append(tuple(active))
    membership, client, _ = connected(listener=listener, hooks=[Hook()])
    membership.reporter.observer = broken
    membership.take(LINES, answer(next_rebalance_ms=0), 1)
    assert assigned == [TASKS]
    assert client.rejoins == 1
    listener.on_tasks_assigned = broken
    listener.on_error = broken
    membership.take(LINES, answer(next_rebalance_ms=0), 2)
    assert client.rejoins == 2
    membership.take(LINES, b"", 3)
    assert membership.timer._timer is not None
    assert any("a user's own" in failure for failure in membership.reporter.failures)


def test_the_listener_is_called_with_the_tasks_before_an_observer():
    order = []
    listener = Listener()
    listener.on_tasks_assigned = lambda *_: order.append("listener")
    membership, _, _ = connected(listener=listener)
    membership.reporter.observer = lambda event: order.append(type(event).__name__)
    membership.take(LINES, answer(next_rebalance_ms=0), 1)
    assert order == ["listener", "AssignmentTaken", "RejoinRequested", "AnswerHandled"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, GeneratorExit, MemoryError, asyncio.CancelledError]
)
def test_interrupts_and_exhausted_memory_pass(error):
    def interrupted(*_):
        raise error

    listener = Listener()
    listener.on_tasks_assigned = interrupted
    membership, _, _ = connected(listener=listener)
    with pytest.raises(error):
        membership.take(LINES, VALID, 1)


def hosts_without_this_member():
    return answer(partitions_by_host={("elsewhere", 1): LINES})


def test_an_endpoint_missing_from_the_routing_causes_only_one_rejoin_at_once():
    listener = Listener()
    membership, client, _ = connected(endpoint="here:1", listener=listener)
    for generation in range(1, 6):
        membership.take(LINES, hosts_without_this_member(), generation)
    assert client.rejoins == 1
    assert client.delays_s == [1, 2, 4, 8]
    assert "2 answers in a row" in next(why for kind, why in listener.calls if kind == "error")
    membership.take(LINES, answer(partitions_by_host={("here", 1): LINES}), 6)
    membership.take(LINES, hosts_without_this_member(), 7)
    assert client.rejoins == 2


@pytest.mark.parametrize("next_rebalance_ms", [0, -5, 1])
def test_a_leader_that_always_wants_the_next_rebalance_now_is_followed_16_times(next_rebalance_ms):
    membership, client, _ = connected()
    for generation in range(30):
        membership.take(LINES, answer(next_rebalance_ms=next_rebalance_ms), generation)
        assert tuple(membership.member.held.active) == TASKS
    at_once = client.rejoins + client.delays_s.count(0)
    assert at_once == 16
    assert [delay for delay in client.delays_s if delay] == [1, 2, 4, 8, 16, 32, *[60] * 8]


def test_a_level_that_a_member_cannot_meet_still_ends_it():
    membership, client, _ = connected()
    native = NativeAssignment(
        sizes=(2,),
        partition_counts={"lines": 2},
        feature_levels={"assignment.protocol": 10_000},
        feature_epoch=3,
    )
    membership.take(LINES, answer(native=native), 1)
    assert membership.reporter.failed is not None
    assert client.delays_s == []
