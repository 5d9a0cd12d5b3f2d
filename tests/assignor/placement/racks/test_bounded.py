import numpy as np

from assignor.placement.racks.bounded import group_arcs, solve_groups
from assignor.placement.racks.classes import ExchangeProblem, exchange, lower_bound
from assignor.placement.racks.kept_places import KeptPlaces


def shedding_group():
    """Client 0 (rack 0) runs three tasks and keeps one; client 1 (rack 1) takes two."""
    return ExchangeProblem(
        client=np.array([0, 1, 1]),
        kept=KeptPlaces.of(np.arange(3), np.array([0, 0, 0]), 3),
        class_of=np.array([0, 0, 1]),
        # The partitions of class 0 are in rack 1, those of class 1 in rack 0.
        weight=np.array([[10, 0], [0, 10]]),
        rack_of=np.array([0, 1]),
        overlap=1,
        block_of=np.array([0, 1, 1]),
    )


def test_the_client_that_gives_up_tasks_keeps_those_that_are_at_home_there():
    placed = solve_groups(shedding_group())
    assert placed.tolist() == [1, 1, 0]
    assert shedding_group().cost(placed) == lower_bound(shedding_group()) == 2


def test_limits_of_subtopologies_are_kept():
    placed = solve_groups(shedding_group(), limits=np.array([[1, 0], [1, 2]]))
    assert placed.tolist() == [0, 1, 1], "task 0 may only be on client 0"


def test_exchange_inside_groups_keeps_the_count_of_each():
    problem = shedding_group()
    placed = exchange(problem, problem.block_of)
    assert placed[0] == 0
    assert sorted(placed[1:].tolist()) == [1, 1]


def test_the_size_of_the_graph_is_known_before_it_is_built():
    nobody = ExchangeProblem(
        client=np.array([0, 1]),
        kept=KeptPlaces.of(np.arange(0), np.arange(0), 2),
        class_of=np.array([0, 0]),
        weight=np.array([[0, 0]]),
        rack_of=np.array([0, 1]),
        overlap=1,
        block_of=np.array([0, 0]),
    )
    assert group_arcs(nobody, None) == 2 + 4
    assert group_arcs(nobody, np.array([[1, 1]])) == 2 + 8


def test_a_task_with_several_places_is_kept_on_any_of_them():
    problem = ExchangeProblem(
        # Tasks 0 and 1 may be on clients 0 and 1, task 2 on 1 and 2; each client has one place.
        client=np.array([2, 0, 1]),
        kept=KeptPlaces.of(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 1, 2]), 3),
        class_of=np.array([0, 0, 0]),
        weight=np.array([[0, 0]]),
        rack_of=np.array([0, 1, 1]),
        overlap=1,
        block_of=np.array([0, 0, 0]),
    )
    placed = solve_groups(problem)
    assert problem.cost(placed) == lower_bound(problem) == 0
    assert sorted(placed.tolist()) == [0, 1, 2]
    assert placed[2] == 2
    # Two pools, four kept pairs, two racks a pool, two arcs a client.
    assert group_arcs(problem, None) == 4 + 4 + 6
