"""How the time of an assign call grows with the group, for each event and each feature.

    python -m benchmarks.assign.shapes [--quick] [--least N] [--most N] [--feature NAME ...]
        [--standbys N ...] [--shape NAME ...] [--strategy NAME ...]

Groups have 100 tasks a client and are settled before the event. Sizes double from `--least` to
`--most`; a feature has its own largest size where that is smaller (`LARGEST`). Each figure is the
CPU time of one call, the least of some calls, in a process of its own for each size. The goal for
the growth is 2.3 times the time for twice the tasks; below 0.1 s a ratio says nothing and has no
mark. Exit status 1: a goal is missed.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

from assignor import AssignmentConfig, GroupState, TaskId, find_strategy
from benchmarks.rows import at_most, say

SHAPES = ("steady", "join", "leave", "lost", "restart")
FEATURES = ("plain", "tags", "weights", "min_traffic", "balance_subtopology")
OURS = ("high_availability", "sticky", "fallback_prior")
LARGEST = {
    "plain": 2_000_000,
    "tags": 1_000_000,
    "weights": 1_000_000,
    "min_traffic": 1_000_000,
    "balance_subtopology": 1_000_000,
}
# These two take the standbys and actives of a plain group the same way.
LARGEST_OF_OTHERS = 160_000
GROWTH, JUDGED_FROM, TASKS_A_CLIENT, RACKS, SUBTOPOLOGIES = 2.3, 0.1, 100, 3, 20
ZONES = tuple(f"zone-{number}" for number in range(RACKS))
END, BEHIND = 1_000_000, 20_000


def settled_group(tasks, *, standbys=0, feature="plain", tasks_a_client=TASKS_A_CLIENT):
    """A group at rest: level, every copy caught up, standbys of a client on all others."""
    rng = np.random.default_rng(7)
    clients = max(2 * RACKS, tasks // tasks_a_client // RACKS * RACKS)
    owner = rng.permutation(np.arange(tasks, dtype=np.int64) % clients)
    zones = tuple(ZONES[number % RACKS] for number in range(clients))
    has_racks = feature in ("min_traffic", "balance_subtopology")
    pairs = [frozenset(ZONES) - {zone} for zone in ZONES]
    drawn = tuple((pairs[number],) for number in rng.integers(RACKS, size=tasks).tolist())
    weights = rng.uniform(0.5, 2.0, size=tasks) * np.where(rng.random(tasks) < 0.01, 10, 1)
    subtopology = np.arange(tasks, dtype=np.int64) * SUBTOPOLOGIES // tasks
    partition = np.arange(tasks) - np.searchsorted(subtopology, subtopology)
    state = GroupState(
        tasks=tuple(map(TaskId, subtopology.tolist(), partition.tolist())),
        stateful=np.ones(tasks, dtype=np.bool_),
        subtopology=subtopology,
        clients=tuple(f"client-{number:06}" for number in range(clients)),
        threads=np.ones(clients, dtype=np.int64),
        owner=owner,
        copy_start=np.zeros(tasks + 1, dtype=np.int64),
        copy_client=np.zeros(0, dtype=np.int64),
        copy_lag=np.zeros(0, dtype=np.int64),
        copy_stalled=np.zeros(0, dtype=np.bool_),
        end_offset_sums=np.full(tasks, END, dtype=np.int64),
        racks=zones if has_racks else (None,) * clients,
        tags=tuple((("zone", zone),) for zone in zones) if feature == "tags" else ((),) * clients,
        config=AssignmentConfig(
            num_standby_replicas=standbys,
            rack_aware_assignment_tags=("zone",) if feature == "tags" else (),
            rack_aware_assignment_strategy=feature if has_racks else "none",
        ),
        weights=weights if feature == "weights" else None,
        partition_racks=drawn if has_racks else None,
        changelog_racks=drawn if has_racks else None,
    )
    state = _with_places(state, owner, _standbys_of(owner, clients, standbys))
    if has_racks or feature == "weights":
        # What is level by count is not yet what weights and racks ask for.
        answer = find_strategy("sticky")(state)
        state = _with_places(state, answer.active, answer.standby_table())
    return state


def _standbys_of(owner, clients, standbys):
    """Int [P, 2]: tasks and clients of standbys, in other zones than the owner and each other."""
    order = np.argsort(owner, kind="stable")
    own = owner[order]
    nth = np.arange(len(owner)) - np.searchsorted(own, own)
    layers = [
        np.stack([order, (own + 1 + k + RACKS * (nth % (clients // RACKS))) % clients], axis=1)
        for k in range(standbys)
    ]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *layers])


def _with_places(state, active, standbys):
    """The group when its tasks run on `active` and its standbys, int [P, 2], have caught up."""
    tasks = len(state.tasks)
    rows = np.zeros((tasks + len(standbys), 4), dtype=np.int64)
    rows[:tasks, 0], rows[:tasks, 1], rows[:tasks, 2] = np.arange(tasks), active, -1
    rows[tasks:, :2] = standbys
    return state.with_copies(rows, owner=active)


def after(shape, state):
    """The group after an event: 1 % of its clients join or leave, or all are started anew."""
    share, clients = max(1, len(state.clients) // 100), len(state.clients)
    if shape == "steady":
        return state
    if shape == "restart":
        lags = np.random.default_rng(8).integers(BEHIND, END, size=len(state.copy_lag))
        return replace(state, owner=np.full(len(state.tasks), -1, dtype=np.int64), copy_lag=lags)
    gone = np.random.default_rng(9).choice(clients, size=share, replace=False)
    joined = {"join": share, "leave": 0, "lost": max(1, share // 2)}[shape]
    return _with_clients(state, gone if shape in ("leave", "lost") else gone[:0], joined)


def _with_clients(state, gone, joined):
    """Without the clients `gone`, and with so many that have no state."""
    kept = np.setdiff1d(np.arange(len(state.clients)), gone)
    number = np.full(len(state.clients) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    rows = state.copy_rows()
    rows[:, 1] = number[rows[:, 1]]
    like = kept[:joined].tolist()
    both = [*kept.tolist(), *like]
    names = [state.clients[one] for one in kept.tolist()]
    return state.with_copies(
        rows[rows[:, 1] >= 0],
        owner=number[state.owner],
        clients=(*names, *(f"joined-{one:06}" for one in range(joined))),
        threads=np.ones(len(both), dtype=np.int64),
        racks=tuple(state.racks[one] for one in both),
        tags=tuple(state.tags[one] for one in both),
    )
