import numpy as np
import pytest

from assignor import AssignmentConfig
from assignor.placement.racks.optimise import optimize_active, rack_costs
from assignor.placement.state import LAG_RUNNING, ClientInput, group_state
from encoding import TaskId
from tests.assignor.placement.racks.groups import (
    active_cost,
    cheapest_actives,
    draw_actives,
    seeded,
)


def check_against_the_full_graph(seed, *, copies=False):
    state, active = draw_actives(seeded(seed), copies=copies)
    placed, _ = optimize_active(state, active)
    for is_stateful in (True, False):
        tasks = [
            task
            for task in range(len(state.tasks))
            if state.stateful[task] == is_stateful and state.racks[active[task]] is not None
        ]
        if not tasks or len({rack for rack in state.racks if rack}) < 2:
            continue
        costs = rack_costs(state) if is_stateful else (len(tasks) + 1, 1)
        cost = sum(active_cost(state, task, int(placed[task]), costs, active) for task in tasks)
        assert cost == cheapest_actives(state, active, tasks, costs), seed
        assert sorted(placed[tasks]) == sorted(active[tasks]), "counts of clients are kept"


def test_actives_cost_what_the_full_graph_costs_at_best():
    for seed in range(120):
        check_against_the_full_graph(seed)


def test_tasks_that_nobody_runs_are_kept_on_caught_up_copies_at_least_cost():
    for seed in range(300):
        check_against_the_full_graph(seed, copies=True)


@pytest.mark.slow
@pytest.mark.nightly("1,200 more groups, 4 s; every run has 120")
def test_actives_cost_what_the_full_graph_costs_at_best_a_thousand_times():
    for seed in range(1_000, 2_200):
        check_against_the_full_graph(seed)


def group(*, racks, owner, replicas, strategy="min_traffic", stateful=True, **settings):
    """One task for each entry of `owner`: the client that runs it, or None."""
    tasks = [TaskId(0, number) for number in range(len(owner))]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks if stateful else [],
        clients=[
            ClientInput(
                process_id=f"c{number}",
                rack=rack,
                active_tasks=frozenset(t for t, o in zip(tasks, owner, strict=True) if o == number),
                lags={
                    t: LAG_RUNNING
                    for t, o in zip(tasks, owner, strict=True)
                    if o == number and stateful
                },
            )
            for number, rack in enumerate(racks)
        ],
        config=AssignmentConfig(rack_aware_assignment_strategy=strategy, **settings),
        end_offset_sums=dict.fromkeys(tasks, 1),
        partition_racks=None
        if replicas is None
        else {
            task: tuple(None if racks is None else frozenset(racks) for racks in given)
            for task, given in zip(tasks, replicas, strict=True)
        },
    )


def test_without_a_strategy_nothing_changes():
    state = group(racks=["a", "b"], owner=[0, 1], replicas=[["b"], ["a"]], strategy="none")
    active = np.array([0, 1])
    assert optimize_active(state, active) == (active, ())


def test_tasks_go_where_their_partitions_are():
    state = group(racks=["a", "b"], owner=[None, None], replicas=[["b"], ["a"]])
    placed, warnings = optimize_active(state, np.array([0, 1]))
    assert placed.tolist() == [1, 0]
    assert warnings == ()


def test_overlap_is_measured_against_the_running_client_not_the_target():
    state = group(
        racks=["a", "b"],
        owner=[1, 0],
        replicas=[["a", "b"], ["a", "b"]],
        rack_aware_assignment_non_overlap_cost=1,
    )
    placed, _ = optimize_active(state, np.array([0, 1]))
    assert placed.tolist() == [1, 0], "both racks are as good, and the tasks run there"


def test_moves_that_cost_more_than_their_traffic_are_left_out():
    state = group(
        racks=["a", "b"],
        owner=[0, 1],
        replicas=[["b"], ["a"]],
        rack_aware_assignment_traffic_cost=1,
        rack_aware_assignment_non_overlap_cost=10,
    )
    placed, _ = optimize_active(state, np.array([0, 1]))
    assert placed.tolist() == [0, 1]


def test_costs_beyond_kafkas_range_count_as_the_greatest_in_it():
    state = group(
        racks=["a", "b"],
        owner=[0, 1],
        replicas=[["b"], ["a"]],
        rack_aware_assignment_traffic_cost=10**30,
    )
    assert rack_costs(state) == (2**31 - 1, 1)
    assert optimize_active(state, np.array([0, 1]))[0].tolist() == [1, 0]


def test_stateless_tasks_go_by_traffic_first_and_stay_where_it_is_equal():
    crossing = group(racks=["a", "b"], owner=[0, 1], replicas=[["b"], ["a"]], stateful=False)
    assert optimize_active(crossing, np.array([0, 1]))[0].tolist() == [1, 0]
    equal = group(racks=["a", "b"], owner=[1, 0], replicas=[["a", "b"]] * 2, stateful=False)
    assert optimize_active(equal, np.array([0, 1]))[0].tolist() == [1, 0]


def test_a_client_without_a_rack_keeps_its_tasks_and_is_named():
    state = group(racks=["a", "b", None], owner=[None] * 4, replicas=[["b"], ["a"], ["a"], ["b"]])
    placed, warnings = optimize_active(state, np.array([0, 1, 2, 2]))
    assert placed.tolist() == [1, 0, 2, 2]
    assert [w for w in warnings if "c2 has no rack" in w and "client.rack" in w] == list(warnings)
    assert "c2 has no rack and keeps its tasks under" in warnings[0]


def test_unknown_replica_racks_count_nothing_and_are_named():
    state = group(racks=["a", "b"], owner=[None] * 3, replicas=[["b"], [None], ["a"]])
    placed, warnings = optimize_active(state, np.array([0, 0, 1]))
    assert sorted(placed[[0, 2]].tolist()) == [0, 1]
    assert placed[0] == 1
    assert len(warnings) == 1
    assert "0_1" in warnings[0]
    assert "broker.rack" in warnings[0]


@pytest.mark.parametrize(
    ("racks", "replicas", "sentence"),
    [
        ([None, None], [["b"], ["a"]], "no client has a rack"),
        (["a", "b"], None, "no replica racks of source partitions known"),
    ],
)
def test_unknown_racks_change_nothing_and_are_reported(racks, replicas, sentence):
    state = group(racks=racks, owner=[None, None], replicas=replicas)
    placed, warnings = optimize_active(state, np.array([0, 1]))
    assert placed.tolist() == [0, 1]
    assert len(warnings) == 1
    assert sentence in warnings[0]


def test_balance_subtopology_keeps_subtopologies_spread():
    tasks = [TaskId(sub, number) for sub in range(2) for number in range(4)]
    near = {task: (frozenset("ab"[task.subtopology]),) for task in tasks}
    clients = [ClientInput(process_id=f"c{n}", rack="ab"[n]) for n in range(2)]
    active = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    held = {}
    for strategy in ("min_traffic", "balance_subtopology"):
        state = group_state(
            tasks=tasks,
            stateful_tasks=tasks,
            clients=clients,
            config=AssignmentConfig(rack_aware_assignment_strategy=strategy),
            partition_racks=near,
        )
        placed, _ = optimize_active(state, active)
        held[strategy] = np.bincount(placed[:4], minlength=2).tolist()
    assert held == {"min_traffic": [4, 0], "balance_subtopology": [2, 2]}
