"""Costs, gain and worth of an assignment."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import AssignmentConfig, ClientInput, group_state, named_strategy
from assignor.placement import (
    LAG_UNKNOWN,
    NOBODY,
    TaskAssignment,
    Trace,
    fallback_prior,
    run_with_trace,
)
from assignor.problems import (
    clients_after,
    lacking_records,
    measures_of,
    records_to_restore,
    regroup,
    total_of,
)
from encoding import TaskId
from tests.assignor.problems.small_groups import state

STRATEGIES = ("high_availability", "sticky", "kafka_high_availability", "kafka_streams_group")


def measured(group, strategy="high_availability"):
    return measures_of(group, *run_with_trace(group, named_strategy(strategy)))


def test_even_group_has_nothing_to_gain():
    found = measured(state())
    assert (found.balance_before, found.balance_after, found.balance_settled) == (1.0, 1.0, 1.0)
    assert (found.gained, found.touched, found.worth) == (0, 0, 0.0)
    assert (found.tasks, found.clients) == (6, 3)


def test_new_client_is_worth_the_tasks_that_it_relieves_others_of():
    group = state("aaabbb", clients="abc")
    found = measured(group)
    # Both give a task up; each of the two is restored and handed over.
    assert (found.gained, found.touched, found.worth) == (2, 4, 1.0)
    # Until the warm-ups have caught up, the assignment itself changes nothing but them.
    assert (found.handoffs, found.restores, found.warmups) == (0, 2, 2)
    assert (found.balance_before, found.balance_after, found.balance_settled) == (1.5, 1.5, 1.0)
    assert found.restored_records == 2_000_000


def test_tasks_that_do_not_run_are_gained_by_starting_them_where_their_state_is():
    lags = {"a": dict.fromkeys([TaskId(0, 2), TaskId(0, 3)], 10)}
    found = measured(state("aa--cc", clients="ac", lags=lags))
    assert (found.takeovers, found.restores) == (2, 1)
    # Of the four tasks of its share, `a` may have three: one goes to `c`, which restores it.
    assert (found.gained, found.touched, found.worth) == (2, 1, 2.0)
    # Of the tasks that run; those that nobody runs are no load.
    assert found.balance_before == 1.0
    assert measured(state("aa----", clients="ab")).balance_before == 2.0
    assert measured(state("------", clients="ab")).balance_before == 0.0


def test_missing_standbys_are_gained_by_restoring_them():
    found = measured(state("aabbcc", standbys=1))
    assert (found.gained, found.touched, found.worth) == (6, 6, 6.0)
    assert found.unknown_restores == 0
    # More than there are other clients cannot be had.
    assert measured(state("aaaaaa", clients="a", standbys=1)).gained == 0


def test_answer_that_makes_a_group_worse_has_a_negative_worth():
    group = state()
    worse = TaskAssignment(active=np.zeros(6, dtype=np.int64))
    found = measures_of(group, worse)
    assert (found.gained, found.worth, found.balance_after) == (-4, -4.0, 3.0)


def test_without_a_trace_the_assignment_itself_counts():
    group = state("aaabbb", clients="abc")
    assignment, trace = run_with_trace(group, fallback_prior)
    assert trace is None
    found = measures_of(group, assignment)
    assert found.balance_after == found.balance_settled == 1.5
    assert found.gained == 0


def test_standby_that_becomes_active_is_no_standby_once_settled():
    group = state("aabbcc", standbys=1)
    active = group.owner.copy()
    target = active.copy()
    target[0] = 1
    pairs = ((0, 1), (1, 2), (2, 0), (3, 0), (4, 0), (5, 0))
    trace = Trace(home=active, balanced=target, target=target, standbys=None)
    given_out = TaskAssignment(active=active, standbys=pairs)
    # Task 0 loses its only standby by the move: five of six are gained, and `b` has too much.
    assert measures_of(group, given_out, trace).gained == 5 - 1


def test_unknown_sizes_are_counted_and_huge_ones_add_up():
    group = replace(state("------", clients="ab"), end_offset_sums=np.full(6, LAG_UNKNOWN))
    found = measured(group, "sticky")
    assert (found.restored_records, found.unknown_restores) == (0, 6)
    group = replace(group, end_offset_sums=np.full(6, LAG_UNKNOWN - 1))
    found = measured(group, "sticky")
    assert (found.restored_records, found.unknown_restores) == (LAG_UNKNOWN, 0)
    assert total_of(np.array([2**62, 2**61, 5])) == 2**62 + 2**61 + 5


def test_copy_with_an_unknown_lag_lacks_an_unknown_number_of_records():
    lags = {"a": {TaskId(0, 0): LAG_UNKNOWN, TaskId(0, 1): 7}}
    found = measured(state("a-----", clients="a", lags=lags), "sticky")
    assert (found.restored_records, found.unknown_restores) == (4 * 1_000_000 + 7, 1)


def test_start_is_cold_only_if_another_client_is_caught_up():
    lags = {"a": {TaskId(0, 0): 20_000}}
    for clients, cold in (("a", 0), ("ab", 1)):
        group = state("------", clients=clients, lags=lags)
        group = replace(group, end_offset_sums=np.zeros(6, dtype=np.int64))
        on_a = TaskAssignment(active=np.zeros(6, dtype=np.int64))
        assert measures_of(group, on_a).cold == cold


def test_weights_count_work_and_not_tasks():
    tasks = [TaskId(0, p) for p in range(8)]
    clients = [
        ClientInput(process_id="a", active_tasks=frozenset(tasks), lags=dict.fromkeys(tasks, -1)),
        ClientInput(process_id="b"),
    ]
    weights = dict.fromkeys(tasks, 1.0) | {tasks[0]: 8.0}
    group = group_state(tasks=tasks, stateful_tasks=tasks, clients=clients, weights=weights)
    found = measured(group, "sticky")
    # All work on one of two threads, and 8 of 15 on one of them in the end.
    assert (found.balance_before, found.balance_settled) == (2.0, round(8 / 7.5, 3))
    assert found.gained == 0  # 15 is within the share and the heaviest task


def test_group_without_tasks_has_nothing():
    group = group_state(tasks=[], stateful_tasks=[], clients=[ClientInput(process_id="a")])
    found = measured(group)
    assert (found.balance_before, found.gained, found.worth) == (0.0, 0, 0.0)


@st.composite
def random_groups(draw):
    """Groups in any state: tasks anywhere or nowhere, copies with any lag, some threads 0."""
    names = [f"c{n}" for n in range(draw(st.integers(1, 5)))]
    tasks = [TaskId(s, p) for s in range(2) for p in range(draw(st.integers(1, 6)))]
    stateful = [task for task in tasks if task.subtopology == 0 or draw(st.booleans())]
    owners = {task: draw(st.sampled_from([None, *names])) for task in tasks}
    lag = st.sampled_from([None, -1, 0, 7, 20_000, LAG_UNKNOWN])
    clients = [
        ClientInput(
            process_id=name,
            threads=draw(st.integers(0, 3)),
            active_tasks=frozenset(task for task in tasks if owners[task] == name),
            lags={task: found for task in stateful if (found := draw(lag)) is not None},
        )
        for name in names
    ]
    return group_state(
        tasks=tasks,
        stateful_tasks=stateful,
        clients=clients,
        config=AssignmentConfig(num_standby_replicas=draw(st.integers(0, 2))),
        end_offset_sums={task: draw(st.sampled_from([0, 50_000])) for task in tasks},
        weights=draw(st.sampled_from([None, {tasks[0]: 9.0}])),
    )


@given(random_groups(), st.sampled_from(STRATEGIES))
@settings(deadline=None)
def test_records_are_those_that_each_copy_lacks(group, strategy):
    assignment, _ = run_with_trace(group, named_strategy(strategy))
    placed = [(t, int(assignment.active[t])) for t in np.flatnonzero(group.stateful).tolist()]
    expected, known, unknown = [], 0, 0
    for task, client in [*placed, *assignment.standbys]:
        end = int(group.end_offset_sums[task])
        lag = dict(group.copies(task)).get(client, end)
        expected.append(end if lag == LAG_UNKNOWN else max(lag, 0))
        known += 0 if lag == LAG_UNKNOWN else max(lag, 0)
        unknown += lag == LAG_UNKNOWN and end > 0
    pairs = np.array([*placed, *assignment.standbys], dtype=np.int64).reshape(-1, 2)
    assert lacking_records(group, pairs[:, 0], pairs[:, 1]).tolist() == expected
    assert records_to_restore(group, assignment) == (known, unknown)


def defects(group, active, standbys):
    """The definition, client by client and task by task; groups without weights."""
    threads = group.capacity().tolist()
    count = sum(client == NOBODY for client in active)
    misplaced = 0
    for chosen in ([t for t in range(len(active)) if group.stateful[t]], range(len(active))):
        held = [sum(active[t] == client for t in chosen) for client in range(len(threads))]
        shares = [
            (len(chosen) * own // sum(threads), -(-len(chosen) * own // sum(threads)))
            for own in threads
        ]
        above = sum(max(0, n - high) for n, (_, high) in zip(held, shares, strict=True))
        below = sum(max(0, low - n) for n, (low, _) in zip(held, shares, strict=True))
        idle = sum(active[t] == NOBODY for t in chosen)
        misplaced = max(misplaced, above, below - idle)
    others = sum(own > 0 for own in threads) - 1
    wanted = min(group.config.num_standby_replicas, others)
    missing = [max(0, wanted - standbys[t]) for t in range(len(active)) if group.stateful[t]]
    return count + misplaced + sum(missing)


@given(random_groups(), st.sampled_from(STRATEGIES))
@settings(deadline=None)
def test_gain_is_the_difference_of_defects_and_worth_at_most_the_gain(group, strategy):
    group = replace(group, weights=None)
    assignment, trace = run_with_trace(group, named_strategy(strategy))
    found = measures_of(group, assignment, trace)
    held = [sum(c != o for c, _ in group.copies(t)) for t, o in enumerate(group.owner.tolist())]
    before = defects(group, group.owner.tolist(), held)
    if trace is not None and trace.standbys is not None:
        active = trace.target.tolist()
        final = [pair for pair in trace.standbys if active[pair[0]] != pair[1]]
        standbys = [sum(task == t for task, _ in final) for t in range(len(active))]
        assert found.gained == before - defects(group, active, standbys)
    assert found.worth <= max(found.gained, 0) or found.gained < 0
    assert found.worth == pytest.approx(
        found.gained * min(1, found.gained / found.touched)
        if found.gained > 0 and found.touched
        else found.gained,
        abs=0.001,
    )


@given(random_groups())
@settings(deadline=None)
def test_settled_group_has_nothing_left_to_gain(group):
    """Sticky moves everything at once: what was promised has been gained in the next rebalance."""
    assignment, _ = run_with_trace(group, named_strategy("sticky"))
    again = measured(regroup(group, clients_after(group, assignment)), "sticky")
    assert again.gained == 0
    assert again.balance_before == again.balance_settled
