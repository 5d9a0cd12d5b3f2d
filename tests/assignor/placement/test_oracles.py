"""Restores and hand-offs until settled, compared with the minimum by CP-SAT and by a flow."""

import pytest

from assignor import AssignmentConfig, ClientInput, group_state, high_availability
from assignor.placement import LAG_RUNNING
from assignor.problems.rounds import play, totals
from encoding import TaskId

pytest.importorskip("ortools", reason="ortools has no wheel for this platform")

from benchmarks.assign.bounds import cold_by_peak, least_handoffs
from benchmarks.assign.restore_oracle import compare, least_restores, small_group


def two_tasks_on_one_of(clients, replicas):
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    owner = ClientInput(
        process_id="c0", active_tasks=frozenset(tasks), lags=dict.fromkeys(tasks, LAG_RUNNING)
    )
    rest = [ClientInput(process_id=f"c{n}") for n in range(1, clients)]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[owner, *rest],
        config=AssignmentConfig(num_standby_replicas=replicas),
        end_offset_sums=dict.fromkeys(tasks, 10**6),
    )


def test_the_oracle_finds_what_can_be_counted_by_hand():
    assert least_restores(two_tasks_on_one_of(1, 0)) == 0
    # One task each: one of them has to be restored.
    assert least_restores(two_tasks_on_one_of(2, 0)) == 1
    # Each task on both clients.
    assert least_restores(two_tasks_on_one_of(2, 1)) == 2
    # Four copies on three clients, two of them on one, and only one client has any.
    assert least_restores(two_tasks_on_one_of(3, 1)) == 2


def test_the_flow_finds_what_can_be_counted_by_hand():
    assert least_handoffs(two_tasks_on_one_of(1, 0)) == 0
    assert least_handoffs(two_tasks_on_one_of(2, 0)) == 1
    # Both tasks on one thread of two: twice the average, or one of them starts cold.
    assert cold_by_peak(two_tasks_on_one_of(2, 0)) == {1.0: 1, 2.0: 0}


def test_the_groups_are_of_many_kinds():
    groups = [small_group(seed) for seed in range(60)]
    assert {g.config.num_standby_replicas for g in groups} == {0, 1, 2}
    assert {len(g.clients) for g in groups} >= {2, 3, 4, 5}
    assert any(least_restores(g) for g in groups)


@pytest.mark.slow
def test_restores_are_within_five_percent_of_the_least_there_are():
    cost, least, groups, beside = compare(range(250))
    assert groups >= 200
    assert beside <= groups / 15
    assert least <= cost <= 1.05 * least


@pytest.mark.slow
def test_handoffs_are_the_least_there_are():
    groups = [small_group(seed) for seed in range(300)]
    least = [least_handoffs(group) for group in groups]
    assert sum(least) > 150
    assert [totals(list(play(g, high_availability)))["handoffs"] for g in groups] == least
