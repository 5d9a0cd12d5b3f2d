"""Rack-aware optimisation of whole assignments, called by a custom strategy."""

from dataclasses import replace

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, TaskAssignment, group_state, validate
from assignor.errors import TaskAssignmentError
from assignor.placement.racks import (
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
)
from encoding import TaskId

TASKS = [TaskId(0, p) for p in range(4)]


def group(strategy="min_traffic", stateful=TASKS):
    """Partitions of even tasks and clients a and c are in rack r0, the others in r1."""
    racks = {task: [frozenset({f"r{task.partition % 2}"})] for task in TASKS}
    return group_state(
        tasks=TASKS,
        stateful_tasks=stateful,
        clients=[ClientInput(process_id=name, rack=f"r{n % 2}") for n, name in enumerate("abcd")],
        config=AssignmentConfig(rack_aware_assignment_strategy=strategy, num_standby_replicas=1),
        partition_racks=racks,
        changelog_racks=racks,
    )


CROSSED = TaskAssignment(active=np.array([1, 0, 3, 2]))


def test_actives_go_to_their_racks_and_every_client_keeps_its_number():
    answer = optimize_rack_aware_active_tasks(group(), CROSSED)
    assert [int(c) % 2 for c in answer.active] == [0, 1, 0, 1]
    assert sorted(answer.active.tolist()) == [0, 1, 2, 3]
    assert CROSSED.active.tolist() == [1, 0, 3, 2]


def test_only_the_named_tasks_change_places():
    answer = optimize_rack_aware_active_tasks(group(), CROSSED, tasks=TASKS[:2])
    assert answer.active.tolist() == [0, 1, 3, 2]
    assert optimize_rack_aware_active_tasks(group(), CROSSED, tasks=[]).active.tolist() == [
        *CROSSED.active
    ]


def test_a_traffic_cost_of_0_moves_nothing():
    answer = optimize_rack_aware_active_tasks(group(), CROSSED, traffic_cost=0)
    assert answer.active.tolist() == [1, 0, 3, 2]


def test_without_a_rack_strategy_the_answer_is_the_same():
    state = group("none")
    assert optimize_rack_aware_active_tasks(state, CROSSED).active.tolist() == [1, 0, 3, 2]
    answer = TaskAssignment(active=np.array([0, 1, 2, 3]), standbys=((0, 1), (1, 0)))
    assert optimize_rack_aware_standby_tasks(state, answer).standbys == answer.standbys


FAR = TaskAssignment(active=np.array([1, 0, 1, 0]), standbys=((0, 3), (1, 2), (2, 3), (3, 2)))


def test_standbys_go_to_their_racks_and_every_client_keeps_its_number():
    better = optimize_rack_aware_standby_tasks(group(), FAR)
    assert better.standbys == ((0, 2), (1, 3), (2, 2), (3, 3))
    assert validate(group(), better) == ()


def test_standbys_of_other_tasks_and_warm_ups_stay():
    some = optimize_rack_aware_standby_tasks(group(), FAR, tasks=TASKS[:2])
    assert some.standbys == ((0, 2), (1, 3), (2, 3), (3, 2))
    warming = replace(FAR, warmups=((2, 3), (3, 2)))
    better = optimize_rack_aware_standby_tasks(group(), warming)
    assert (better.standbys, better.warmups) == (some.standbys, warming.warmups)


def test_a_task_that_is_not_there_and_a_cost_below_0_are_errors():
    for optimize in (optimize_rack_aware_active_tasks, optimize_rack_aware_standby_tasks):
        with pytest.raises(TaskAssignmentError, match="task 9_9 does not exist"):
            optimize(group(), CROSSED, tasks=[TaskId(9, 9)])
        with pytest.raises(TaskAssignmentError, match="traffic_cost is -1"):
            optimize(group(), CROSSED, traffic_cost=-1)
        with pytest.raises(TaskAssignmentError, match="non_overlap_cost is -2"):
            optimize(group(), CROSSED, non_overlap_cost=-2)


def test_unknown_racks_are_reported_once_beside_former_warnings():
    state = group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=[ClientInput(process_id=name) for name in "ab"],
        config=AssignmentConfig(rack_aware_assignment_strategy="min_traffic"),
        partition_racks={},
    )
    given = TaskAssignment(active=np.array([0, 0, 1, 1]), warnings=("before",))
    first, second = optimize_rack_aware_active_tasks(state, given).warnings
    assert first == "before"
    assert "no client has a rack" in second
