"""`high_availability` compared with Kafka's assignor on the same problems."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import (
    AssignmentConfig,
    ClientInput,
    group_state,
    high_availability,
    read_problem,
    validate,
)
from assignor.placement import LAG_RUNNING
from assignor.problems.events import play_problem
from assignor.problems.rounds import clients_after, play, regroup, totals
from encoding import TaskId
from tests.nightly import examples

FILE = Path(__file__).parents[1] / "problems" / "open_sample.jsonl.gz"
PROBLEMS = {
    data["name"]: data for data in map(json.loads, gzip.decompress(FILE.read_bytes()).splitlines())
}


def rounds_of(name):
    return [
        r for _, part in play_problem(read_problem(PROBLEMS[name]), high_availability) for r in part
    ]


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_no_problem_costs_more_than_kafka_and_nothing_starts_cold(name):
    kafka = PROBLEMS[name]["note"]["kafka"]
    rounds = rounds_of(name)
    native = totals(rounds)
    assert not rounds[-1].assignment.followup
    assert native["cold"] == 0
    if kafka["converged"]:
        worse = {
            k: (native[k], kafka[k])
            for k in ("rounds", "handoffs", "restores")
            if native[k] > kafka[k]
        }
        assert worse == {}
    for played in rounds:
        assert validate(played.state, played.assignment) == ()


def test_together_they_cost_a_fraction_of_kafka():
    settled = [n for n in PROBLEMS if PROBLEMS[n]["note"]["kafka"]["converged"]]
    native, kafka = {}, {}
    for name in settled:
        for key, value in totals(rounds_of(name)).items():
            native[key] = native.get(key, 0) + value
            kafka[key] = kafka.get(key, 0) + PROBLEMS[name]["note"]["kafka"].get(key, 0)
    assert native["handoffs"] <= 0.25 * kafka["handoffs"]
    assert native["restores"] <= 0.7 * kafka["restores"]
    assert native["rounds"] <= 0.4 * kafka["rounds"]
    assert native["stateless_moves"] <= 0.1 * kafka["stateless_moves"]


def spread_group(clients, *, tasks=240, standbys=1):
    ids = [TaskId(s, p) for s in range(4) for p in range(tasks // 4)]
    return group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=[ClientInput(process_id=f"c{i:02}") for i in range(clients)],
        config=AssignmentConfig(num_standby_replicas=standbys),
        end_offset_sums=dict.fromkeys(ids, 10**6),
    )


@pytest.mark.parametrize(
    ("tasks", "clients", "standbys"), [(240, 12, 1), (240, 12, 2), (1000, 20, 1)]
)
def test_a_crash_is_shared_by_all_survivors(tasks, clients, standbys):
    state = spread_group(clients, tasks=tasks, standbys=standbys)
    answer = high_availability(state)
    holders = {}
    for task, client in answer.standbys:
        holders.setdefault(task, []).append(client)
    load = np.bincount(answer.active, minlength=clients)
    for crashed in range(clients):
        after = load.copy()
        for task in np.flatnonzero(answer.active == crashed).tolist():
            heir = min(holders[task], key=lambda c: (after[c], c))
            after[heir] += 1
        worst = max(after[c] for c in range(clients) if c != crashed)
        assert worst <= 1.2 * tasks / (clients - 1)


def test_one_joining_client_takes_its_share_in_as_many_rounds_as_the_warm_ups_need():
    state = spread_group(12)
    [settled] = play(state, high_availability)
    clients = [*clients_after(settled.state, settled.assignment), ClientInput(process_id="new")]
    rounds = list(play(regroup(state, clients), high_availability))
    cost = totals(rounds)
    # 240 tasks on 13 clients: 18 for the new one, two warm-ups at a time.
    assert cost["handoffs"] == 18
    assert cost["restores"] <= 18 + 20
    assert cost["rounds"] <= 12 + 10
    assert cost["cold"] == 0
    assert np.bincount(rounds[-1].assignment.active, minlength=13).tolist().count(18) >= 1


def test_a_crash_with_standbys_moves_nothing_that_still_runs():
    state = spread_group(12)
    [settled] = play(state, high_availability)
    clients = clients_after(settled.state, settled.assignment)[1:]
    rounds = list(play(regroup(state, clients), high_availability))
    cost = totals(rounds)
    assert cost["takeovers"] == 20
    assert cost["cold"] == 0
    assert cost["handoffs"] <= 2
    assert cost["restores"] <= 42


def test_the_active_stays_on_its_owner_until_the_new_place_has_caught_up():
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    owner = ClientInput(
        process_id="a", active_tasks=frozenset(tasks), lags=dict.fromkeys(tasks, LAG_RUNNING)
    )
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[owner, ClientInput(process_id="b")],
        end_offset_sums=dict.fromkeys(tasks, 10**6),
    )
    answer = high_availability(state)
    assert answer.active.tolist() == [0, 0]
    assert len(answer.warmups) == 1
    assert answer.followup
    [(task, client)] = answer.warmups
    after = high_availability(regroup(state, clients_after(state, answer)))
    assert after.active[task] == client == 1
    assert not after.followup


def test_a_task_that_restores_little_moves_at_once():
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    owner = ClientInput(
        process_id="a", active_tasks=frozenset(tasks), lags=dict.fromkeys(tasks, LAG_RUNNING)
    )
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[owner, ClientInput(process_id="b")],
        end_offset_sums=dict.fromkeys(tasks, 10),
    )
    answer = high_availability(state)
    assert sorted(answer.active.tolist()) == [0, 1]
    assert not answer.followup


@given(st.sampled_from(sorted(PROBLEMS)), st.randoms())
@settings(max_examples=examples(25), deadline=None)
def test_the_order_of_the_input_changes_nothing(name, random):
    def shuffled(value):
        if isinstance(value, dict):
            keys = list(value)
            random.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return value

    data = PROBLEMS[name]
    first = high_availability(read_problem(data).state)
    mixed = {
        **data,
        **{k: shuffled(data[k]) for k in ("clients", "subtopologies", "end_offset_sums")},
    }
    for client in mixed["clients"].values():
        for key in ("active", "standby"):
            client[key] = random.sample(client[key], len(client[key]))
    second = high_availability(read_problem(mixed).state)
    assert first.active.tolist() == second.active.tolist()
    assert first.standbys == second.standbys
    assert first.warmups == second.warmups
