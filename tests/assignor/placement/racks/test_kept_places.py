"""Clients on which tasks stay at no cost, and the cost of a crash in a group with racks."""

import json
from pathlib import Path

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, group_state, high_availability, sticky
from assignor.placement.racks.kept_places import KeptPlaces, kept_places
from assignor.placement.state import LAG_RUNNING, LAG_UNKNOWN, NOBODY
from assignor.problems import clients_after, play, read_problem, regroup
from encoding import TaskId
from tests.assignor.placement.racks.groups import draw_replicas, seeded

END = 1_000_000
PROBLEM = Path(__file__).parents[2] / "problems" / "crash_with_racks.jsonl"


def places(*clients, active=None, under_way=None, standbys=0):
    """The places of task 0_0 in a group of these clients."""
    task = TaskId(0, 0)
    state = group_state(
        tasks=[task],
        stateful_tasks=[task],
        clients=[
            ClientInput(
                process_id=f"c{number}",
                active_tasks=frozenset({task} if runs else ()),
                lags={} if lag is None else {task: lag},
            )
            for number, (runs, lag) in enumerate(clients)
        ],
        config=AssignmentConfig(num_standby_replicas=standbys),
        end_offset_sums={task: END},
    )
    moves = None if under_way is None else np.array([under_way])
    found = kept_places(state, np.array([NOBODY if active is None else active]), moves)
    return found.client.tolist()


def test_a_running_owner_is_the_only_place():
    assert places((True, LAG_RUNNING), (False, 5), standbys=1) == [0]
    assert places((True, 900_000), (False, None)) == [0]


def test_without_an_owner_every_caught_up_copy_is_a_place():
    assert places((False, 3), (False, 900_000), (False, 70), (False, None), standbys=2) == [0, 2]


def test_caught_up_copies_are_the_places_of_a_task_whose_owner_is_behind():
    assert places((True, 900_000), (False, 3), standbys=1) == [1]


def test_where_nobody_is_caught_up_the_nearest_copies_are_places():
    assert places((False, 500_000), (False, 400_000), (False, LAG_UNKNOWN)) == [1]
    assert places((False, LAG_UNKNOWN), (False, None)) == []


def test_a_caught_up_client_that_balance_chose_is_a_place_too():
    assert places((True, LAG_RUNNING), (False, 5), active=1, standbys=1) == [0, 1]
    assert places((True, LAG_RUNNING), (False, 500_000), active=1, standbys=1) == [0]


def test_a_caught_up_copy_is_no_place_while_the_owner_runs_and_a_move_under_way_is_the_only_one():
    assert places((True, LAG_RUNNING), (False, 5)) == [0]
    assert places((True, LAG_RUNNING), (False, 500_000), under_way=1) == [1]


def test_places_of_some_tasks_on_some_clients():
    kept = KeptPlaces.of(np.array([2, 0, 2]), np.array([1, 0, 0]), 3)
    part = kept.part(np.array([1, 2]), np.array([False, True]))
    assert part.count().tolist() == [0, 1]
    assert part.client.tolist() == [1]
    assert kept.includes(np.array([0, 0, 1])).tolist() == [True, False, True]


@pytest.mark.parametrize("strategy", [sticky, high_availability])
def test_after_a_crash_tasks_start_on_their_caught_up_copies(strategy):
    problem = read_problem(json.loads(PROBLEM.read_text(encoding="utf-8")))
    first = next(iter(play(problem.state, strategy)))
    assert first.moves.takeovers == 2
    assert first.moves.cold == 0
    ran = dict(zip(map(str, first.state.tasks), first.assignment.active.tolist(), strict=True))
    assert (ran["0_0"], ran["0_1"]) == (0, 1)


def crashed_group(seed):
    rng = seeded(seed)
    racks = [f"r{number}" for number in range(rng.randint(2, 3))]
    count = rng.randint(3, 7)
    tasks = [TaskId(0, number) for number in range(rng.randint(count, 5 * count))]
    replicas = {task: draw_replicas(rng, racks) for task in tasks}
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(process_id=f"c{number}", rack=rng.choice(racks)) for number in range(count)
        ],
        config=AssignmentConfig(
            num_standby_replicas=1, rack_aware_assignment_strategy="min_traffic"
        ),
        end_offset_sums=dict.fromkeys(tasks, END),
        partition_racks=replicas,
        changelog_racks=replicas,
    )
    last = list(play(state, sticky))[-1]
    gone = rng.randrange(count)
    left = clients_after(last.state, last.assignment)
    return regroup(last.state, [client for number, client in enumerate(left) if number != gone])


def test_crashes_of_groups_with_racks_start_hardly_a_task_cold():
    rounds = [next(iter(play(crashed_group(seed), sticky))) for seed in range(40)]
    takeovers = sum(played.moves.takeovers for played in rounds)
    assert takeovers > 80
    # A few exceed the bands of the clients with their copies.
    assert sum(played.moves.cold for played in rounds) <= takeovers // 20


def replaced_group(seed):
    """A settled group with racks in which one client has left or was replaced."""
    rng = seeded(seed)
    racks = ["r0", "r1", "r2"][: rng.randint(2, 3)]
    count = rng.randint(3, 9)
    size = rng.randint(count, 6 * count) // 2
    tasks = [TaskId(sub, number) for sub in range(2) for number in range(size)]
    replicas = {
        task: tuple(
            frozenset(rng.sample(racks, rng.randint(1, 2))) for _ in range(rng.randint(1, 2))
        )
        for task in tasks
    }
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(process_id=f"c{n}", threads=rng.randint(1, 2), rack=rng.choice(racks))
            for n in range(count)
        ],
        config=AssignmentConfig(
            num_standby_replicas=rng.choice([1, 1, 2]),
            rack_aware_assignment_strategy=rng.choice(["min_traffic", "balance_subtopology"]),
        ),
        end_offset_sums=dict.fromkeys(tasks, END),
        partition_racks=replicas,
        changelog_racks=replicas,
    )
    last = list(play(state, high_availability))[-1]
    gone = rng.randrange(count)
    clients = clients_after(last.state, last.assignment)
    left = [client for number, client in enumerate(clients) if number != gone]
    if rng.random() < 0.5:
        left.append(ClientInput(process_id="new", rack=rng.choice(racks)))
    return regroup(last.state, left)


# In the last one, two placements of equal cost used to alternate.
@pytest.mark.parametrize("seed", [*range(20), 454])
def test_placements_of_equal_cost_do_not_take_turns(seed):
    rounds = list(play(replaced_group(seed), high_availability))
    assert not rounds[-1].assignment.followup
    assert len(rounds) <= 20
