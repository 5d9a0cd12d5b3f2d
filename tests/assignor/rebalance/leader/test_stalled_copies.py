"""A new client whose copies make no progress: one warning, checks at growing intervals, an end."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from assignor import (
    AssignmentConfig,
    ClientInput,
    LeaderKnowledge,
    TaskAssignment,
    assign_group,
    group_state,
    high_availability,
    run_strategy,
)
from assignor.placement import LAG_UNKNOWN, is_stuck, least_lags, share_warnings
from assignor.rebalance import GroupMember
from assignor.rebalance.leader.stalled_copies import (
    LOOKS_MOST,
    NONE_STALLED,
    news_of,
    stalled_now,
)
from encoding import TaskId, decode_assignment
from probing import NO_REBALANCE
from tests.assignor.placement.racks.groups import seeded
from tests.assignor.rebalance.groups import Group

MINUTE = 60_000
CONFIG = AssignmentConfig(
    probing_rebalance_interval_ms=10 * MINUTE, max_warmup_replicas=1, num_standby_replicas=0
)
ENDS = {TaskId(0, number): 250_000 for number in range(8)}
RUNNING = -2  # as members report a task that runs


class Led:
    """Member a leads; others join, and copies of the stuck ones stay at `offset`."""

    def __init__(self, release="native", joiners="b", stuck="b", partitions=2):
        self.group = Group(strategy=high_availability, config=CONFIG, partitions=partitions)
        self.group.join("a")
        self.last, self.now_ms, self.offset = None, 0, 1_000
        self.stuck, self.partitions, self.offsets = stuck, partitions, None
        self.round()
        for name in joiners:
            self.group.join(name, release)

    def round(self, now_ms=0):
        """Run one rebalance; return the time of the requested next one and the warnings about b."""
        self.now_ms = now_ms or self.now_ms
        if self.offsets:
            self.offset = next(self.offsets)
        knowledge = LeaderKnowledge(leader_id="a", now_ms=self.now_ms, end_offset_sums=ENDS)
        if self.last is not None:
            knowledge = replace(
                knowledge,
                lags_before=self.last.memory.lags_before,
                stalled=self.last.memory.stalled,
            )
        blobs = []
        for name, member in self.group.members.items():
            sums = dict.fromkeys(member.held.active, RUNNING)
            offset = self.offset if name in self.stuck else 250_000
            sums |= dict.fromkeys(member.held.standby, offset)
            blobs.append(GroupMember(member_id=name, user_data=member.subscription(sums)[1]))
        settings = self.group.settings("native")
        sizes = {"lines": self.partitions}
        self.last = assign_group(settings, blobs, sizes, knowledge=knowledge)
        for name, member in self.group.members.items():
            answer = self.last.answers[name]
            member.receive(answer.partitions, answer.user_data, now_ms=self.now_ms)
        return self.next_ms(), [
            warning for warning in self.last.warnings if "no progress" in warning
        ]

    def next_ms(self):
        at_ms = decode_assignment(self.last.answers["a"].user_data).next_rebalance_ms
        return None if at_ms == NO_REBALANCE else at_ms

    def moved(self, name="b"):
        return len(self.group.members[name].held.active)


def looks_of(led):
    """(wait in minutes, warnings) of each rebalance, until none is requested."""
    found = []
    at_ms, warnings = led.round(MINUTE)
    while at_ms is not None:
        found.append(((at_ms - led.now_ms) // MINUTE, warnings))
        assert len(found) < 60, "never ends"
        at_ms, warnings = led.round(at_ms)
    return [*found, (None, warnings)]


def test_a_stalled_copy_is_warned_of_once_and_checked_at_growing_intervals():
    looks = looks_of(Led())
    # The copy is new, then known for the first time; from the third rebalance on it has stalled.
    assert [wait for wait, _ in looks] == [10, 10, 10, 20, 40, 80, 160, 320, None]
    sentences = [warning for _, warnings in looks for warning in warnings]
    assert len(sentences) == 1
    assert looks[2][1] == sentences
    assert sentences[0].startswith("1 task waits for client ")
    assert "runs 0 of its share of 1: 1 copy there made no progress" in sentences[0]
    assert "a lag of up to 249,000 records" in sentences[0]


def test_when_the_lag_shrinks_at_last_the_task_moves():
    led = Led()
    at_ms = MINUTE
    for _ in range(5):
        at_ms, _ = led.round(at_ms)
    assert led.moved() == 0
    led.offset = 240_000
    at_ms, warnings = led.round(at_ms)
    # Held back by the cooperative protocol for one more rebalance.
    led.round(at_ms or led.now_ms)
    assert warnings == []
    assert led.moved() == 1
    assert led.last.memory.stalled == NONE_STALLED


def test_jvm_members_come_no_nearer_like_native_ones():
    looks = looks_of(Led("3.9.1"))
    assert [wait for wait, _ in looks] == [10, 10, 10, 20, 40, 80, 160, 320, None]


def test_more_stuck_newcomers_than_warm_ups_take_turns_once_and_starve_nobody():
    led = Led(joiners="bcd", stuck="bc", partitions=8)
    waits = [wait for wait, _ in looks_of(led)]
    # At each check every client has its turn again, which takes a few probing intervals.
    assert [wait for wait in waits if wait != 10] == [20, 40, 80, 160, 320, None]
    assert [led.moved(name) for name in "abcd"] == [6, 0, 0, 2]
    assert led.last.memory.stalled.looks == LOOKS_MOST


def test_when_all_newcomers_are_stuck_the_looks_end_too():
    led = Led(joiners="bcd", stuck="bcd", partitions=8)
    assert looks_of(led)[-1][0] is None
    assert [led.moved(name) for name in "abcd"] == [8, 0, 0, 0]
    assert any("below the share" in warning for warning in led.last.warnings)


@pytest.mark.parametrize(("joiners", "partitions"), [("b", 2), ("bcd", 8)])
def test_a_lag_that_goes_up_and_down_ends_as_a_constant_one_does(joiners, partitions):
    led = Led(joiners=joiners, stuck=joiners, partitions=partitions)
    led.offsets = cycle([1_000, 50_000, 20_000])
    waits = [wait for wait, _ in looks_of(led)]
    assert [wait for wait in waits if wait != 10] == [20, 40, 80, 160, 320, None]
    assert led.moved() == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_lag_that_is_never_the_same_ends_too(seed):
    led = Led()
    draws = seeded(seed)
    led.offsets = iter(lambda: draws.randint(1_000, 200_000), None)
    assert looks_of(led)[-1][0] is None


def test_a_copy_that_was_caught_up_and_fell_behind_comes_nearer_again():
    task = TaskId(0, 0)
    seen = [40_000, 9_000, 30_000, 35_000, 20_000, LAG_UNKNOWN, 15_000]
    before, nearer = {}, []
    for lag in seen:
        client = ClientInput(process_id="b", lags={task: lag}, lags_before=before)
        nearer.append(not is_stuck(client, 10_000, was_stuck=False))
        before = least_lags(client, 10_000)
    assert nearer == [True, True, False, False, True, False, True]
    assert before == {task: 15_000}
    assert least_lags(ClientInput(process_id="b", lags={task: -1}, lags_before=before), 0) == {
        task: -1
    }


def test_a_rebalance_in_between_does_not_count_as_a_look():
    led = Led()
    for at_ms in (MINUTE, 11 * MINUTE):
        led.round(at_ms)
    at_ms, _ = led.round(21 * MINUTE)
    again_ms, warnings = led.round(22 * MINUTE)
    assert (again_ms, warnings) == (at_ms, [])
    assert led.last.memory.stalled.looks == 1


def stalled_state(*clients):
    tasks = [TaskId(0, number) for number in range(2 * (1 + len(clients)))]
    runs = ClientInput(process_id="a", active_tasks=frozenset(tasks), lags=dict.fromkeys(tasks, -1))
    late = [
        ClientInput(process_id=name, lags={tasks[n]: 9_000_000}, lags_before={tasks[n]: 9_000_000})
        for n, name in enumerate(clients)
    ]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[runs, *late],
        config=CONFIG,
        end_offset_sums=dict.fromkeys(tasks, 10_000_000),
    )


def remembered(state, before, now_ms):
    answer = TaskAssignment(
        active=np.zeros(len(state.tasks), dtype=np.int64),
        standbys=tuple((number, number + 1) for number in range(len(state.clients) - 1)),
        look_again=True,
    )
    return stalled_now(state, answer, before=before, now_ms=now_ms, interval_ms=MINUTE)


def test_copies_on_a_client_with_its_share_are_remembered_and_reported_once():
    state = stalled_state("b")
    runs = np.array([0, 0, 1, 1])
    answer = TaskAssignment(active=runs, standbys=((0, 1),), warmups=((0, 1),), look_again=True)
    now = stalled_now(state, answer, before=NONE_STALLED, now_ms=MINUTE, interval_ms=MINUTE)
    assert (now.clients, now.copies) == ({"b"}, {("b", TaskId(0, 0))})
    warned = replace(answer, warnings=("odd", *share_warnings(state, answer)))
    assert len(warned.warnings) == 2
    assert news_of(state, warned, before=NONE_STALLED, now=now) == warned.warnings
    assert news_of(state, warned, before=now, now=now) == ("odd",)


def test_another_client_that_stalls_starts_the_looks_anew_and_one_that_recovers_does_not():
    first = remembered(stalled_state("b"), NONE_STALLED, MINUTE)
    for _ in range(LOOKS_MOST):
        first = remembered(stalled_state("b"), first, first.look_at_ms or MINUTE)
    assert (first.looks, first.look_at_ms) == (LOOKS_MOST, 0)
    both = remembered(stalled_state("b", "c"), first, MINUTE)
    assert (both.looks, both.look_at_ms) == (1, 2 * MINUTE)
    alone = remembered(stalled_state("c"), both, both.look_at_ms)
    assert (alone.looks, alone.look_at_ms) == (2, both.look_at_ms + 2 * MINUTE)
    again = remembered(stalled_state("b", "c"), alone, alone.look_at_ms)
    assert again.looks == 3, "b is no other client: tasks have waited for it before"


def test_a_clock_that_was_set_back_does_not_make_a_leader_wait_for_a_year():
    first = remembered(stalled_state("b"), NONE_STALLED, 365 * 86_400_000)
    assert remembered(stalled_state("b"), first, MINUTE).look_at_ms == 3 * MINUTE


def test_a_strategy_reports_that_it_waits_for_stalled_copies():
    answer = run_strategy(stalled_state("b"), high_availability)
    assert (answer.look_again, answer.followup) == (True, False)
    assert [
        warning for warning in answer.warnings if warning.startswith("2 tasks wait for client b")
    ]


class Leftovers(Led):
    """b has old state of every task; copies that it restores are caught up at once."""

    def round(self, now_ms=0):
        self.now_ms = now_ms or self.now_ms
        before = {} if self.last is None else {"lags_before": self.last.memory.lags_before}
        blobs = []
        for name, member in self.group.members.items():
            sums = dict.fromkeys(ENDS, 1_000) if name == "b" else {}
            sums |= dict.fromkeys(member.held.standby, 250_000)
            sums |= dict.fromkeys(member.held.active, RUNNING)
            sums = {task: sums[task] for task in sums if task.partition < self.partitions}
            blobs.append(GroupMember(member_id=name, user_data=member.subscription(sums)[1]))
        stalled = NONE_STALLED if self.last is None else self.last.memory.stalled
        self.last = assign_group(
            self.group.settings("native"),
            blobs,
            {"lines": self.partitions},
            knowledge=LeaderKnowledge(
                leader_id="a", now_ms=self.now_ms, end_offset_sums=ENDS, stalled=stalled, **before
            ),
        )
        for name, member in self.group.members.items():
            answer = self.last.answers[name]
            member.receive(answer.partitions, answer.user_data, now_ms=self.now_ms)
        return self.next_ms(), [
            warning for warning in self.last.warnings if "no progress" in warning
        ]


def test_state_that_nobody_restores_is_not_a_copy_that_comes_no_nearer():
    led = Leftovers(partitions=8)
    looks = looks_of(led)
    # One copy at a time: the first is asked for in the first round, the last moves in the fifth.
    assert [wait for wait, _ in looks] == [10, 10, 10, 10, None]
    assert [warning for _, warnings in looks for warning in warnings] == []
    assert (led.moved("a"), led.moved("b")) == (4, 4)


def test_lags_are_remembered_of_what_is_restored_and_of_what_came_no_nearer_before_it_was_dropped():
    dropped, kept, left, nearer = (TaskId(0, number) for number in range(4))
    lags = {dropped: 50_000, kept: 40_000, left: 30_000, nearer: 20_000}
    before = {dropped: 45_000, kept: 60_000, nearer: 70_000}
    client = ClientInput(process_id="b", lags=lags, lags_before=before)
    found = least_lags(client, 10_000, given={kept})
    assert found == {dropped: 45_000, kept: 40_000}
