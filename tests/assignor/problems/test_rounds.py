"""Groups over several rounds: after any event every strategy settles without a violation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import AssignmentConfig, ClientInput, TaskAssignment, group_state, sticky, validate
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN
from assignor.placement.builtin import high_availability
from assignor.problems.rounds import clients_after, moves_of, peak_load, play, regroup, totals
from encoding import TaskId
from tests.nightly import examples

END = 50_000
RACKS = ("r0", "r1", "r2")
STRATEGIES = ("min_traffic", "balance_subtopology")


@st.composite
def groups(draw, *, racks=False, tags=False, weights=False, costs=False):
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    tasks = [TaskId(s, p) for s, n in enumerate(sizes) for p in range(n)]
    stateful = [t for t in tasks if t.subtopology in draw(st.just({0, 1, 3}))]
    config = AssignmentConfig(
        num_standby_replicas=draw(st.integers(0, 2)),
        max_warmup_replicas=draw(st.integers(1, 4)),
        rack_aware_assignment_tags=("zone",) if tags else (),
        rack_aware_assignment_strategy=draw(st.sampled_from(STRATEGIES)) if costs else "none",
    )
    replicas = {t: (frozenset({draw(st.sampled_from(RACKS))}),) for t in tasks} if costs else None
    clients = [
        client(draw, f"c{i:02}", racks=racks, tags=tags) for i in range(draw(st.integers(1, 6)))
    ]
    return group_state(
        tasks=tasks,
        stateful_tasks=stateful,
        clients=clients,
        config=config,
        end_offset_sums=dict.fromkeys(tasks, END),
        weights={t: 1.0 + 9 * (t.partition % 5 == 0) for t in tasks} if weights else None,
        partition_racks=replicas,
        changelog_racks=replicas,
    )


def client(draw, name, *, racks=False, tags=False):
    return ClientInput(
        process_id=name,
        threads=draw(st.integers(1, 4)),
        rack=draw(st.sampled_from(RACKS)) if racks else None,
        tags=(("zone", draw(st.sampled_from("abc"))),) if tags else (),
    )


@st.composite
def lives(draw, **kinds):
    """A group, and events for its clients."""
    state = draw(groups(**kinds))
    events = draw(
        st.lists(
            st.tuples(
                st.sampled_from(("join", "leave", "crash back", "replace", "rolling bounce")),
                st.integers(0, 9),
            ),
            max_size=4,
        )
    )
    joining = [
        client(draw, f"new{i}", **{k: v for k, v in kinds.items() if k in ("racks", "tags")})
        for i in range(4)
    ]
    return state, events, joining


def happen(clients, event, pick, new):
    """The clients after an event. `crash back`: one lost its tasks, and its state is far behind."""
    chosen = pick % len(clients)
    if event == "join":
        return [*clients, new]
    if event == "leave" and len(clients) > 1:
        return clients[:chosen] + clients[chosen + 1 :]
    if event == "replace":
        return [*clients[:chosen], *clients[chosen + 1 :], new]
    if event == "crash back":
        old = clients[chosen]
        back = replace(
            old, active_tasks=frozenset(), lags=dict.fromkeys(old.lags, 20_000), lags_before={}
        )
        return [*clients[:chosen], back, *clients[chosen + 1 :]]
    return clients


def run_scenario(state, events, joining, strategy):
    """Every round, phase by phase; the last round of a phase is settled."""
    rounds = list(play(state, strategy))
    yield rounds
    for (event, pick), new in zip(events, joining, strict=False):
        last = rounds[-1]
        if event == "rolling bounce":
            for rounds in bounced(last, strategy):
                yield rounds
            continue
        clients = happen(clients_after(last.state, last.assignment), event, pick, new)
        rounds = list(play(regroup(last.state, clients), strategy))
        yield rounds


def bounced(last, strategy):
    """Every client stops for one rebalance and returns with its state, slightly behind.

    The next client stops before the group has settled; after the last one it settles.
    """
    for name in [client.process_id for client in clients_after(last.state, last.assignment)]:
        clients = clients_after(last.state, last.assignment)
        old = next(client for client in clients if client.process_id == name)
        others = [client for client in clients if client is not old]
        if others:
            [*_, last] = away = list(play(regroup(last.state, others), strategy, rounds_max=1))
            yield away
            others = clients_after(last.state, last.assignment)
        back = replace(
            old, active_tasks=frozenset(), lags=dict.fromkeys(old.lags, 100), lags_before={}
        )
        [*_, last] = returned = list(
            play(regroup(last.state, [*others, back]), strategy, rounds_max=1)
        )
        yield returned
    yield list(play(regroup(last.state, clients_after(last.state, last.assignment)), strategy))


def thread_counts(state, chosen, active):
    load = np.bincount(active[chosen], minlength=len(state.clients))
    most = [-(-n // t) for n, t in zip(load.tolist(), state.threads.tolist(), strict=True)]
    least = [n // t for n, t in zip(load.tolist(), state.threads.tolist(), strict=True)]
    return most, least


def check_round(played):
    state, assignment = played.state, played.assignment
    assert validate(state, assignment) == ()
    assert played.moves.warmups <= state.config.max_warmup_replicas
    assert played.moves.cold == 0
    warm = len(assignment.warmups)
    assert warm <= state.config.max_warmup_replicas


def check_scenario(scenario, strategy=high_availability):
    """Check that rounds break no rule and phases end settled; return the last round of each phase.

    While clients bounce, a phase is one round, and the group need not be settled.
    """
    for rounds in run_scenario(*scenario, strategy):
        for played in rounds:
            check_round(played)
        if not rounds[-1].assignment.followup or len(rounds) > 1:
            check_settled(rounds)
            yield rounds[-1]


def check_settled(rounds):
    last = rounds[-1]
    state, assignment = last.state, last.assignment
    assert not assignment.followup
    assert not assignment.warmups
    wanted = min(state.config.num_standby_replicas, len(state.clients) - 1)
    assert len(assignment.standbys) == wanted * int(state.stateful.sum())
    again = high_availability(regroup(state, clients_after(state, assignment)))
    assert again.active.tolist() == assignment.active.tolist()
    assert again.standbys == assignment.standbys
    assert not again.followup


def check_level(last):
    state = last.state
    for chosen in (state.stateful, np.ones(len(state.tasks), dtype=bool)):
        most, least = thread_counts(state, chosen, last.assignment.active)
        assert max(most) - min(least) <= 1


@given(lives())
@settings(max_examples=examples(60), deadline=None)
def test_a_group_settles_level_after_any_event_and_starts_nothing_cold(scenario):
    for last in check_scenario(scenario):
        check_level(last)


@given(lives(racks=True, tags=True))
@settings(max_examples=examples(40), deadline=None)
def test_a_group_with_zones_settles_with_its_copies_in_different_zones(scenario):
    for last in check_scenario(scenario):
        check_level(last)
        zones = [dict(tags)["zone"] for tags in last.state.tags]
        holders = {t: {zones[c]} for t, c in enumerate(last.assignment.active.tolist())}
        for task, number in last.assignment.standbys:
            holders[task].add(zones[number])
        wanted = min(last.state.config.num_standby_replicas, len(zones) - 1)
        for task in np.flatnonzero(last.state.stateful).tolist():
            assert len(holders[task]) == min(1 + wanted, len(set(zones)))


@pytest.mark.slow
@given(lives(racks=True, tags=True, costs=True))
@settings(max_examples=examples(30), deadline=None)
def test_a_group_with_zones_and_rack_costs_settles_too(scenario):
    for last in check_scenario(scenario):
        check_level(last)


@given(lives(weights=True))
@settings(max_examples=examples(40), deadline=None)
def test_a_group_with_hot_tasks_settles_with_its_work_level(scenario):
    for last in check_scenario(scenario):
        state, active = last.state, last.assignment.active
        fresh = np.zeros(len(state.clients))
        for chosen in (state.stateful, ~state.stateful):
            best = heaviest_first(state, np.flatnonzero(chosen).tolist(), fresh)
            placed = chosen | state.stateful
            work = np.bincount(
                active[placed], weights=state.weights[placed], minlength=len(state.clients)
            )
            assert (work / state.threads).max() <= 1.04 * best + 1e-9
            # Stateless tasks are distributed after the stateful ones.
            fresh = work


def heaviest_first(state, tasks, load):
    """Work of the busiest thread if the tasks are distributed again, in addition to `load`."""
    load, threads = load.copy(), state.threads.tolist()
    for task in sorted(tasks, key=lambda t: (-state.weights[t], t)):
        at = min(range(len(threads)), key=lambda c: (load[c] / threads[c], c))
        load[at] += state.weights[task]
    return (load / state.threads).max()


@given(lives())
@settings(max_examples=examples(40), deadline=None)
def test_sticky_settles_at_once(scenario):
    for rounds in run_scenario(*scenario, sticky):
        assert len(rounds) == 1
        assert validate(rounds[0].state, rounds[0].assignment) == ()
        most, least = thread_counts(
            rounds[0].state, rounds[0].state.stateful, rounds[0].assignment.active
        )
        assert max(most) - min(least) <= 1


@given(lives())
@settings(max_examples=examples(30), deadline=None)
def test_a_scale_out_without_standbys_takes_no_round_more_than_the_moves_need(scenario):
    state, _, joining = scenario
    state = replace(state, config=replace(state.config, num_standby_replicas=0))
    [settled] = play(state, high_availability)
    clients = [*clients_after(settled.state, settled.assignment), joining[0]]
    rounds = list(play(regroup(state, clients), high_availability))
    handoffs = sum(played.moves.handoffs for played in rounds)
    assert len(rounds) == 1 + -(-handoffs // state.config.max_warmup_replicas)
    assert sum(played.moves.restores for played in rounds) == handoffs
    # Only the new client receives.
    new = rounds[-1].state.clients.index(joining[0].process_id)
    moved = rounds[0].state.owner != rounds[-1].assignment.active
    assert set(rounds[-1].assignment.active[moved & state.stateful].tolist()) <= {new}


def two_clients(**lags):
    tasks = [TaskId(0, p) for p in range(4)]
    clients = [
        ClientInput(process_id="a", active_tasks=frozenset(tasks), lags=dict.fromkeys(tasks, -1)),
        ClientInput(process_id="b", lags={tasks[int(k[1:])]: lag for k, lag in lags.items()}),
    ]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=clients,
        end_offset_sums=dict.fromkeys(tasks, END),
    )


def test_moves_are_counted_for_what_they_are():
    state = two_clients(t0=5, t1=20_000)
    moves = moves_of(
        state,
        TaskAssignment(active=np.array([1, 1, 1, 0]), standbys=((0, 0), (3, 1)), warmups=((3, 1),)),
    )
    assert (moves.handoffs, moves.takeovers, moves.stateless_moves) == (3, 0, 0)
    # t0 was ready on b; t1 was behind, and b had no state of t2.
    assert moves.cold == 2
    assert moves.restores == 2
    assert moves.warmups == 2


def test_after_a_round_copies_have_caught_up_and_dropped_state_is_gone():
    state = two_clients(t0=5)
    given_out = TaskAssignment(active=np.array([1, 0, 0, 0]), standbys=((1, 1),), followup=True)
    first, second = clients_after(state, given_out)
    assert first.lags == {TaskId(0, p): LAG_RUNNING for p in (1, 2, 3)}
    assert second.lags == {TaskId(0, 0): LAG_RUNNING, TaskId(0, 1): 0}
    assert second.lags_before == {TaskId(0, 0): 5}


@pytest.mark.parametrize("lag", [30_000, LAG_UNKNOWN])
def test_a_copy_that_never_comes_nearer_does_not_keep_the_group_probing(lag):
    rounds = list(play(two_clients(), high_availability, stuck={"b": lag}))
    assert len(rounds) <= 4
    assert not rounds[-1].assignment.followup
    # Its copies stay, so that it continues as soon as they make progress.
    assert len(rounds[-1].assignment.warmups) == 2
    assert totals(rounds)["handoffs"] == 0


def test_peak_load_is_the_busiest_thread_over_the_average():
    state = two_clients()
    assert peak_load(state, TaskAssignment(active=np.array([0, 0, 0, 1]))) == 3 / 2
