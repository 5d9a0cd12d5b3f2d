"""Standbys: existing copies stay, new ones are spread, and a second call changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import AssignmentConfig, ClientInput, group_state, high_availability
from assignor.placement import LAG_RUNNING
from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.standbys.draft import DraftStandbys
from assignor.placement.standbys.final_copies import target_standbys, too_few_clients
from assignor.placement.standbys.new_copies import fill_standbys
from encoding import TaskId
from tests.nightly import examples


def group(tasks, clients, *, standbys=1, copies=(), threads=None, racks=None, tags=None, keys=()):
    ids = [TaskId(0, p) for p in range(tasks)]
    lags = [{} for _ in range(clients)]
    for task, client, lag in copies:
        lags[client][ids[task]] = lag
    return group_state(
        tasks=ids,
        stateful_tasks=ids,
        clients=[
            ClientInput(
                process_id=f"c{c:04}",
                threads=(threads or [1] * clients)[c],
                lags=lags[c],
                rack=racks[c] if racks else None,
                tags=tags[c] if tags else (),
            )
            for c in range(clients)
        ],
        config=AssignmentConfig(num_standby_replicas=standbys, rack_aware_assignment_tags=keys),
        end_offset_sums=dict.fromkeys(ids, 10**6),
    )


def pairs(state, active):
    found = target_standbys(state, np.array(active))
    return list(zip(found.task.tolist(), found.client.tolist(), strict=True))


def test_what_is_there_stays():
    copies = [(0, 1, 0), (1, 2, 0), (2, 0, 0)]
    assert pairs(group(3, 3, copies=copies), [0, 1, 2]) == [(0, 1), (1, 2), (2, 0)]


def test_a_caught_up_copy_is_kept_rather_than_one_that_is_behind():
    assert pairs(group(1, 3, copies=[(0, 1, 50_000), (0, 2, 3)]), [0]) == [(0, 2)]


def test_a_client_over_its_band_gives_the_copy_that_exists_elsewhere_too():
    copies = [(t, 1, 0) for t in range(4)] + [(3, 2, 0)]
    found = pairs(group(4, 3, copies=copies), [0, 0, 1, 0])
    assert (3, 2) in found


def test_standbys_of_one_client_sit_on_all_others():
    active = [t % 10 for t in range(90)]
    found = pairs(group(90, 10), active)
    for client in range(10):
        on = [c for t, c in found if active[t] == client]
        assert np.bincount(on, minlength=10).tolist() == [int(c != client) for c in range(10)]


@pytest.mark.parametrize("tasks", [60, 3000])
def test_both_ways_of_filling_level_the_total_load_by_thread(tasks):
    threads = [1, 2, 3, 4]
    state = group(tasks, 4, threads=threads, standbys=2)
    active = np.repeat([0, 1, 2, 3], np.array(threads) * tasks // 10)
    found = pairs(state, active)
    held = {}
    for task, client in found:
        held.setdefault(task, []).append(client)
    assert {len(set(c) - {active[t]}) for t, c in held.items()} == {2}
    total = np.bincount(active, minlength=4) + np.bincount([c for _, c in found], minlength=4)
    per_thread = total / threads
    # One copy per client and task: four clients with three copies each cannot be balanced.
    assert per_thread[3] <= per_thread[0]


@pytest.mark.parametrize("racks", [1, 3])
def test_few_clients_are_weighed_by_a_loop_as_by_numpy(racks, monkeypatch):
    rng = np.random.default_rng(racks)
    for _ in range(25):
        clients, standbys = int(rng.integers(3, 12)), int(rng.integers(1, 3))
        state = group(
            int(rng.integers(1, 60)),
            clients,
            standbys=standbys,
            copies=[(0, int(rng.integers(clients)), 0)],
            threads=rng.integers(1, 4, clients).tolist(),
            racks=[f"r{c % racks}" for c in range(clients)],
        )
        active = rng.integers(0, clients, len(state.tasks)).tolist()
        by_loop = pairs(state, active)
        with monkeypatch.context() as patch:
            patch.setattr("assignor.placement.standbys.new_copies._FEW_CLIENTS", 0)
            assert pairs(state, active) == by_loop


def test_too_few_clients_are_reported():
    found = target_standbys(group(2, 2, standbys=3), np.array([0, 1]))
    assert len(found.task) == 2
    assert found.warnings == (
        "3 standby replicas are configured, 1 is placed: there are only 2 clients; start more",
    )


def test_the_warning_about_too_few_clients_agrees_in_number():
    assert too_few_clients(1, 0, 1) == (
        "1 standby replica is configured, none is placed: there is only 1 client; start another",
    )
    assert too_few_clients(5, 2, 3) == (
        "5 standby replicas are configured, 2 are placed: there are only 3 clients; start more",
    )
    assert too_few_clients(2, 2, 3) == ()


def test_copies_go_to_other_zones_even_past_a_band():
    zones = [(("zone", z),) for z in "aab"]
    found = pairs(group(6, 3, tags=zones, keys=("zone",)), [0, 0, 0, 1, 1, 1])
    assert {client for _, client in found} == {2}


def test_a_copy_in_the_same_zone_is_given_up_for_one_in_another():
    zones = [(("zone", z),) for z in "aab"]
    state = group(1, 3, copies=[(0, 1, 0)], tags=zones, keys=("zone",))
    assert pairs(state, [0]) == [(0, 2)]


def test_racks_come_after_tags():
    zones = [(("zone", z),) for z in "aabb"]
    state = group(1, 4, tags=zones, racks=["r1", "r2", "r1", "r2"], keys=("zone",))
    assert pairs(state, [0]) == [(0, 3)]


def test_a_tag_that_no_client_has_is_reported():
    [warning] = high_availability(group(1, 2, keys=("zone",))).warnings
    assert warning == "no client has the tag zone; set client.tag.zone on all of them"


@given(st.integers(1, 40), st.integers(2, 6), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60), deadline=None)
def test_a_second_look_changes_nothing(tasks, clients, standbys, seed):
    random = np.random.default_rng(seed)
    active = random.integers(0, clients, tasks)
    copies = [
        (t, c, int(random.integers(0, 2)) * 50_000)
        for t in range(tasks)
        for c in range(clients)
        if c != active[t] and random.random() < 0.4
    ]
    first = pairs(group(tasks, clients, standbys=standbys, copies=copies), active)
    again = [
        *((t, c, 0) for t, c in first),
        *((t, c, LAG_RUNNING) for t, c in enumerate(active.tolist())),
    ]
    assert pairs(group(tasks, clients, standbys=standbys, copies=again), active) == first


def test_a_blocked_copy_is_exchanged_rather_than_put_above_a_band():
    state = group(2, 3)
    nothing = np.zeros(0, dtype=np.int64)
    draft = DraftStandbys.of(
        state,
        np.array([0, 1]),
        wanted=1,
        kept=(nothing, nothing),
        candidates=(nothing, nothing),
        spread=Spread.of(state),
    )
    # Task 0 may go to 1 or 2, task 1 to 0 or 2; only 1 and 2 have free capacity; 2 is used first.
    draft.free = [0, 1, 1]
    fill_standbys(draft)
    assert draft.free == [0, 0, 0]
