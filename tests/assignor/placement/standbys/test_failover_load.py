"""Standbys move so that no single crash overloads a survivor."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import AssignmentConfig, ClientInput, group_state, high_availability, sticky
from assignor.explain.copies import copy_reason
from assignor.explain.facts import facts_of
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN
from assignor.placement.standbys.failover_load import OVERLOAD, even_out
from assignor.placement.standbys.final_copies import target_standbys
from assignor.problems.rounds import clients_after, play, regroup, totals
from encoding import TaskId
from tests.nightly import examples

END = 10**6


def neighbours(tasks, clients, *, replicas=1, threads=1, warmups=1_000, **options):
    """A balanced group by Kafka: all standbys of a client are on the clients after it."""
    ids = [TaskId(0, n) for n in range(tasks)]
    made = []
    for number in range(clients):
        own = ids[number::clients]
        lags = dict.fromkeys(own, LAG_RUNNING)
        for step in range(1, replicas + 1):
            lags |= dict.fromkeys(ids[(number - step) % clients :: clients], 0)
        made.append(
            ClientInput(
                process_id=f"c{number:02}",
                threads=threads,
                active_tasks=frozenset(own),
                lags=lags,
                **options,
            )
        )
    return group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=made,
        config=AssignmentConfig(num_standby_replicas=replicas, max_warmup_replicas=warmups),
        end_offset_sums=dict.fromkeys(ids, END),
    )


def overload(state, active, pairs):
    """Load of the busiest survivor of the worst crash, divided by the average of the survivors."""
    holders = {}
    for task, client in pairs:
        holders.setdefault(task, []).append(client)
    threads, worst = state.threads.tolist(), 0.0
    for crashed in range(len(threads)):
        load = np.bincount(active, minlength=len(threads))
        for task in np.flatnonzero(active == crashed).tolist():
            heirs = [c for c in holders.get(task, ()) if c != crashed]
            if heirs:
                load[min(heirs, key=lambda c: (load[c] / threads[c], c))] += 1
        average = len(active) / (sum(threads) - threads[crashed])
        survivors = [load[c] / n for c, n in enumerate(threads) if c != crashed]
        worst = max(worst, max(survivors) / average)
    return worst


@pytest.mark.parametrize(("replicas", "threads"), [(1, 1), (1, 3), (2, 1)])
def test_pairs_of_neighbours_are_broken_up_until_a_crash_is_shared(replicas, threads):
    state = neighbours(120, 6, replicas=replicas, threads=threads)
    before = [(t, int(c)) for t in range(120) for c, lag in state.copies(t) if lag == 0]
    assert overload(state, state.owner, before) > OVERLOAD
    rounds = list(play(state, high_availability))
    last = rounds[-1].assignment
    assert overload(state, last.active, last.standbys) <= OVERLOAD + 1e-9
    cost = totals(rounds)
    assert (cost["handoffs"], cost["cold"]) == (0, 0)
    assert len(last.standbys) == 120 * replicas


def test_the_reason_names_the_survivor_and_its_load():
    state = neighbours(30, 5)
    answer = high_availability(state)
    facts = facts_of(state, answer, strategy="high_availability")
    task, client = answer.warmups[0]
    owner = int(state.owner[task])
    crowded = (owner + 1) % 5
    why = copy_reason(facts, task, client).why
    assert f"has copies of 6 tasks of c{owner:02}, too many to take over in a crash" in why
    assert f"instead of on c{crowded:02}" in why


def test_what_is_even_already_stays_as_it_is():
    state = neighbours(120, 6)
    last = list(play(state, high_availability))[-1]
    again = high_availability(regroup(last.state, clients_after(last.state, last.assignment)))
    assert again.standbys == last.assignment.standbys
    assert not again.followup


def test_every_client_stays_within_its_band_of_copies():
    state = neighbours(100, 6, threads=2)
    active = sticky(state).active
    standbys = even_out(state, active, target_standbys(state, active))
    load = np.bincount(active, minlength=6) + np.bincount(standbys.client, minlength=6)
    # 200 copies on 12 threads: 16 or 17 each.
    assert set(load.tolist()) <= {32, 33, 34}
    assert len(set(zip(standbys.task.tolist(), standbys.client.tolist(), strict=True))) == 100


def test_state_that_is_there_is_used_before_any_is_restored():
    state = neighbours(64, 6, threads=2)
    task = np.repeat(np.arange(64), np.diff(state.copy_start))
    # Client 3 has old state of client 0's tasks, whose standbys are all on client 1.
    task = np.append(task, np.arange(0, 64, 6))
    client = np.append(state.copy_client, np.full(11, 3))
    order = np.lexsort((client, task))
    more = replace(
        state,
        copy_start=np.searchsorted(task[order], np.arange(65)),
        copy_client=client[order],
        copy_lag=np.append(state.copy_lag, np.zeros(11, dtype=np.int64))[order],
        copy_stalled=np.zeros(len(task), dtype=np.bool_),
    )
    standbys = even_out(more, more.owner, target_standbys(state, state.owner))
    where = standbys.client[standbys.task % 6 == 0].tolist()
    # Its two threads have 10 or 11 tasks of their own, and 15 each is the limit of a crash.
    assert where.count(3) > max(where.count(other) for other in (2, 4, 5))


def test_groups_with_few_tasks_a_client_are_left_alone():
    state = neighbours(16, 4)
    answer = high_availability(state)
    assert totals(list(play(state, high_availability)))["restores"] == 0
    assert not answer.followup


def counted(tasks, clients, copies, owners):
    """Settle a small group; return its totals, and (active client, standby client) -> tasks."""
    ids = [TaskId(0, n) for n in range(tasks)]
    made = [
        ClientInput(
            process_id=f"c{c}",
            active_tasks=frozenset(t for t, owner in zip(ids, owners, strict=True) if owner == c),
            lags={ids[t]: lag for t, lag in copies.get(c, {}).items()}
            | {t: LAG_RUNNING for t, owner in zip(ids, owners, strict=True) if owner == c},
        )
        for c in range(clients)
    ]
    config = AssignmentConfig(
        num_standby_replicas=1, acceptable_recovery_lag=500, max_warmup_replicas=tasks
    )
    state = group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=made,
        config=config,
        end_offset_sums=dict.fromkeys(ids, 3000),
    )
    rounds = list(play(state, high_availability))
    last = rounds[-1].assignment
    return totals(rounds), Counter((int(last.active[t]), c) for t, c in last.standbys)


EACH_TWO = {(a, b): 2 for a in range(3) for b in range(3) if a != b}


def test_a_crash_is_shared_also_if_the_lags_of_some_standbys_are_unknown_when_a_client_comes():
    """As seen in a group of three: three standbys of one client had only begun."""
    owners = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    copies = {
        0: {0: LAG_UNKNOWN, 1: LAG_UNKNOWN, 2: 82, 3: 70, 4: LAG_UNKNOWN, 11: 84},
        1: {5: 0, 6: 0, 7: 0, 8: 0, 9: 9, 10: 5},
    }
    cost, shared = counted(12, 3, copies, owners)
    assert (cost["handoffs"], cost["restores"]) == (4, 8)
    assert shared == EACH_TWO


def test_a_client_that_comes_back_with_all_state_takes_a_share_of_the_standbys_of_each_other():
    owners = [0, 2, 0, 2, 2, 0, 2, 2, 2, 0, 0, 0]
    copies = {
        0: dict.fromkeys([1, 3, 4, 6, 7, 8], 0),
        1: dict.fromkeys(range(12), 170),
        2: {9: 102, 10: 2034} | dict.fromkeys([0, 2, 5, 11], LAG_UNKNOWN),
    }
    cost, shared = counted(12, 3, copies, owners)
    assert (cost["handoffs"], cost["restores"]) == (4, 0)
    assert shared == EACH_TWO


def test_groups_with_racks_or_tags_are_left_alone():
    state = neighbours(120, 6)
    bound = replace(state, racks=("a", "b", "a", "b", "a", "b"))
    assert totals(list(play(bound, high_availability)))["restores"] == 0


def test_sticky_gives_no_copy_up_for_it_since_it_would_drop_state_before_more_is_there():
    state = neighbours(120, 6)
    assert totals(list(play(state, sticky)))["restores"] == 0


def test_a_client_without_threads_inherits_nothing():
    state = neighbours(120, 6)
    state = replace(state, threads=np.array([1, 1, 1, 1, 1, 0]))
    rounds = list(play(state, high_availability))
    assert not rounds[-1].assignment.followup
    assert 5 not in {client for _, client in rounds[-1].assignment.standbys}


@given(
    st.integers(20, 60),
    st.lists(st.integers(1, 3), min_size=3, max_size=6),
    st.integers(1, 2),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(60), deadline=None)
def test_any_group_settles_with_what_was_moved_and_no_crash_got_worse(tasks, threads, n, random):
    ids = [TaskId(0, number) for number in range(tasks)]
    lags = [{} for _ in threads]
    running = [set() for _ in threads]
    for task in ids:
        owner, *others = random.sample(range(len(threads)), 1 + n)
        running[owner].add(task)
        lags[owner][task] = LAG_RUNNING
        for other in others:
            lags[other][task] = 0
    state = group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=[
            ClientInput(
                process_id=f"c{c}", threads=k, active_tasks=frozenset(running[c]), lags=lags[c]
            )
            for c, k in enumerate(threads)
        ],
        config=AssignmentConfig(num_standby_replicas=n, max_warmup_replicas=4),
        end_offset_sums=dict.fromkeys(ids, END),
    )
    rounds = list(play(state, high_availability))
    last = rounds[-1]
    assert not last.assignment.followup
    active = last.assignment.active
    placed = target_standbys(last.state, active)
    even = even_out(last.state, active, placed)
    pairs = [list(zip(p.task.tolist(), p.client.tolist(), strict=True)) for p in (placed, even)]
    assert tuple(pairs[1]) == last.assignment.standbys
    before, after = (overload(last.state, active, placed) for placed in pairs)
    assert after <= max(before, OVERLOAD) + 1e-9
