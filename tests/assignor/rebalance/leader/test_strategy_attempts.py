"""A custom strategy that fails: tasks stay, with a warning; it is called again after a back-off."""

import numpy as np
import pytest

from assignor import (
    AssignmentConfig,
    ClientInput,
    GroupMember,
    LeaderKnowledge,
    TaskAssignment,
    assign_group,
    group_state,
    identity,
    sticky,
    validate,
)
from assignor.placement import LAG_RUNNING
from assignor.rebalance.leader.stalled_copies import StalledCopies
from assignor.rebalance.leader.strategy_attempts import (
    FIRST_STRATEGY_BACKOFF_MS,
    LAST_STRATEGY_BACKOFF_MS,
    NO_FAILURES,
    StrategyFailures,
    attempt,
)
from encoding import TaskId, decode_assignment
from probing import NO_REBALANCE
from tests.assignor.rebalance.groups import Group

TASKS = [TaskId(0, n) for n in range(6)]


def group():
    """Six tasks, five of them on a; b is new and c has a copy of one."""
    own_tasks = frozenset(TASKS[:5])
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=[
            ClientInput(
                process_id="a", active_tasks=own_tasks, lags=dict.fromkeys(own_tasks, LAG_RUNNING)
            ),
            ClientInput(process_id="b"),
            ClientInput(process_id="c", lags={TASKS[0]: 5}),
        ],
        config=AssignmentConfig(num_standby_replicas=1),
        end_offset_sums=dict.fromkeys(TASKS, 10**6),
    )


def failing(state):
    raise ZeroDivisionError("by nothing")


RAISED = "ZeroDivisionError: by nothing (test_strategy_attempts.py, line 53)"


def test_a_strategy_that_works_leaves_nothing_to_remember():
    assignment, failures = attempt(sticky, group(), before=NO_FAILURES, now_ms=7)
    assert assignment.active.tolist() == sticky(group()).active.tolist()
    assert failures == NO_FAILURES
    assert failures.warnings(7) == ()


def test_a_strategy_that_raises_moves_nothing_and_the_exception_is_reported():
    state = group()
    assignment, failures = attempt(failing, state, before=NO_FAILURES, now_ms=1_000)
    assert assignment.active.tolist()[:5] == [0] * 5
    assert assignment.standbys == ((0, 2),)
    assert assignment.active[5] != 0
    assert failures == StrategyFailures(
        count=1,
        retry_at_ms=1_000 + FIRST_STRATEGY_BACKOFF_MS,
        why=f"strategy failing failed, {RAISED}",
    )
    [sentence] = failures.warnings(1_000)
    assert (
        "ZeroDivisionError: by nothing (test_strategy_attempts.py, line 53) (once); tasks stay"
        in sentence
    )
    assert sentence.endswith("called again in 10 s")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda _: TaskAssignment(active=np.array([0])), "active has shape"),
        (
            lambda _: TaskAssignment(active=np.full(6, 9)),
            "is active on client 9, and this group has",
        ),
        (lambda _: TaskAssignment(active=np.zeros(6)), "given as float64; give whole numbers"),
        (
            lambda _: TaskAssignment(active=np.zeros(6, dtype=int), standbys=((1, 1.0),)),
            "given as float; give whole numbers",
        ),
        (
            lambda _: TaskAssignment(active=np.zeros(6, dtype=int), standbys=((1, 0),)),
            "two copies",
        ),
        (lambda _: None, "NoneType; return a TaskAssignment"),
        (lambda: None, "TypeError"),
    ],
)
def test_an_answer_that_breaks_a_rule_counts_as_a_failure(answer, sentence):
    assignment, failures = attempt(answer, group(), before=NO_FAILURES, now_ms=0)
    assert failures.count == 1
    assert sentence in failures.warnings(0)[0]
    assert validate(group(), assignment) == ()


def test_it_is_not_asked_before_its_back_off_has_passed_and_is_asked_then():
    asked = []

    def strategy(state):
        asked.append(1)
        return failing(state)

    _, first = attempt(strategy, group(), before=NO_FAILURES, now_ms=0)
    now_ms = first.retry_at_ms - 1
    _, early = attempt(strategy, group(), before=first, now_ms=now_ms)
    assert (len(asked), early) == (1, first)
    assert "called again in 1 s" in early.warnings(now_ms)[0]
    _, late = attempt(strategy, group(), before=first, now_ms=first.retry_at_ms)
    assert (len(asked), late.count) == (2, 2)
    assert "(2 times in a row)" in late.warnings(first.retry_at_ms)[0]


