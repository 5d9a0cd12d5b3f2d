"""Plans of the huge job compared with plans of the core, on small groups; without Spark."""

from dataclasses import replace

import numpy as np
import pytest

from assignor import high_availability, thread_bands, validate
from assignor.placement import find_strategy
from assignor.problems import measures_of, moves_of, play, totals
from spark_assign.huge.checks import too_many_subtopologies
from spark_assign.huge.worker.answer import COSTS
from tests.nightly import sample
from tests.spark_assign.huge import groups

STRATEGIES = ("sticky", "high_availability")
SEEDS = range(25)
# For what holds for each seed alone.
EACH = sample(SEEDS, every=3, reason="16 more of 25 seeds in seven tests, 12 s")


def threads_apart(state, clients):
    """Most less fewest tasks on a thread, the tasks of a client spread evenly over its threads."""
    capacity = state.capacity()
    count = np.bincount(clients, minlength=len(capacity))
    usable = capacity > 0
    most, least = -(-count[usable] // capacity[usable]), count[usable] // capacity[usable]
    return int(most.max() - least.min())


def traffic_of(state, assignment):
    """Partitions that active tasks read from another rack."""
    return sum(
        state.racks[client] not in racks
        for task, client in enumerate(assignment.active.tolist())
        for racks in state.partition_racks[task]
    )


def rack_cost(state, assignment, traffic, overlap):
    moved = (state.owner >= 0) & (assignment.active != state.owner)
    return traffic * traffic_of(state, assignment) + overlap * int(moved.sum())


def racks_spanned(state, assignment):
    held = {}
    for task, client in assignment.standbys:
        held.setdefault(task, []).append(client)
    return sum(
        len({state.racks[client] for client in (assignment.active[task], *held.get(task, ()))})
        for task in range(len(state.tasks))
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("racks", [0, 3])
def test_plans_are_valid_and_as_balanced_as_those_of_the_core(strategy, racks):
    for seed in EACH:
        state = groups.random_group(seed, racks=racks)
        assignment, info = groups.run_group(state, strategy)
        core = find_strategy(strategy)(state)
        assert validate(state, assignment) == (), seed
        assert len(assignment.standbys) - len(assignment.warmups) == len(core.standbys) - len(
            core.warmups
        )
        assert len(assignment.warmups) <= state.config.max_warmup_replicas
        # Where tasks belong in the end: threads differ by one task at most.
        plan = info.decided.actives
        bands = thread_bands(state.capacity(), int(state.stateful.sum()))
        assert (plan.stateful >= bands.low).all(), seed
        assert (plan.stateful <= bands.high).all(), seed


@pytest.mark.parametrize("kind", ["fresh", "steady", "join", "leave", "mess"])
def test_sticky_moves_no_more_than_the_core_and_is_as_balanced(kind):
    for seed in EACH:
        state = groups.random_group(seed, kind=kind)
        assignment, _ = groups.run_group(state, "sticky")
        core = find_strategy("sticky")(state)
        moves, others = moves_of(state, assignment), moves_of(state, core)
        assert moves.handoffs <= others.handoffs, seed
        assert moves.stateless_moves <= others.stateless_moves, seed
        assert threads_apart(state, assignment.active) <= threads_apart(state, core.active), seed


def test_sticky_moves_the_fewest_tasks_that_bands_allow():
    for seed in EACH:
        state = groups.random_group(seed, kind="join", standbys=0)
        assignment, info = groups.run_group(state, "sticky")
        homes, quota = info.decided.actives.homes, info.decided.actives.stateful
        assert moves_of(state, assignment).handoffs == int(np.maximum(homes - quota, 0).sum()), seed


@pytest.mark.parametrize("racks", ["none", "min_traffic", "balance_subtopology"])
def test_no_more_tasks_are_started_behind_than_by_the_core(racks):
    for seed in EACH:
        state = groups.random_group(seed, racks=3, strategy=racks)
        assignment, _ = groups.run_group(state, "high_availability")
        core = high_availability(state)
        assert moves_of(state, assignment).cold <= moves_of(state, core).cold, seed


def test_caught_up_copy_takes_over_when_a_client_is_lost():
    for seed in EACH:
        state = groups.random_group(seed, kind="leave", standbys=1)
        assignment, _ = groups.run_group(state, "high_availability")
        assert moves_of(state, assignment).cold == 0, seed


def test_plans_settle_in_as_many_rounds_as_those_of_the_core():
    rounds = {"huge": 0, "core": 0}
    costs = dict(rounds)
    for seed in range(12):
        state = groups.random_group(seed)
        huge = list(play(state, lambda s: groups.run_group(s, "high_availability")[0]))
        core = list(play(state, high_availability))
        for name, played in (("huge", huge), ("core", core)):
            rounds[name] += len(played)
            # A task that is started behind saves a later hand-off, so it counts too.
            costs[name] += totals(played)["handoffs"] + totals(played)["cold"]
    assert rounds["huge"] <= 1.25 * rounds["core"]
    assert costs["huge"] <= costs["core"]


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_rack_cost_is_that_of_the_core(strategy):
    gaps = costs = others = 0
    for seed in SEEDS:
        state = groups.random_group(seed, racks=3, strategy=strategy, standbys=0, clients=6)
        assignment, info = groups.run_group(state, "sticky")
        core = find_strategy("sticky")(state)
        plan = info.decided.actives
        assert plan.cost >= plan.bound, seed
        gaps += plan.cost - plan.bound
        costs += rack_cost(state, assignment, 1, 10)
        others += rack_cost(state, core, 1, 10)
    assert gaps == 0
    # Quotas may differ where several are as near to what clients hold.
    assert costs <= 1.02 * others


def test_rack_optimum_is_reached_if_clients_have_many_classes():
    for seed in range(10):
        state = groups.random_group(
            seed, racks=4, strategy="min_traffic", standbys=0, clients=8, size=120, kind="join"
        )
        _, info = groups.run_group(state, "high_availability")
        plan = info.decided.actives
        assert plan.cost == plan.bound, seed
        sticky, info = groups.run_group(state, "sticky")
        stateful = state.stateful
        moved = stateful & (sticky.active != state.owner) & (state.owner >= 0)
        assert info.decided.actives.cost == info.decided.actives.bound, seed
        assert moved.any()


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_rack_cost_is_near_the_optimum_if_clients_of_a_rack_share_a_node(strategy, monkeypatch):
    monkeypatch.setattr("spark_assign.huge.driver.racks._EXACT_ARCS", 250)
    for seed in range(2):
        state = groups.random_group(
            seed, racks=5, strategy=strategy, standbys=0, clients=60, size=700, kind="join"
        )
        assignment, info = groups.run_group(state, "sticky")
        plan = info.decided.actives
        assert plan.bound <= plan.cost <= 1.01 * plan.bound, seed
        assert validate(state, assignment) == ()


def test_copies_are_spread_over_racks_as_in_the_core():
    for seed in EACH:
        state = groups.random_group(seed, racks=3)
        assignment, _ = groups.run_group(state, "sticky")
        core = find_strategy("sticky")(state)
        assert racks_spanned(state, assignment) >= racks_spanned(state, core), seed


def test_total_load_is_balanced_with_many_clients():
    for seed in range(12):
        state = groups.random_group(seed, clients=30, size=200, kind="join", standbys=1)
        assignment, info = groups.run_group(state, "sticky")
        standbys = np.array(assignment.standbys, dtype=np.int64).reshape(-1, 2)[:, 1]
        everything = np.concatenate([assignment.active, standbys])
        assert threads_apart(state, everything) <= 2, seed
        assert info.decided.copies is None or info.decided.copies.above == 0


def test_standbys_of_one_client_are_spread_over_many_others():
    state = groups.random_group(1, clients=40, size=800, kind="fresh", standbys=1)
    assignment, _ = groups.run_group(state, "sticky")
    pairs = {}
    for task, client in assignment.standbys:
        pairs.setdefault(int(assignment.active[task]), []).append(client)
    worst = max(np.bincount(held).max() / len(held) for held in pairs.values())
    assert worst <= 0.15


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sorted_tables_give_the_same_plan_for_any_number_of_chunks(strategy):
    for seed in range(30):
        state = groups.random_group(seed, racks=3, size=20, clients=7)
        whole, _ = groups.run_group(state, strategy, chunks=1, batch=1_000)
        many, _ = groups.run_group(state, strategy, chunks=5, batch=1_000)
        assert whole.active.tolist() == many.active.tolist(), seed


def test_more_subtopologies_than_buckets_are_a_warning():
    state = groups.random_group(1, kind="fresh", clients=4, size=4)
    _, info = groups.run_group(state, "sticky")
    numbers = np.array([[n, 1, 0, 0] for n in range(65)], dtype=np.int64)
    assert too_many_subtopologies(info.group, numbers[:64]) == []
    [warning] = too_many_subtopologies(info.group, numbers)
    assert warning.startswith("65 subtopologies are balanced as 64:")


def test_costs_of_the_last_pass_are_those_of_the_plan():
    for seed in EACH:
        state = groups.random_group(seed, racks=3)
        assignment, info = groups.run_group(state, "high_availability")
        moves = moves_of(state, assignment)
        counts = [row for row in info.placed.column("costs").to_pylist() if row is not None]
        costs = dict(zip(COSTS, np.sum(counts, axis=0).tolist(), strict=True))
        assert costs["tasks"] == len(state.tasks)
        assert costs["standbys"] + costs["warmups"] == len(assignment.standbys)
        assert costs["warmups"] == len(assignment.warmups)
        assert costs["moved"] == moves.handoffs + moves.stateless_moves
        assert costs["restores"] == moves.restores
        assert costs["cold"] == moves.cold


@pytest.mark.parametrize("kind", ["fresh", "steady", "join", "leave", "mess"])
def test_gain_of_a_plan_that_is_settled_at_once_is_that_of_the_core(kind):
    for seed in SEEDS[:8]:
        state = groups.random_group(seed, kind=kind)
        assignment, info = groups.run_group(state, "sticky")
        measures, gain = measures_of(state, assignment), info.decided.gain
        counts = [row for row in info.placed.column("costs").to_pylist() if row is not None]
        costs = dict(zip(COSTS, np.sum(counts, axis=0).tolist(), strict=True))
        assert (gain.gained(costs), costs["touched"]) == (measures.gained, measures.touched), seed
        assert gain.balance_before == measures.balance_before, seed
        assert gain.balance_settled == measures.balance_settled, seed


def test_gain_of_a_plan_that_warms_up_is_that_of_its_last_round():
    for seed in SEEDS[:8]:
        state = groups.random_group(seed, kind="join", standbys=1)
        _, info = groups.run_group(state, "high_availability")
        *_, last = play(state, lambda s: groups.run_group(s, "high_availability")[0])
        before, settled = state.owner, last.assignment.active
        gain = info.decided.gain
        assert gain.balance_before == measures_of(state, last.assignment).balance_before, seed
        assert gain.balance_settled == measures_of(state, last.assignment).balance_after, seed
        counts = [row for row in info.placed.column("costs").to_pylist() if row is not None]
        costs = dict(zip(COSTS, np.sum(counts, axis=0).tolist(), strict=True))
        assert costs["touched"] >= int(((before >= 0) & (before != settled)).sum()), seed


@pytest.mark.parametrize(
    ("racks", "are_partitions_known", "expected"),
    [
        ((None,) * 5, True, ["min_traffic has no effect: no client has a rack; set client.rack"]),
        (
            ("rack-0", None, "rack-1", None, "rack-2"),
            True,
            ["client-1, client-3 have no rack and keep their tasks under min_traffic; set"],
        ),
        (
            ("rack-0", None, "rack-1", "rack-1", "rack-2"),
            False,
            ["client-1 has no rack and keeps its tasks under min_traffic", "no replica racks of"],
        ),
    ],
)
def test_warnings_about_unknown_racks_are_those_of_the_core(racks, are_partitions_known, expected):
    state = groups.random_group(
        3, racks=3, strategy="min_traffic", standbys=0, kind="steady", clients=5, size=6
    )
    known = state.partition_racks if are_partitions_known else None
    state = replace(state, racks=racks, partition_racks=known)
    core = find_strategy("high_availability")(state)
    _, info = groups.run_group(state, "high_availability")
    found = [warning for warning in info.warnings if "rack" in warning]
    assert found == [warning for warning in core.warnings if "rack" in warning]
    assert len(found) == len(expected)
    assert all(text in warning for text, warning in zip(expected, found, strict=True))
