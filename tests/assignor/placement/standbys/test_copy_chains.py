"""First spread, then balance of copies: groups of ClientTagAwareStandbyTaskAssignorTest."""

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, default_standbys, group_state
from assignor.placement.standbys.final_copies import target_standbys
from assignor.placement.standbys.tag_shortfalls import shortfalls
from encoding import TaskId


def group(clients, *, standbys, keys=("zone", "cluster")):
    """Clients in order: (threads, zone, cluster, rack, tasks that it runs)."""
    tasks = [task for *_, own in clients for task in own]
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=f"p{number}",
                threads=threads,
                active_tasks=frozenset(own),
                lags=dict.fromkeys(own, -1),
                rack=rack,
                tags=(("cluster", cluster), ("zone", zone)) if zone else (),
            )
            for number, (threads, zone, cluster, rack, own) in enumerate(clients, start=1)
        ],
        config=AssignmentConfig(num_standby_replicas=standbys, rack_aware_assignment_tags=keys),
        end_offset_sums=dict.fromkeys(tasks, 1_000_000),
    )
    return state, state.owner


def nine(runs, *, tagged=True):
    """Three clusters of three zones, two threads a client; `runs` are the clients with tasks."""
    clients = []
    for number in range(1, 10):
        own = [TaskId(sub, runs.index(number)) for sub in range(2)] if number in runs else []
        zone, cluster = f"z{(number - 1) % 3}", f"c{(number - 1) // 3}"
        tags = (zone, cluster, None) if tagged else (None, None, zone)
        clients.append((2, *tags, own))
    return clients


def counts(state, active, pairs):
    copies = np.bincount([client for _, client in pairs], minlength=len(state.clients))
    return copies.tolist(), np.bincount(active, minlength=len(state.clients)).tolist()


@pytest.mark.parametrize(
    ("clients", "keys"),
    [
        (nine([1, 4, 7]), ("zone", "cluster")),
        (nine([1, 2, 3]), ("zone", "cluster")),
        (nine([1, 2, 3], tagged=False), ()),
    ],
    ids=["same zone", "same cluster", "racks"],
)
def test_two_copies_of_six_tasks_are_two_on_each_client_that_runs_nothing(clients, keys):
    state, active = group(clients, standbys=2, keys=keys)
    pairs = default_standbys(state, active)
    copies, runs = counts(state, active, pairs)
    assert copies == [0 if own else 2 for own in runs]
    assert shortfalls(state, active, pairs) == ()
    held = {task: {int(active[task])} for task in range(len(state.tasks))}
    for task, client in pairs:
        held[task].add(client)
    values = state.racks if not keys else [dict(tags)["zone"] for tags in state.tags]
    assert all(len({values[client] for client in clients}) == 3 for clients in held.values())


def test_partial_awareness_places_four_copies_apart():
    clients = [
        (1, f"z{zone}", f"c{cluster}", None, own)
        for cluster, zone, own in [
            (1, 1, [TaskId(0, 0)]),
            (1, 2, []),
            (1, 3, []),
            (2, 1, []),
            (2, 2, []),
            (2, 3, [TaskId(1, 0)]),
        ]
    ]
    state, active = group(clients, standbys=2, keys=("cluster", "zone"))
    pairs = default_standbys(state, active)
    assert shortfalls(state, active, pairs) == ()
    assert max(counts(state, active, pairs)[0]) == 1


def test_zones_are_kept_where_every_client_runs_a_task():
    clients = [
        (1, f"z{number % 3}", "c1", None, [TaskId(number // 3, number % 3)]) for number in range(6)
    ]
    state, active = group(clients, standbys=1)
    pairs = default_standbys(state, active)
    assert counts(state, active, pairs)[0] == [1] * 6
    assert [row for row in shortfalls(state, active, pairs) if row[1] == "zone"] == []


def test_keys_that_are_not_configured_are_ignored():
    clients = [
        (1, "z1", "c1", None, [TaskId(0, 0)]),
        (2, "z2", "c1", None, []),
        (1, "z1", "c2", None, []),
    ]
    state, active = group(clients, standbys=1, keys=("cluster",))
    assert default_standbys(state, active) == ((0, 2),)


def test_without_different_tags_the_least_loaded_clients_take_the_copies():
    clients = [(3, "z1", "c1", None, [TaskId(0, number)]) for number in range(4)]
    state, active = group(clients, standbys=1)
    assert counts(state, active, default_standbys(state, active))[0] == [1] * 4


def clients_with(tasks, active, copies):
    """Six clients of zones and racks with these actives and (task, client) copies, caught up."""
    kinds = zip((1, 3, 2, 3, 1, 3), ("r0", "r0", "r0", "r1", "r0", "r0"), "aacacb", strict=True)
    for number, (threads, rack, zone) in enumerate(kinds):
        own = [tasks[task] for task in np.flatnonzero(active == number)]
        held = [tasks[task] for task, client in copies if client == number]
        yield ClientInput(
            process_id=f"p{number}",
            threads=threads,
            active_tasks=frozenset(own),
            lags=dict.fromkeys(own, -1) | dict.fromkeys(held, 0),
            rack=rack,
            tags=(("zone", zone),),
        )


def test_what_a_chain_pushed_out_of_a_band_is_moved_in_the_same_answer():
    tasks = [TaskId(0, number) for number in range(12)]
    active = np.array([1, 3, 2, 5, 3, 1, 3, 4, 2, 5, 1, 0])
    racks = {task: (frozenset({"r1" if task.partition == 4 else "r0"}),) for task in tasks}
    copies, answers = [], []
    for _ in range(2):
        state = group_state(
            tasks=tasks,
            stateful_tasks=tasks,
            clients=list(clients_with(tasks, active, copies)),
            config=AssignmentConfig(
                num_standby_replicas=1,
                rack_aware_assignment_strategy="min_traffic",
                rack_aware_assignment_tags=("zone",),
            ),
            end_offset_sums=dict.fromkeys(tasks, 50_000),
            changelog_racks=racks,
        )
        found = target_standbys(state, active)
        copies = list(zip(found.task.tolist(), found.client.tolist(), strict=True))
        answers.append(copies)
    assert answers[0] == answers[1]
