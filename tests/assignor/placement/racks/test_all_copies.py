import numpy as np
import pytest

from assignor import AssignmentConfig
from assignor.placement.racks.all_copies import optimize_together
from assignor.placement.racks.optimise import optimize_active, optimize_standbys, rack_costs
from assignor.placement.state import LAG_RUNNING, ClientInput, group_state
from encoding import TaskId
from tests.assignor.placement.racks.groups import (
    active_cost,
    draw_replicas,
    seeded,
    standby_cost,
    values_of,
)


def group(racks, sources, changelogs, *, owner=None, strategy="min_traffic"):
    tasks = [TaskId(number % 2, number // 2) for number in range(len(sources))]
    owner = owner or [None] * len(tasks)
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=f"c{number:02}",
                rack=rack,
                active_tasks=frozenset(t for t, o in zip(tasks, owner, strict=True) if o == number),
                lags={t: LAG_RUNNING for t, o in zip(tasks, owner, strict=True) if o == number},
            )
            for number, rack in enumerate(racks)
        ],
        config=AssignmentConfig(num_standby_replicas=1, rack_aware_assignment_strategy=strategy),
        end_offset_sums=dict.fromkeys(tasks, 9),
        partition_racks=dict(zip(tasks, sources, strict=True)),
        changelog_racks=dict(zip(tasks, changelogs, strict=True)),
    )


def racks_of(*racks):
    return (frozenset(racks),)


def test_actives_that_cost_the_same_change_places_for_the_sake_of_standbys():
    # Sources are in all racks; each changelog is in the rack of the other task's standby.
    state = group(["a", "b"], [racks_of("a", "b")] * 2, [racks_of("a"), racks_of("b")])
    active, pairs = np.array([0, 1]), ((0, 1), (1, 0))
    assert optimize_standbys(state, active, pairs)[0] == pairs, "alone they are stuck"
    placed, after, warnings = optimize_together(state, active, pairs)
    assert placed.tolist() == [1, 0]
    assert after == ((0, 0), (1, 1))
    assert warnings == ()


def test_an_active_that_runs_where_it_is_near_does_not_move_for_a_standby():
    state = group(
        ["a", "b"], [racks_of("a"), racks_of("b")], [racks_of("a"), racks_of("b")], owner=[0, 1]
    )
    active, pairs = np.array([0, 1]), ((0, 1), (1, 0))
    placed, after, _ = optimize_together(state, active, pairs)
    assert placed.tolist() == [0, 1]
    assert after == pairs


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_actives_never_cost_more_and_standbys_never_either(strategy):
    gained = 0
    for seed in range(40):
        rng = seeded(seed)
        racks = ["a", "b", "c"][: rng.randint(2, 3)]
        at = [rng.choice(racks) for _ in range(rng.randint(3, 8))]
        total = 2 * rng.randint(2, 15)
        replicas = [[draw_replicas(rng, racks) for _ in range(total)] for _ in range(2)]
        owner = [rng.choice([None, rng.randrange(len(at))]) for _ in range(total)]
        state = group(at, *replicas, owner=owner, strategy=strategy)
        start = np.array([number % len(at) for number in range(total)])
        active, _ = optimize_active(state, start)
        pairs = tuple((t, (int(active[t]) + 1) % len(at)) for t in range(total))
        alone, _ = optimize_standbys(state, active, pairs)
        placed, after, _ = optimize_together(state, active, pairs)
        costs = rack_costs(state)
        before, now = (
            sum(active_cost(state, t, int(a[t]), costs, active) for t in range(total))
            for a in (active, placed)
        )
        assert now == before
        assert standby_cost(state, after, costs) <= standby_cost(state, alone, costs)
        gained += standby_cost(state, after, costs) < standby_cost(state, alone, costs)
        assert sorted(placed) == sorted(active)
        assert sorted(c for _, c in after) == sorted(c for _, c in pairs)
        assert all(placed[t] != c for t, c in after)
        apart = [
            sum(values_of(state, [a[t], c], spread_racks=True) for t, c in p)
            for a, p in ((active, pairs), (placed, after))
        ]
        assert apart[1] >= apart[0]
        for sub in (0, 1) if strategy == "balance_subtopology" else ():
            own = state.subtopology == sub
            assert sorted(placed[own]) == sorted(active[own])
    assert gained


def test_without_a_strategy_nothing_changes():
    state = group(
        ["a", "b"], [racks_of("a", "b")] * 2, [racks_of("a"), racks_of("b")], strategy="none"
    )
    active, pairs = np.array([0, 1]), ((0, 1), (1, 0))
    placed, after, _ = optimize_together(state, active, pairs)
    assert (placed.tolist(), after) == ([0, 1], pairs)
