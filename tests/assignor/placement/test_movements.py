"""Movements: no task starts on a lagging client, and extra copies stay within the budget."""

import numpy as np

from assignor import AssignmentConfig, ClientInput, group_state
from assignor.placement import LAG_RUNNING
from assignor.placement.movements import actives_now, settle
from assignor.placement.standbys.final_copies import Standbys
from encoding import TaskId


def group(lags, *, owner=0, standbys=0, warmups=2, stalled=(), tasks=1):
    """Every task has the same copies: lags by client (None: no state)."""
    ids = [TaskId(0, p) for p in range(tasks)]
    return group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=[
            ClientInput(
                process_id=f"c{c}",
                active_tasks=frozenset(ids) if c == owner else frozenset(),
                lags={} if lag is None else dict.fromkeys(ids, lag),
                lags_before=dict.fromkeys(ids, lag) if c in stalled else {},
            )
            for c, lag in enumerate(lags)
        ],
        config=AssignmentConfig(num_standby_replicas=standbys, max_warmup_replicas=warmups),
        end_offset_sums=dict.fromkeys(ids, 10**6),
    )


def now(lags, target, home):
    return actives_now(group(lags), np.array([target]), np.array([home])).tolist()


def test_who_runs_a_task_now():
    assert now([LAG_RUNNING, 5, None], 1, 0) == [1]
    assert now([LAG_RUNNING, 50_000, None], 1, 0) == [0]
    # Without a home: a ready client, else the target.
    assert now([None, 50_000, 7], 1, -1) == [2]
    assert now([None, 50_000, None], 1, -1) == [1]


def place(state, target, standbys=()):
    columns = np.array(standbys, dtype=np.int64).reshape(-1, 2)
    total = len(state.tasks)
    target = np.full(total, target)
    running = actives_now(state, target, state.owner)
    return settle(
        state,
        target=target,
        now=running,
        standbys=Standbys(task=columns[:, 0], client=columns[:, 1]),
    )


def test_warm_ups_stay_within_the_budget_and_ask_for_a_follow_up():
    answer = place(group([LAG_RUNNING, None], tasks=5), 1)
    assert answer.active.tolist() == [0] * 5
    assert answer.warmups == ((0, 1), (1, 1))
    assert answer.standbys == answer.warmups
    assert answer.followup


def test_a_free_standby_place_costs_no_budget():
    answer = place(group([LAG_RUNNING, None, None], tasks=5, standbys=1), 1)
    assert answer.standbys == tuple((t, 1) for t in range(5))
    assert answer.warmups == ()
    assert answer.followup


def test_a_standby_that_moves_keeps_its_old_copy_until_the_new_one_is_ready():
    answer = place(group([LAG_RUNNING, 0, None], standbys=1), 0, [(0, 2)])
    assert answer.standbys == ((0, 1), (0, 2))
    assert answer.warmups == ((0, 2),)
    assert answer.followup
    ready = place(group([LAG_RUNNING, 0, 0], standbys=1), 0, [(0, 2)])
    assert ready.standbys == ((0, 2),)
    assert not ready.followup


def test_a_new_standby_without_a_stand_in_is_waited_for_by_nobody():
    answer = place(group([LAG_RUNNING, None], standbys=1), 0, [(0, 1)])
    assert (answer.standbys, answer.warmups, answer.followup) == (((0, 1),), (), False)


def test_the_standby_is_ready_to_stay_when_the_old_owner_becomes_it():
    answer = place(group([LAG_RUNNING, 0], standbys=1), 1, [(0, 0)])
    assert answer.active.tolist() == [1]
    assert answer.standbys == ((0, 0),)
    assert not answer.followup


def test_a_copy_that_comes_no_nearer_stays_without_keeping_the_group_probing():
    answer = place(group([LAG_RUNNING, 50_000], stalled=(1,)), 1)
    assert answer.warmups == ((0, 1),)
    assert not answer.followup


def test_copies_that_come_nearer_go_before_those_that_do_not():
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id="a",
                active_tasks=frozenset(tasks),
                lags=dict.fromkeys(tasks, LAG_RUNNING),
            ),
            ClientInput(process_id="b", lags={tasks[0]: 50_000}, lags_before={tasks[0]: 50_000}),
            ClientInput(process_id="c"),
        ],
        config=AssignmentConfig(max_warmup_replicas=1),
        end_offset_sums=dict.fromkeys(tasks, 10**6),
    )
    nothing = np.zeros(0, dtype=np.int64)
    answer = settle(
        state,
        target=np.array([1, 2]),
        now=np.array([0, 0]),
        standbys=Standbys(task=nothing, client=nothing),
    )
    assert answer.warmups == ((1, 2),)
    assert answer.followup
