"""Weighted tasks: balance by work, with few moves."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import ClientInput, group_state, high_availability, sticky, validate
from assignor.placement import LAG_RUNNING
from assignor.problems.rounds import clients_after, play, regroup
from encoding import TaskId
from tests.nightly import examples


def group(weights, threads, owners=None, stateless=()):
    tasks = [TaskId(0, p) for p in range(len(weights))]
    own_tasks = [
        [t for t, o in zip(tasks, owners or [], strict=False) if o == c]
        for c in range(len(threads))
    ]
    return group_state(
        tasks=tasks,
        stateful_tasks=[t for t in tasks if t.partition not in stateless],
        clients=[
            ClientInput(
                process_id=f"c{i:02}",
                threads=n,
                active_tasks=frozenset(own_tasks[i]),
                lags=dict.fromkeys(own_tasks[i], LAG_RUNNING),
            )
            for i, n in enumerate(threads)
        ],
        end_offset_sums=dict.fromkeys(tasks, 10**6),
        weights=dict(zip(tasks, weights, strict=True)),
    )


def work(state, active):
    load = np.bincount(active, weights=state.weights, minlength=len(state.clients))
    return load / state.threads


def pareto(seed, count):
    return (np.random.default_rng(seed).pareto(1.2, count) + 1).tolist()


@given(st.integers(0, 10**6))
@settings(max_examples=examples(40), deadline=None)
def test_the_busiest_thread_is_near_the_best_there_is(seed):
    weights = pareto(seed, 60)
    fresh = work(state := group(weights, [1] * 6), sticky(state).active)
    bound = max(sum(weights) / 6, *weights)
    # Heaviest first is within 4/3 of any placement, and near 1 with ten tasks a client.
    assert fresh.max() <= 1.25 * bound


@given(st.integers(0, 10**6))
@settings(max_examples=examples(30), deadline=None)
def test_counts_out_of_balance_are_repaired_with_fewer_than_half_of_a_fresh_placement_s_moves(seed):
    weights = pareto(seed, 60)
    owners = [p % 6 for p in range(60)]
    state = group(weights, [1] * 6, owners)
    repaired = sticky(state).active
    fresh = sticky(group(weights, [1] * 6)).active
    assert work(state, repaired).max() <= 1.04 * work(state, fresh).max() + 1e-9
    assert (repaired != state.owner).sum() < 0.5 * 50


@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=5))
@settings(max_examples=examples(30), deadline=None)
def test_weighted_groups_settle_and_stay(seed, threads):
    state = group(pareto(seed, 24), threads, stateless={1, 5, 9})
    rounds = list(play(state, high_availability))
    last = rounds[-1]
    assert validate(last.state, last.assignment) == ()
    assert not last.assignment.followup
    again = high_availability(regroup(last.state, clients_after(last.state, last.assignment)))
    assert again.active.tolist() == last.assignment.active.tolist()


def test_a_hot_task_gets_a_client_to_itself():
    state = group([10.0, 1, 1, 1, 1], [1, 1], owners=[0, 0, 0, 1, 1])
    active = sticky(state).active
    assert np.flatnonzero(active == active[0]).tolist() == [0]
