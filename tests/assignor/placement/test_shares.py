"""Each client gets its share by threads: after joins, restarts and while copies warm up."""

import numpy as np
import pytest

from assignor import named_strategy, read_problem
from assignor.problems import LagMemory
from assignor.problems.events import play_problem

RUNNING, BEHIND = "running", 20_000


def group(*, stateful=(), stateless=(), clients, **config):
    """A problem whose subtopologies have so many tasks each, those with state first."""
    sizes = [*stateful, *stateless]
    names = [f"{sub}_{task}" for sub, size in enumerate(stateful) for task in range(size)]
    return {
        "name": "shares",
        "config": config,
        "topics": {f"in-{sub}": {"partitions": size} for sub, size in enumerate(sizes)},
        "subtopologies": {
            str(sub): {
                "sources": [f"in-{sub}"],
                "changelogs": [f"store-{sub}-changelog"] if sub < len(stateful) else [],
            }
            for sub in range(len(sizes))
        },
        "end_offset_sums": dict.fromkeys(names, 1_000_000),
        "clients": clients,
    }


def client(threads=1, *, runs=(), standby=(), lag=0):
    lags = dict.fromkeys(runs, RUNNING) | dict.fromkeys(standby, lag)
    return {"threads": threads, "active": list(runs), "standby": list(standby), "lags": lags}


def rounds_of(problem, strategy="high_availability"):
    played = play_problem(read_problem(problem, memory=LagMemory()), named_strategy(strategy))
    return [phase for _, part in played for phase in part]


def actives(played, *, stateful=None):
    """Active tasks of each client, in order."""
    state = played.state
    chosen = np.ones(len(state.tasks), dtype=bool) if stateful is None else state.stateful
    return np.bincount(played.assignment.active[chosen], minlength=len(state.clients)).tolist()


def names(sub, count):
    return [f"{sub}_{task}" for task in range(count)]


@pytest.mark.parametrize("standbys", [0, 1])
@pytest.mark.parametrize("strategy", ["high_availability", "sticky"])
def test_a_second_machine_gets_half_though_no_thread_has_two_tasks(strategy, standbys):
    clients = {"a": client(4, runs=names(0, 4)), "b": client(4)}
    given = group(stateful=[4], clients=clients, **{"num.standby.replicas": standbys})
    assert actives(rounds_of(given, strategy)[-1]) == [2, 2]


def test_the_share_of_all_active_tasks_is_proportional_too():
    clients = {"a": client(4, runs=names(0, 4)), "b": client(4), "c": client(8)}
    assert actives(rounds_of(group(stateless=[4], clients=clients))[-1]) == [1, 1, 2]


@pytest.mark.parametrize("strategy", ["high_availability", "sticky"])
def test_tasks_that_nobody_runs_go_round_when_every_copy_is_behind(strategy):
    all_of = names(0, 8)
    clients = {name: client(8, standby=all_of, lag=BEHIND) for name in "abc"}
    first = rounds_of(group(stateful=[8], clients=clients), strategy)[0]
    assert sorted(actives(first)) == [2, 3, 3]


@pytest.mark.parametrize("strategy", ["high_availability", "sticky"])
def test_no_subtopology_lands_on_one_client_when_every_copy_is_behind(strategy):
    both = [*names(0, 4), *names(1, 4)]
    clients = {name: client(standby=both, lag=BEHIND) for name in "ab"}
    first = rounds_of(group(stateful=[4, 4], clients=clients), strategy)[0]
    active, subtopology = first.assignment.active, first.state.subtopology
    assert [np.bincount(active[subtopology == sub]).tolist() for sub in (0, 1)] == [[2, 2], [2, 2]]


def test_the_nearest_copy_runs_the_task_where_shares_allow():
    clients = {
        "a": client(standby=names(0, 4), lag=BEHIND),
        "b": client(standby=names(0, 4), lag=BEHIND + 1),
    }
    clients["b"]["lags"]["0_3"] = BEHIND - 1
    first = rounds_of(group(stateful=[4], clients=clients))[0]
    assert actives(first) == [2, 2]
    assert first.assignment.active[3] == 1


def test_fresh_stateless_tasks_go_where_least_runs_while_others_warm_up():
    clients = {"a": client(runs=names(0, 4)), "b": client()}
    rounds = rounds_of(group(stateful=[4], stateless=[3], clients=clients))
    assert actives(rounds[0]) == [4, 3]
    assert actives(rounds[0], stateful=True) == [4, 0]
    assert sorted(actives(rounds[-1])) == [3, 4]
    assert actives(rounds[-1], stateful=True) == [2, 2]


def test_a_stateless_task_that_runs_stays_while_others_warm_up():
    clients = {"a": client(runs=[*names(0, 4), "1_0"]), "b": client()}
    first = rounds_of(group(stateful=[4], stateless=[3], clients=clients))[0]
    assert first.assignment.active[4] == 0
    assert actives(first) == [5, 2]


def replaced(lag):
    """Four clients, one of them replaced; its tasks have copies on the others."""
    clients = {}
    for number in range(1, 4):
        own = [f"0_{task}" for task in range(12) if task % 4 == number]
        clients[f"p{number}"] = client(runs=own)
    gone = [f"0_{task}" for task in range(12) if task % 4 == 0]
    for task, name in zip(gone, sorted(clients), strict=True):
        clients[name]["standby"].append(task)
        clients[name]["lags"][task] = lag
    clients["new"] = client()
    return group(stateful=[12], clients=clients, **{"num.standby.replicas": 1})


@pytest.mark.parametrize("lag", [9_000, 12_000])
def test_the_nearest_copies_run_what_nobody_runs_until_an_empty_client_has_caught_up(lag):
    rounds = rounds_of(replaced(lag))
    assert actives(rounds[0]) == [0, 4, 4, 4]
    assert rounds[0].assignment.followup
    assert actives(rounds[-1]) == [3, 3, 3, 3]


def test_a_copy_that_is_hardly_nearer_than_the_target_does_not_run_the_task():
    clients = {
        "a": client(standby=names(0, 4), lag=BEHIND),
        "b": client(standby=names(0, 4), lag=BEHIND + 9_000),
    }
    assert actives(rounds_of(group(stateful=[4], clients=clients))[0]) == [2, 2]


@pytest.mark.parametrize(("lag", "runs"), [(400_000, [0, 1]), (25_000, [1, 0])])
def test_an_owner_that_is_far_behind_hands_over_to_a_copy_that_is_nearly_there(lag, runs):
    clients = {"a": client(runs=["0_0"]), "b": client(standby=["0_0"], lag=BEHIND)}
    clients["a"]["lags"]["0_0"] = lag
    given = group(stateful=[1], clients=clients, **{"num.standby.replicas": 1})
    assert actives(rounds_of(given)[0]) == runs
