"""Bands of all active tasks and of the stateful ones, compared with brute force."""

import random
from itertools import product

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, group_state, high_availability, thread_bands
from assignor.placement import LAG_RUNNING, NOBODY
from assignor.placement.actives import target_actives
from assignor.problems import play
from encoding import TaskId

END = 1_000_000


def group(threads, stateful, stateless, *, owners, copies=(), standbys=0):
    """Owners: a client or None a task, stateful ones first; copies: (task, client, lag)."""
    tasks = [TaskId(0, n) for n in range(stateful)] + [TaskId(1, n) for n in range(stateless)]
    clients = []
    for number, count in enumerate(threads):
        runs = [t for t, owner in zip(tasks, owners, strict=True) if owner == number]
        lags = {tasks[t]: lag for t, client, lag in copies if client == number}
        lags |= {t: LAG_RUNNING for t in runs if t.subtopology == 0}
        clients.append(
            ClientInput(
                process_id=f"c{number}", threads=count, active_tasks=frozenset(runs), lags=lags
            )
        )
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks[:stateful],
        clients=clients,
        config=AssignmentConfig(num_standby_replicas=standbys),
        end_offset_sums=dict.fromkeys(tasks, END),
    )


def outside(capacity, counts):
    """Number of clients outside their band."""
    bands = thread_bands(capacity, int(counts.sum()))
    return int(((counts < bands.low) | (counts > bands.high)).sum())


def counts_of(state, active):
    """Stateful and all active tasks of each client."""
    chosen = (active[state.stateful], active)
    return [np.bincount(part, minlength=len(state.clients)) for part in chosen]


def is_possible(state):
    """Whether any counts of stateful and of all active tasks are inside both bands."""
    capacity, stateful = state.capacity(), int(state.stateful.sum())
    own, least = thread_bands(capacity, stateful), thread_bands(capacity, len(state.tasks)).low
    ranges = (range(low, high + 1) for low, high in zip(own.low, own.high, strict=True))
    return any(
        sum(counts) == stateful and int(np.maximum(counts, least).sum()) <= len(state.tasks)
        for counts in product(*ranges)
    )


def drawn(seed):
    """A group of up to five clients and six tasks: fresh, of one client, or owned at random."""
    rng = random.Random(seed)  # noqa: S311 a test
    clients, tasks = rng.randint(2, 5), rng.randint(2, 6)
    stateful = rng.randint(1, tasks - 1)
    owners = [rng.choice([*range(clients), None]) for _ in range(tasks)]
    owners = rng.choice([owners, owners, [None] * tasks, [0] * tasks])
    return group(
        [rng.randint(1, 4) for _ in range(clients)],
        stateful,
        tasks - stateful,
        owners=owners,
        copies=[
            (task, client, rng.choice([0, 30_000]))
            for task, client in product(range(stateful), range(clients))
            if rng.random() < 0.2
        ],
        standbys=rng.randint(0, 1),
    )


def test_small_groups_end_inside_both_bands_wherever_brute_force_finds_a_way():
    for seed in range(600):
        state = drawn(seed)
        assert is_possible(state), seed
        last = list(play(state, high_availability, rounds_max=60))[-1]
        assert not last.assignment.followup, seed
        found = [
            outside(state.capacity(), counts) for counts in counts_of(state, last.assignment.active)
        ]
        assert found == [0, 0], seed


def test_two_stateful_tasks_leave_the_larger_clients_their_share_of_three():
    # Shares of all tasks: 0.5, 0.5, 1, 1. Two tasks on the small clients would leave one for two.
    state = group([1, 1, 2, 2], 2, 1, owners=[0, 1, None])
    counts = np.bincount(target_actives(state)[:2], minlength=4)
    assert (counts[:2].sum(), counts[2:].sum(), counts.max()) == (1, 1, 1)
    last = list(play(state, high_availability))[-1]
    assert outside(state.capacity(), counts_of(state, last.assignment.active)[1]) == 0


@pytest.mark.parametrize(
    ("owners", "copies", "expected"),
    [
        # One of them is caught up: its task moves without a restore.
        ([0, 1, None], [(1, 3, 0)], [0, 3]),
        # A warm-up continues.
        ([0, 1, None], [(0, 2, 500_000)], [2, 1]),
        # No client runs the second: it moves anyway.
        ([0, None, None], [(1, 1, 400_000)], [0, 2]),
    ],
)
def test_the_cheapest_task_gives_way(owners, copies, expected):
    state = group([1, 1, 2, 2], 2, 1, owners=owners, copies=copies)
    assert target_actives(state)[:2].tolist() == expected


def test_what_is_inside_both_bands_stays():
    state = group([1, 1, 2, 2], 2, 1, owners=[0, 3, 2])
    assert target_actives(state).tolist() == [0, 3, NOBODY]
    assert high_availability(state).active.tolist() == [0, 3, 2]
