"""Rejoins after an answer, on a client port that counts them."""

from types import SimpleNamespace

import pytest

from assignor import TasksListener
from assignor.adapters.membership.core import NO_TASKS, Taken
from assignor.adapters.membership.followups import Followups
from assignor.adapters.membership.reports import FirstTasks, Reporter
from assignor.observe import AnswerRefused, MemberFailed, MembershipLost, Outcome, RejoinRequested
from assignor.rebalance import (
    AskAgain,
    End,
    Received,
    Rejoin,
    RejoinLater,
)
from encoding import TaskId
from probing import ClearSchedule, RejoinNow, ReportError
from tests.assignor.adapters.membership.clients import FakeClient

TAKEN = Taken(
    received=Received(assignment=None, for_version=True),
    generation=7,
    used_before=10,
    used_after=11,
    revoked=NO_TASKS,
    held=NO_TASKS,
)
COMMAND = RejoinNow(used_version=11, rule="a rule", why="a reason")
CLEAR = ClearSchedule(rule="a rule", why="a reason")


class Member:
    """Followups with a reporter and a fake client."""

    def __init__(self, *, attached=True):
        self.seen = []
        self.reporter = Reporter(TasksListener(), self.seen.append, hooks=())
        self.followups = Followups(self.reporter)
        self.client = FakeClient()
        if attached:
            self.followups.connect(self.client)

    def does(self, *steps):
        for step in steps:
            self.followups.carry_out(step, TAKEN)


def rejoin(wait_ms=0):
    return Rejoin(command=COMMAND, wait_ms=wait_ms, in_a_row=1 + wait_ms // 1_000)


def test_a_rejoin_is_observed_and_requested_at_once():
    member = Member()
    member.does(rejoin())
    assert member.client.rejoins == 1
    assert member.seen == [
        RejoinRequested(
            rule="a rule",
            why="a reason",
            used_version_before=10,
            used_version_after=11,
            for_version=True,
        )
    ]


def test_a_rejoin_after_a_wait_goes_by_the_timer_and_is_reported():
    member = Member()
    member.does(rejoin(wait_ms=4_000))
    assert (member.client.rejoins, member.client.delays_s) == (0, [4])
    [why] = member.reporter.failures
    assert why.startswith("a reason; 5 answers in a row requested a rejoin, so this member waits 4")
    member.client.fire()
    assert member.client.rejoins == 1


@pytest.mark.parametrize("wait_ms", [0, 4_000])
def test_without_a_client_a_rejoin_is_reported_with_what_to_do(wait_ms):
    member = Member(attached=False)
    member.does(RejoinLater(delay_ms=1), CLEAR, rejoin(wait_ms))
    assert member.reporter.failures == [
        "a rejoin is due, but attach(consumer) was never called; call it"
    ]
    member.followups.request_new_answer()
    member.followups.close()


def test_a_later_step_replaces_the_rejoin_of_an_earlier_one():
    member = Member()
    member.does(RejoinLater(delay_ms=5_000), RejoinLater(delay_ms=9_000))
    assert member.client.delays_s == [5, 9]
    assert len(member.client.pending) == 1
    member.does(CLEAR)
    member.client.fire()
    assert member.client.rejoins == 0


def test_an_answer_that_cannot_be_taken_is_asked_for_after_its_wait():
    member = Member()
    member.does(AskAgain(why="unreadable", wait_ms=2_000))
    assert member.client.delays_s == [2]
    assert member.seen == [AnswerRefused(generation=7, why="unreadable")]
    assert member.reporter.failures == ["unreadable"]
    member.does(AskAgain(why="asked for at once already", wait_ms=0))
    assert member.client.delays_s == [2]


def test_a_report_goes_on_and_an_end_does_not():
    member = Member()
    member.does(ReportError(code=1, rule="a rule", why="a sentence"))
    assert (member.reporter.failed, member.reporter.failures) == (None, ["a sentence"])
    member.does(End(why="the level is too high"))
    assert member.reporter.failed == "the level is too high"
    assert member.seen == [MemberFailed(why="the level is too high")]


def test_a_new_answer_is_requested_after_every_answer_until_the_next_join():
    member = Member()
    member.followups.answered()
    assert member.client.delays_s == []
    member.client.busy = True
    member.followups.request_new_answer()
    member.client.fire()
    assert member.client.rejoins == 0, "a request would be lost in the rebalance that runs"
    member.does(CLEAR)
    member.followups.answered()
    member.client.busy = False
    member.client.fire()
    assert member.client.rejoins == 1
    member.followups.begin_join()
    member.followups.answered()
    assert member.client.pending == []


def test_after_the_close_nothing_is_scheduled():
    member = Member()
    member.does(RejoinLater(delay_ms=5_000))
    member.followups.close()
    member.does(RejoinLater(delay_ms=5_000))
    assert member.client.pending == []


def test_a_member_without_an_active_task_is_ready_once_no_owner_can_be_giving_it_up():
    now_s = 0.0
    first = FirstTasks(lambda: now_s)
    held = SimpleNamespace(outcome=Outcome.FOLLOWUP, active_tasks=(), standby_tasks=())
    first.on_rebalance_end(held)
    assert not first.has_them(may_wait=False)
    held.outcome = Outcome.SETTLED
    first.on_rebalance_end(held)
    assert (first.has_them(may_wait=False), first.has_them(may_wait=True)) == (True, False)
    now_s = 10.0
    assert first.has_them(may_wait=True)
    first.on_membership_lost(MembershipLost(active_tasks=()))
    assert not first.has_them(may_wait=False)
    held.standby_tasks = (TaskId(0, 0),)
    first.on_rebalance_end(held)
    assert (first.has_them(may_wait=False), first.has_them(may_wait=True)) == (True, False)
    held.active_tasks, held.outcome = (TaskId(0, 1),), Outcome.FOLLOWUP
    first.on_rebalance_end(held)
    assert first.has_them(may_wait=True)
