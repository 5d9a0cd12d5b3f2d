"""Targets of stateful actives: caught-up copies first, then warm-ups, then even spread."""

import numpy as np
import pytest

from assignor import ClientInput, group_state
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY
from assignor.placement.actives import homes, target_actives
from encoding import TaskId

BIG = 10**6


def group(owners, copies=(), *, clients=3, threads=None, end=BIG, subtopologies=None):
    """Owners by task (NOBODY for none); copies are (task, client, lag)."""
    tasks = [TaskId((subtopologies or [0] * len(owners))[p], p) for p in range(len(owners))]
    lags = [{tasks[t]: LAG_RUNNING for t, o in enumerate(owners) if o == c} for c in range(clients)]
    for task, client, lag in copies:
        lags[client][tasks[task]] = lag
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=f"c{c}",
                threads=(threads or [1] * clients)[c],
                active_tasks=frozenset(tasks[t] for t, o in enumerate(owners) if o == c),
                lags=lags[c],
            )
            for c in range(clients)
        ],
        end_offset_sums=dict.fromkeys(tasks, end),
    )


@pytest.mark.parametrize(
    ("copies", "home"),
    [
        ([], 0),
        ([(0, 0, 20_000)], 0),
        ([(0, 0, 20_000), (0, 1, 5)], NOBODY),
        ([(0, 0, LAG_UNKNOWN), (0, 1, 30_000)], 0),
        ([(0, 0, 10_000), (0, 1, 5)], 0),
    ],
)
def test_home_is_the_owner_while_nobody_else_is_better(copies, home):
    assert homes(group([0], copies)).tolist() == [home]


def test_a_small_task_whose_owner_does_not_know_its_state_has_no_home():
    assert homes(group([0], [(0, 0, LAG_UNKNOWN)], end=10)).tolist() == [NOBODY]
    assert homes(group([0], end=10)).tolist() == [0]


def test_tasks_of_a_crashed_client_go_to_their_standbys_as_far_as_bands_allow():
    target = target_actives(
        group([0, 1, NOBODY, NOBODY], [(2, 0, 0), (3, 0, 0), (3, 1, 0)], clients=2)
    )
    assert target.tolist() == [0, 1, 0, 1]


def test_a_full_standby_moves_one_of_its_tasks_on():
    # 2 has its only copy on 0, which is full; 0's task 1 is ready on 1.
    target = target_actives(group([0, 0, NOBODY, 1], [(2, 0, 0), (1, 1, 0)], clients=2))
    assert target.tolist() == [0, 1, 0, 1]


def test_surplus_goes_directly_to_ready_clients_and_no_further():
    # c0 has 4, c2 none; 3 is ready on c2.
    target = target_actives(group([0, 0, 0, 0, 1, 1], [(3, 2, 0)]))
    assert target[3] == 2
    assert np.bincount(target).tolist() == [2, 2, 2]
    assert int((target != [0, 0, 0, 0, 1, 1]).sum()) == 2


def test_homes_of_a_balanced_group_are_copied():
    state = group([0, 0, 1, 1, 2, 2], [])
    home = homes(state)
    target = target_actives(state, home)
    assert target.tolist() == home.tolist() == [0, 0, 1, 1, 2, 2]
    assert not np.shares_memory(target, home)


def test_a_warm_up_on_its_way_stays_the_destination():
    target = target_actives(group([0, 0, 0, 1, 1, 1], [(1, 2, 400_000), (4, 2, 900_000)]))
    assert (target[1], target[4]) == (2, 2)


def test_the_nearest_copy_wins_where_nobody_is_ready():
    target = target_actives(group([NOBODY], [(0, 0, 90_000), (0, 1, 20_000), (0, 2, LAG_UNKNOWN)]))
    assert target.tolist() == [1]


def test_a_client_without_threads_gets_nothing():
    target = target_actives(group([0, 0, 1, 1], [(0, 1, 0)], clients=2, threads=[0, 2]))
    assert target.tolist() == [1, 1, 1, 1]


def test_a_fresh_group_has_every_subtopology_on_every_client():
    subtopologies = [s for s in range(3) for _ in range(6)]
    state = group([NOBODY] * 18, subtopologies=subtopologies)
    target = target_actives(state)
    for sub in range(3):
        assert np.bincount(target[np.array(subtopologies) == sub]).tolist() == [2, 2, 2]


def test_clients_inside_their_band_give_only_what_others_lack():
    # 5 tasks: bands 1..2; the new client is owed one, which is ready there.
    target = target_actives(group([0, 0, 0, 1, 1], [(4, 2, 0)]))
    assert target.tolist() == [0, 0, target[2], 1, target[4]]
    assert sorted(np.bincount(target).tolist()) == [1, 2, 2]
    assert int((target != [0, 0, 0, 1, 1]).sum()) == 1 + (target[4] == 2 and target[2] != 0)
