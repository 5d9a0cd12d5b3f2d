"""Decisions on single tasks in the workers of a huge group are those of the core."""

import random
from dataclasses import replace

import numpy as np
import pytest

from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    homes,
    nearest_places,
)
from assignor.placement.standbys import Spread, final_copies
from spark_assign.huge.worker.actives import belonging
from spark_assign.huge.worker.settle import settled
from spark_assign.huge.worker.standbys import Pools, copies_of
from tests.spark_assign.huge import groups

LAGS = (0, 9_000, 15_000, 26_000, 1_000_000, LAG_UNKNOWN)


def with_any_lags(seed):
    """A random group; its owners, as if they restored their tasks, and its copies have any lag."""
    state = groups.random_group(seed, kind="mess", clients=6)
    rng = random.Random(seed)  # noqa: S311 a seed for tests
    lags = [
        rng.choice(LAGS) if lag != LAG_RUNNING or rng.random() < 0.7 else lag
        for lag in state.copy_lag.tolist()
    ]
    threads = np.array([rng.choice([0, 1, 2]) for _ in state.clients])
    return replace(state, copy_lag=np.array(lags, dtype=np.int64), threads=threads)


@pytest.mark.parametrize("seed", range(20))
def test_homes_are_those_of_the_core(seed):
    state = with_any_lags(seed)
    group, rows = groups.group_and_rows(state, "high_availability")
    where = belonging(rows, group)
    assert where.home.tolist() == homes(state).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_a_task_without_a_home_runs_where_the_core_lets_it_run(seed):
    state = with_any_lags(seed)
    group, rows = groups.group_and_rows(state, "high_availability")
    home = homes(state)
    tasks = np.flatnonzero(state.stateful & (home == NOBODY))
    # Clients have any number of tasks; the target may be any that has threads.
    load, usable = np.arange(len(state.clients)), np.flatnonzero(state.capacity())
    target = np.full(len(state.tasks), usable[-1])
    now = settled(
        rows,
        group,
        home=home,
        target=target,
        standbys=np.full((len(target), group.standbys), NOBODY),
        load=load,
    )
    places = nearest_places(state, target, tasks)
    share = load / np.maximum(state.capacity(), 1)
    small = state.starts_anywhere()
    for task in tasks.tolist():
        copies = dict(state.copies(task))
        lag = copies.get(int(target[task]), int(state.end_offset_sums[task]))
        if lag <= state.config.acceptable_recovery_lag:
            assert now.active[task] == target[task]
        elif task in places:
            assert now.active[task] == min(places[task], key=lambda c: (share[c], c))
        elif small[task]:
            assert now.active[task] not in copies or set(copies) >= set(usable.tolist())
        else:
            assert now.active[task] == target[task]


@pytest.mark.parametrize("racks", [0, 3])
@pytest.mark.parametrize("seed", range(10))
def test_the_same_copies_stay_as_standbys_as_in_the_core(seed, racks, monkeypatch):
    # The core chooses anew among few caught-up copies; in a huge group there are more.
    monkeypatch.setattr(final_copies, "_MOST_CHOICES", 0)
    strategy = "min_traffic" if racks else "none"
    state = groups.random_group(seed, racks=racks, strategy=strategy, kind="mess", clients=6)
    group, rows = groups.group_and_rows(state, "high_availability")
    active = np.arange(len(state.tasks)) % len(state.clients)
    copies = copies_of(rows, group, Pools.of(group), active)
    task, column = np.nonzero((copies.kept != NOBODY) & state.stateful[:, None])
    of_core = final_copies._keep(
        state, np.where(state.stateful, active, NOBODY), group.standbys, Spread.of(state)
    )
    found = set(zip(task.tolist(), copies.kept[task, column].tolist(), strict=True))
    expected = zip(*(part.tolist() for part in of_core), strict=True)
    assert found == (set(expected) if group.standbys else set())
