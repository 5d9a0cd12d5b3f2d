"""Tasks moved along chains of caught-up clients."""

import numpy as np

from assignor import AssignmentConfig, ClientInput, group_state
from assignor.placement import LAG_RUNNING
from assignor.placement.actives import homes
from assignor.placement.handover_paths import moved_along_hot_paths
from assignor.placement.state import NOBODY
from encoding import TaskId

END = 10**6


def group(clients, tasks, *, ends=END):
    """Clients as name -> (tasks that run there, tasks that it is caught up on)."""
    ids = [TaskId(0, n) for n in range(tasks)]
    return group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=[
            ClientInput(
                process_id=name,
                active_tasks=frozenset(ids[n] for n in runs),
                lags={ids[n]: LAG_RUNNING for n in runs} | {ids[n]: 3 for n in has},
            )
            for name, (runs, has) in clients.items()
        ],
        config=AssignmentConfig(num_standby_replicas=1),
        end_offset_sums=dict.fromkeys(ids, ends),
    )


def placed(state):
    home = homes(state)
    count = np.bincount(home[home != NOBODY], minlength=len(state.clients)).astype(np.int64)
    return moved_along_hot_paths(state, home, count).tolist()


def test_a_homeless_task_goes_to_the_caught_up_client_with_free_capacity():
    assert placed(group({"a": ([0, 1], [3]), "b": ([2], [3])}, 4)) == [0, 0, 1, 1]


def test_homeless_tasks_move_on_for_each_other_before_a_task_leaves_home():
    # 0 fits on a and b, 1 only on a, which 0 took first; then 2 needs b, and all shift to c.
    state = group({"a": ([3], [0, 1]), "b": ([4], [0, 2]), "c": ([], [0])}, 5)
    assert placed(state) == [2, 0, 1, 0, 1]


def test_one_task_leaves_home_for_a_homeless_one_that_has_nowhere_else_to_go():
    # a is full, and only b has free capacity, for a task of a that b is caught up on.
    state = group({"a": ([0, 1], [3]), "b": ([2], [0])}, 4)
    assert placed(state) == [1, 0, 1, 0]


def test_two_tasks_do_not_leave_home_for_one():
    # From a by way of b to c: two hand-offs would save one restore.
    state = group({"a": ([0, 1], [6]), "b": ([2, 3], [0]), "c": ([4], [2]), "d": ([5], [])}, 7)
    assert placed(state)[6] == NOBODY
    assert placed(state)[:6] == [0, 0, 1, 1, 2, 3]


def test_a_client_inside_its_band_lets_another_one_give_instead():
    # Bands of b are 2 to 4, of which one place is left; a lacks one task, and caught up is only b.
    ids = [TaskId(0, n) for n in range(5)]
    clients = [
        ClientInput(process_id="a", lags={ids[4]: 3}),
        ClientInput(
            process_id="b",
            threads=2,
            active_tasks=frozenset(ids[:3]),
            lags=dict.fromkeys(ids[:3], LAG_RUNNING) | dict.fromkeys(ids[3:], 3),
        ),
    ]
    state = group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=clients,
        end_offset_sums=dict.fromkeys(ids, END),
    )
    assert placed(state) == [1, 1, 1, 1, 0]


def test_small_tasks_without_a_home_give_their_places_up_since_they_start_anywhere():
    ids = [TaskId(0, n) for n in range(4)]
    ends = dict.fromkeys(ids, END) | {ids[3]: 20}
    first, second = frozenset(ids[:1]), frozenset(ids[1:2])
    lags = {ids[0]: LAG_RUNNING, ids[2]: 3, ids[3]: 3}
    clients = [
        ClientInput(process_id="a", active_tasks=first, lags=lags),
        ClientInput(process_id="b", active_tasks=second, lags={ids[1]: LAG_RUNNING}),
    ]
    state = group_state(tasks=ids, stateful_tasks=ids, clients=clients, end_offset_sums=ends)
    assert placed(state)[2] == 0
    assert placed(state)[3] in (1, NOBODY)
