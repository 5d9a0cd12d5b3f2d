import numpy as np
import pytest

from assignor import AssignmentConfig
from assignor.placement.racks.optimise import optimize_standbys, rack_costs
from assignor.placement.state import ClientInput, group_state
from encoding import TaskId
from tests.assignor.placement.racks.groups import (
    cheapest_standbys,
    draw_standbys,
    seeded,
    standby_cost,
    values_of,
)


def check_valid(state, active, before, after, *, spread_racks):
    assert sorted(task for task, _ in before) == sorted(task for task, _ in after)
    assert sorted(c for _, c in before) == sorted(c for _, c in after), "counts are kept"
    assert len(set(after)) == len(after)
    assert all(active[task] != client for task, client in after)
    for task in range(len(state.tasks)):
        held = [[int(active[task]), *(c for t, c in p if t == task)] for p in (before, after)]
        was, is_now = (values_of(state, clients, spread_racks=spread_racks) for clients in held)
        assert is_now >= was


def check_one_standby(seed):
    rng = seeded(seed)
    state, active, pairs = draw_standbys(rng, 1)
    spread = rng.random() < 0.5
    placed, _ = optimize_standbys(state, active, pairs, spread_racks=spread)
    check_valid(state, active, pairs, placed, spread_racks=spread)
    if len(set(state.racks)) > 1:
        costs = rack_costs(state)
        least = cheapest_standbys(state, active, pairs, costs, spread_racks=spread)
        assert standby_cost(state, placed, costs) == least, seed


def test_one_standby_costs_what_the_full_graph_costs_at_best():
    for seed in range(120):
        check_one_standby(seed)


@pytest.mark.slow
@pytest.mark.nightly("1,100 more groups, 2 s; every run has 120")
def test_one_standby_costs_what_the_full_graph_costs_at_best_a_thousand_times():
    for seed in range(1_000, 2_100):
        check_one_standby(seed)


def several_standbys(seeds, replicas, **sizes):
    """Costs of the placements and the lower bounds, summed."""
    cost = least = 0
    for seed in seeds:
        state, active, pairs = draw_standbys(seeded(seed), replicas, tagged=0, **sizes)
        placed, _ = optimize_standbys(state, active, pairs, spread_racks=False)
        check_valid(state, active, pairs, placed, spread_racks=False)
        if len(set(state.racks)) > 1:
            costs = rack_costs(state)
            cost += standby_cost(state, placed, costs)
            least += cheapest_standbys(state, active, pairs, costs, spread_racks=False)
    return cost, least


@pytest.mark.parametrize("replicas", [2, 3])
def test_several_standbys_are_within_two_percent_of_the_best(replicas):
    cost, least = several_standbys(range(60), replicas)
    # The promise is 1.02; several cuts into layers reach 1.001, a single cut 1.012.
    assert least <= cost <= 1.005 * least


@pytest.mark.slow
@pytest.mark.nightly("40 groups of 80 tasks, 2 s; every run has 2 and 3 standbys in smaller ones")
def test_several_standbys_of_larger_groups_are_within_two_percent_of_the_best():
    cost, least = several_standbys(range(40), 2, tasks=80, clients=14)
    assert least <= cost <= 1.02 * least


@pytest.mark.parametrize("replicas", [2, 3])
def test_several_standbys_stay_valid_and_apart(replicas):
    for seed in range(40):
        state, active, pairs = draw_standbys(seeded(seed), replicas, tagged=0.6)
        placed, _ = optimize_standbys(state, active, pairs)
        check_valid(state, active, pairs, placed, spread_racks=True)
        costs = rack_costs(state)
        assert standby_cost(state, placed, costs) <= standby_cost(state, pairs, costs)


def group(racks, replicas, *, tags=(), keys=(), strategy="min_traffic"):
    tasks = [TaskId(0, number) for number in range(len(replicas))]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=f"c{number}", rack=rack, tags=(("zone", tags[number]),) if tags else ()
            )
            for number, rack in enumerate(racks)
        ],
        config=AssignmentConfig(
            num_standby_replicas=1,
            rack_aware_assignment_strategy=strategy,
            rack_aware_assignment_tags=keys,
        ),
        changelog_racks={t: (frozenset(r),) for t, r in zip(tasks, replicas, strict=True)},
    )


def test_standbys_go_where_their_changelogs_are():
    state = group(["a", "b", "c"], ["b", "c"])
    placed, warnings = optimize_standbys(state, np.array([0, 0]), ((0, 2), (1, 1)))
    assert placed == ((0, 1), (1, 2))
    assert warnings == ()


def test_a_standby_does_not_join_the_rack_of_its_active_to_save_traffic():
    state = group(["a", "a", "b"], ["a", "b"])
    active, pairs = np.array([0, 2]), ((0, 2), (1, 1))
    assert optimize_standbys(state, active, pairs)[0] == pairs
    placed, _ = optimize_standbys(
        group(["a", "a", "b", "b"], ["a", "b"]), np.array([0, 3]), ((0, 2), (1, 1))
    )
    assert placed == ((0, 2), (1, 1))


def test_racks_may_be_shared_where_that_is_asked_for():
    state = group(["a", "a", "b", "b"], ["a", "b"])
    active, pairs = np.array([0, 3]), ((0, 2), (1, 1))
    assert optimize_standbys(state, active, pairs, spread_racks=False)[0] == ((0, 1), (1, 2))


def test_tags_stay_as_far_apart_as_they_were():
    racks, tags = ["a", "a", "b", "b"], ["x", "x", "y", "y"]
    state = group(racks, ["a", "b"], tags=tags, keys=("zone",))
    active, pairs = np.array([0, 3]), ((0, 2), (1, 1))
    assert optimize_standbys(state, active, pairs)[0] == pairs


def test_without_a_strategy_standbys_stay():
    state = group(["a", "b", "c"], ["b", "c"], strategy="none")
    assert optimize_standbys(state, np.array([0, 0]), ((1, 1), (0, 2))) == (((0, 2), (1, 1)), ())


def test_a_standby_on_a_client_without_a_rack_stays_and_is_respected():
    state = group(["a", "b", "c", None], ["b", "c", "b"])
    pairs = ((0, 2), (1, 1), (2, 3))
    placed, warnings = optimize_standbys(state, np.array([0, 0, 0]), pairs)
    assert placed == ((0, 1), (1, 2), (2, 3))
    assert len(warnings) == 1
    assert "c3 has no rack" in warnings[0]