def test_the_back_off_doubles_up_to_ten_minutes_and_ends_with_success():
    failures, now_ms, waits = NO_FAILURES, 0, []
    for _ in range(60):
        _, failures = attempt(failing, group(), before=failures, now_ms=now_ms)
        waits.append(failures.retry_at_ms - now_ms)
        now_ms = failures.retry_at_ms
    assert waits[:4] == [FIRST_STRATEGY_BACKOFF_MS * n for n in (1, 2, 4, 8)]
    assert set(waits[7:]) == {LAST_STRATEGY_BACKOFF_MS}
    assert attempt(identity, group(), before=failures, now_ms=now_ms)[1] == NO_FAILURES


class Fragile:
    """A strategy that fails while `fails` is set."""

    fails = False

    def __call__(self, state):
        return failing(state) if self.fails else sticky(state)


def round_of(group, knowledge):
    blobs = [
        GroupMember(member_id=name, user_data=member.subscription()[1])
        for name, member in group.members.items()
    ]
    answer = assign_group(group.settings("native"), blobs, {"lines": 6}, knowledge=knowledge)
    for name, member in group.members.items():
        member_answer = answer.answers[name]
        member.receive(member_answer.partitions, member_answer.user_data, now_ms=knowledge.now_ms)
    return answer


def test_a_leader_keeps_the_assignment_asks_for_a_follow_up_and_recovers():
    strategy = Fragile()
    group = Group(strategy=strategy)
    for name in ("a", "b", "c"):
        group.join(name)
    round_of(group, LeaderKnowledge(leader_id="a"))
    before = group.owners()
    strategy.fails = True
    group.join("d")
    failed = round_of(group, LeaderKnowledge(leader_id="a", now_ms=50_000))
    assert group.owners() == before
    assert failed.memory.failures.count == 1
    assert [w for w in failed.warnings if "called again in 10 s" in w]
    looks = {m: decode_assignment(a.user_data).next_rebalance_ms for m, a in failed.answers.items()}
    assert looks.pop("a") == failed.memory.failures.retry_at_ms == 60_000
    assert set(looks.values()) == {NO_REBALANCE}
    strategy.fails = False
    early = round_of(
        group, LeaderKnowledge(leader_id="a", now_ms=55_000, failures=failed.memory.failures)
    )
    assert group.owners() == before
    again = round_of(
        group, LeaderKnowledge(leader_id="a", now_ms=60_000, failures=early.memory.failures)
    )
    assert again.memory.failures == NO_FAILURES
    assert len(group.members["d"].held.active) > 0


def test_a_clock_that_was_set_back_does_not_make_a_strategy_wait_for_a_year():
    strategy = Fragile()
    group = Group(strategy=strategy)
    group.join("a")
    strategy.fails = True
    year_ms = 365 * 86_400_000
    failed = round_of(group, LeaderKnowledge(leader_id="a", now_ms=year_ms))
    strategy.fails = False
    again = round_of(
        group, LeaderKnowledge(leader_id="a", now_ms=1, failures=failed.memory.failures)
    )
    assert again.memory.failures == NO_FAILURES


def test_a_leader_that_cannot_ask_for_follow_ups_keeps_the_assignment_all_the_same():
    group = Group(strategy=failing)
    group.join("a")
    answer = round_of(group, LeaderKnowledge())
    assert sorted(group.owners()) == TASKS
    assert decode_assignment(answer.answers["a"].user_data).next_rebalance_ms == NO_REBALANCE


def test_while_a_strategy_fails_stalled_copies_are_remembered_as_they_were():
    group = Group(strategy=failing)
    group.join("a")
    stalled = StalledCopies(looks=2, look_at_ms=90_000, clients=frozenset({"b"}))
    answer = round_of(group, LeaderKnowledge(leader_id="a", now_ms=50_000, stalled=stalled))
    assert answer.memory.failures.count == 1
    assert answer.memory.stalled == stalled
