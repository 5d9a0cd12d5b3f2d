"""Clients below their share of stateful tasks: the reason, and whether it is a warning."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assignor import (
    AssignmentConfig,
    ClientInput,
    TaskAssignment,
    group_state,
    high_availability,
    read_problem,
    run_strategy,
)
from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    Shortage,
    below_share,
    share_warnings,
    stalled_clients,
    stalled_text,
)
from assignor.problems import play
from encoding import TaskId

PROBLEM = Path(__file__).parents[2] / "problems" / "stuck_newcomer.jsonl"
TASKS = [TaskId(0, number) for number in range(8)]


def group(clients, *, weights=None, **lags):
    """Client a runs all eight tasks; lags of the others: name -> {task: (before, now)}."""
    runs = ClientInput(process_id="a", active_tasks=frozenset(TASKS), lags=dict.fromkeys(TASKS, -1))
    others = [
        ClientInput(
            process_id=name,
            threads=threads,
            lags={TASKS[t]: now for t, (_, now) in lags.get(name, {}).items()},
            lags_before={TASKS[t]: before for t, (before, _) in lags.get(name, {}).items()},
        )
        for name, threads in clients.items()
    ]
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=[runs, *others],
        config=AssignmentConfig(),
        end_offset_sums=dict.fromkeys(TASKS, 1_000_000),
        weights=weights,
    )


def answer(state, *standbys, followup=False, moved=()):
    active = np.zeros(len(state.tasks), dtype=np.int64)
    for task, client in moved:
        active[task] = client
    return TaskAssignment(active=active, standbys=tuple(standbys), followup=followup)


def test_a_client_with_its_share_is_no_finding():
    state = group({"b": 3})
    assert below_share(state, answer(state, moved=[(t, 1) for t in range(6)])) == ()
    [low] = below_share(state, answer(state, moved=[(t, 1) for t in range(5)]))
    assert (low.client, low.held, low.share, low.waiting) == (1, 5, 6, 1)


def test_a_client_without_threads_has_no_share():
    state = group({"b": 0})
    assert below_share(state, answer(state)) == ()


def test_an_ordinary_warm_up_is_no_warning():
    state = group({"b": 1}, b={0: (900_000, 500_000)})
    warming = answer(state, (0, 1), followup=True)
    assert [client.shortage for client in below_share(state, warming)] == [Shortage.WARMING]
    assert share_warnings(state, warming) == ()
    assert share_warnings(state, answer(state, (0, 1))) == (
        (
            "1 client (b runs 0 of 4) is below the share of stateful tasks: "
            "its copies are not caught up yet"
        ),
    )


@pytest.mark.parametrize(
    ("now", "rest"),
    [
        (500_000, "a lag of up to 500,000 records; check the restore on b"),
        (
            LAG_UNKNOWN,
            (
                "an unknown lag; check that the listener on b reports task_offsets, and the restore"
                " there"
            ),
        ),
    ],
)
def test_stalled_copies_are_reported_with_client_tasks_and_lag(now, rest):
    state = group({"b": 1}, b={0: (400_000, now), 1: (9, 400_000)})
    stuck = answer(state, (0, 1), (1, 1), (2, 1))
    [warning] = share_warnings(state, stuck)
    assert warning == (
        "4 tasks wait for client b, which runs 0 of its share of 4: 2 copies there made no "
        f"progress since the last rebalance, with {rest}"
    )
    assert stalled_text(state, stuck) == "4 tasks wait for copies on b that make no progress"
    assert stalled_text(state, answer(state, (0, 1), followup=True)) == ""


def test_a_strategy_that_leaves_tasks_elsewhere_is_reported_once_for_all_clients():
    state = group(dict.fromkeys("bcdef", 1))
    assert share_warnings(state, answer(state)) == (
        (
            "5 clients (b runs 0 of 1, c runs 0 of 1, d runs 0 of 1 and 2 more) are below the "
            "share of stateful tasks: the strategy leaves them elsewhere"
        ),
    )


def test_reasons_and_counts_agree_in_number():
    lags = {name: {number: (900_000, 500_000)} for number, name in enumerate("bc")}
    state = group(dict.fromkeys("bc", 1), **lags)
    [warning] = share_warnings(state, answer(state, (0, 1), (1, 2)))
    assert warning.startswith("2 clients (b runs 0 of 2, c runs 0 of 2) are below")
    assert warning.endswith(": their copies are not caught up yet")
    stuck = {name: {number: (9, 500_000)} for number, name in enumerate("bcde")}
    state = group(dict.fromkeys("bcde", 1), **stuck)
    text = stalled_text(state, answer(state, *((number, number + 1) for number in range(4))))
    assert " on b, c, d and 1 more client that make no progress" in text


def test_weights_are_a_reason_and_no_warning():
    state = group({"b": 1}, weights={TASKS[0]: 9.0})
    uneven = answer(state, moved=[(0, 1)])
    assert [client.shortage for client in below_share(state, uneven)] == [Shortage.WEIGHTS]
    assert share_warnings(state, uneven) == ()


def test_control_characters_of_a_client_are_escaped():
    state = group({"b\x1b[2J": 1})
    assert "\x1b" not in share_warnings(state, answer(state))[0]


def test_a_newcomer_that_never_comes_up_ends_with_a_warning():
    problem = read_problem(json.loads(PROBLEM.read_text(encoding="utf-8")))
    *before, last = play(problem.state, high_availability, stuck={"c3": 180_000})
    assert all(earlier.assignment.warnings == () for earlier in before)
    assert (last.assignment.followup, last.assignment.look_again) == (False, True)
    assert [
        warning for warning in last.assignment.warnings if "180,000" in warning and "c3" in warning
    ]
    assert len(list(play(problem.state, high_availability))) > 1
    assert run_strategy(problem.state, high_availability).warnings == ()


@pytest.mark.parametrize("standbys", [0, 1, 2])
@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("stuck", ["b", "bc", "bcd", "bcde"])
def test_newcomers_that_are_stuck_end_the_rounds_and_starve_no_other(stuck, budget, standbys):
    tasks = [TaskId(0, number) for number in range(10)]
    runs = ClientInput(
        process_id="a",
        active_tasks=frozenset(tasks),
        lags=dict.fromkeys(tasks, LAG_RUNNING),
    )
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[runs, *(ClientInput(process_id=name) for name in "bcde")],
        config=AssignmentConfig(max_warmup_replicas=budget, num_standby_replicas=standbys),
        end_offset_sums=dict.fromkeys(tasks, 1_000_000),
    )
    rounds = list(play(state, high_availability, stuck=dict.fromkeys(stuck, 900_000)))
    last = rounds[-1].assignment
    held = np.bincount(last.active, minlength=5).tolist()
    assert len(rounds) <= 20
    assert (last.followup, last.look_again) == (False, True)
    assert held[1:] == [0 if name in stuck else 2 for name in "bcde"]
    assert all(any(name in warning for warning in last.warnings) for name in stuck)


def above_the_share(standbys):
    """Client a runs four tasks, b and c two each; the share is two to three."""
    runs = {"a": TASKS[:4], "b": TASKS[4:6], "c": TASKS[6:]}
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=[
            ClientInput(
                process_id=name, active_tasks=frozenset(own), lags=dict.fromkeys(own, LAG_RUNNING)
            )
            for name, own in runs.items()
        ],
        config=AssignmentConfig(max_warmup_replicas=1, num_standby_replicas=standbys),
        end_offset_sums=dict.fromkeys(TASKS, 1_000_000),
    )


@pytest.mark.parametrize("standbys", [0, 1, 2])
def test_a_stalled_copy_on_a_client_with_its_share_is_named_too(standbys):
    rounds = play(above_the_share(standbys), high_availability, stuck={"b": 900_000, "c": 900_000})
    *before, last = rounds
    state, end = last.state, last.assignment
    assert all(earlier.assignment.warnings == () for earlier in before)
    assert (end.followup, end.look_again, below_share(state, end)) == (False, True, ())
    copies = "1 copy" if standbys == 0 else "6 copies" if standbys == 2 else "3 copies"
    assert end.warnings[0] == (
        f"client b runs 2 stateful tasks, and {copies} there made no progress since the last "
        "rebalance, with a lag of up to 900,000 records: tasks that are to move there stay on "
        "their previous clients; check the restore on b"
    )
    names = "b" if standbys == 0 else "b, c"
    assert stalled_text(state, end) == f"tasks wait for copies on {names} that make no progress"
    assert stalled_text(state, replace(end, followup=True)) == ""


def test_a_plain_standby_that_stalls_is_no_warning_while_another_client_is_waited_for():
    state = group({"b": 1, "c": 1}, b={0: (9, 500_000)}, c={1: (9, 500_000)})
    runs = [(2, 2), (3, 2)]
    waits = replace(answer(state, (0, 1), (1, 2), moved=runs), look_again=True)
    assert [client.client for client in stalled_clients(state, waits)] == [1]
    for_both = replace(waits, warmups=((1, 2),))
    assert [client.client for client in stalled_clients(state, for_both)] == [1, 2]


def test_a_client_with_its_share_whose_copies_were_given_up_is_named():
    state = replace(group({"b": 1}), stuck=np.array([False, True]))
    waits = replace(answer(state, moved=[(t, 1) for t in range(4)]), look_again=True)
    [warning] = share_warnings(state, waits)
    assert warning == (
        "client b runs 4 stateful tasks, and copies there made no progress and were given up: "
        "tasks that are to move there stay on their previous clients; check the restore on b"
    )
    assert share_warnings(state, replace(waits, look_again=False)) == ()
