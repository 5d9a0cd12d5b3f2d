"""Random groups with racks and tags, and the full task-by-client graphs as oracles.

Tests import from here; nothing here calls the code under test.
"""

import random

import networkx as nx
import numpy as np

from assignor import AssignmentConfig
from assignor.placement.state import LAG_RUNNING, NOBODY, ClientInput, group_state
from encoding import TaskId

COSTS = (None, 0, 1, 7, 10)


def draw_replicas(rng, racks, *, known=1.0):
    return tuple(
        frozenset(rng.sample(racks, rng.randint(1, min(3, len(racks)))))
        if rng.random() < known
        else None
        for _ in range(rng.randint(1, 3))
    )


def draw_actives(rng, *, copies=False):
    """A group and a placement of its actives: by owner, in turn, or at random.

    With `copies`, any client can have a copy of a task, and owners can be behind.
    """
    clients, racks = rng.randint(2, 7), [f"r{number}" for number in range(rng.randint(2, 4))]
    tasks = [TaskId(s, p) for s in range(rng.randint(1, 3)) for p in range(rng.randint(1, 8))]
    stateful = set(tasks) if rng.random() < 0.7 else {t for t in tasks if t.subtopology % 2 == 0}
    owner = {task: rng.randrange(clients) if rng.random() < 0.8 else None for task in tasks}
    lags = {
        number: {t: LAG_RUNNING for t in tasks if owner[t] == number and t in stateful}
        for number in range(clients)
    }
    for number, task in ((n, t) for n in range(clients) for t in tasks if copies and t in stateful):
        if rng.random() < 0.3:
            lags[number][task] = rng.choice([0, 0, 20_000, 30_000])
    state = group_state(
        tasks=tasks,
        stateful_tasks=stateful,
        clients=[
            ClientInput(
                process_id=f"c{number}",
                active_tasks=frozenset(t for t in tasks if owner[t] == number),
                lags=lags[number],
                rack=rng.choice(racks) if rng.random() < 0.97 else None,
            )
            for number in range(clients)
        ],
        config=AssignmentConfig(
            rack_aware_assignment_strategy=rng.choice(["min_traffic", "balance_subtopology"]),
            rack_aware_assignment_traffic_cost=rng.choice(COSTS),
            rack_aware_assignment_non_overlap_cost=rng.choice(COSTS),
        ),
        end_offset_sums=dict.fromkeys(tasks, 50_000 if copies else 5),
        partition_racks={task: draw_replicas(rng, racks, known=0.97) for task in tasks},
    )
    mode = rng.random()
    drawn = [rng.randrange(clients) for _ in tasks]
    if mode < 0.3:
        drawn = [o if o != NOBODY else d for o, d in zip(state.owner, drawn, strict=True)]
    elif mode < 0.6:
        drawn = [number % clients for number in range(len(tasks))]
    return state, np.array(drawn, dtype=np.int64)


def places_of(state, task, active):
    """Clients on which the task may stay: its owner; without one, caught-up or else nearest copies.

    Also its client in the balanced placement, if it is caught up there.
    """
    owner, limit = int(state.owner[task]), state.config.acceptable_recovery_lag
    lags = dict(state.copies(task))
    if not state.stateful[task] or state.end_offset_sums[task] <= limit:
        return {owner} - {NOBODY}
    hot = {client for client, lag in lags.items() if lag <= limit}
    if owner != NOBODY and (owner in hot or (owner in lags and not hot)):
        return {owner} | ({int(active[task])} & hot)
    return hot or {client for client, lag in lags.items() if lag == min(lags.values())}


def active_cost(state, task, client, costs, active):
    rack = state.racks[client]
    crossing = sum(
        1 for p in state.partition_racks[task] if p and rack is not None and rack not in p
    )
    used = {
        int(client)
        for client, same in zip(active, state.stateful, strict=True)
        if same == state.stateful[task]
    }
    places = places_of(state, task, active) & used
    return costs[0] * crossing + costs[1] * int(bool(places) and client not in places)


def cheapest_actives(state, active, tasks, costs):
    """Least cost of these tasks on the graph of all tasks and clients, with equal counts."""
    is_balanced = state.config.rack_aware_assignment_strategy == "balance_subtopology"
    graph, quota = nx.DiGraph(), np.bincount(active[tasks], minlength=len(state.clients)).tolist()
    used = [client for client, count in enumerate(quota) if count]
    for client in used:
        graph.add_node(("client", client), demand=quota[client])
    members = {}
    for task in tasks:
        sub = int(state.subtopology[task])
        members.setdefault(sub, []).append(task)
        graph.add_node(("task", task), demand=-1)
        for client in used:
            end = ("share", sub, client) if is_balanced else ("client", client)
            cost = active_cost(state, task, client, costs, active)
            graph.add_edge(("task", task), end, weight=cost, capacity=1)
    for sub, own in members.items() if is_balanced else ():
        for client in used:
            share = -(-quota[client] * len(own) // len(tasks))
            had = sum(active[task] == client for task in own)
            ends = (("share", sub, client), ("client", client))
            graph.add_edge(*ends, weight=0, capacity=int(max(share, had)))
    return nx.network_simplex(graph)[0]


def draw_standbys(rng, replicas, *, tasks=14, clients=7, tagged=0.3):
    """A group, its actives and standby pairs; with state anywhere, nowhere, or on the standbys."""
    count = rng.randint(replicas + 1, clients)
    racks = [f"r{number}" for number in range(rng.randint(2, 5))]
    names = [TaskId(0, number) for number in range(rng.randint(1, tasks))]
    active = [rng.randrange(count) for _ in names]
    pairs = []
    for number in range(len(names)):
        others = [client for client in range(count) if client != active[number]]
        pairs += [(number, client) for client in rng.sample(others, replicas)]
    held = {client: {} for client in range(count)}
    share = {"none": (0, 0), "here": (1, 0), "mixed": (0.5, 0.15)}[
        rng.choice(["none", "here", "mixed"])
    ]
    for number, client in pairs:
        if rng.random() < share[0]:
            held[client][names[number]] = 0
    for name in names:
        for client in range(count):
            if rng.random() < share[1]:
                held[client][name] = 1
    is_tagged = rng.random() < tagged
    state = group_state(
        tasks=names,
        stateful_tasks=names,
        clients=[
            ClientInput(
                process_id=f"c{number:02}",
                lags=held[number],
                rack=rng.choice(racks),
                tags=(("size", rng.choice("xyz")), ("zone", rng.choice("ab"))) if is_tagged else (),
            )
            for number in range(count)
        ],
        config=AssignmentConfig(
            num_standby_replicas=replicas,
            rack_aware_assignment_strategy="min_traffic",
            rack_aware_assignment_tags=("zone", "size") if is_tagged else (),
            rack_aware_assignment_traffic_cost=rng.choice(COSTS),
            rack_aware_assignment_non_overlap_cost=rng.choice(COSTS),
        ),
        end_offset_sums=dict.fromkeys(names, 5),
        changelog_racks={name: draw_replicas(rng, racks) for name in names},
    )
    return state, np.array(active, dtype=np.int64), tuple(sorted(pairs))


def standby_cost(state, pairs, costs):
    states = set(zip(state.copy_task().tolist(), state.copy_client.tolist(), strict=True))
    crossing = sum(
        1 for task, c in pairs for p in state.changelog_racks[task] if state.racks[c] not in p
    )
    return costs[0] * crossing + costs[1] * sum(pair not in states for pair in pairs)


def values_of(state, clients, *, spread_racks):
    """Number of different tag values (without tags: racks) of these clients."""
    if state.config.rack_aware_assignment_tags:
        return len({tag for client in clients for tag in state.tags[client]})
    return len({state.racks[client] for client in clients}) if spread_racks else 0


def cheapest_standbys(state, active, pairs, costs, *, spread_racks):
    """Least cost on the graph of all tasks and clients.

    Exact with one standby; with several, the spread is ignored, so it is a lower bound.
    """
    graph = nx.DiGraph()
    quota = np.bincount([c for _, c in pairs], minlength=len(state.clients)).tolist()
    used = [client for client, count in enumerate(quota) if count]
    for client in used:
        graph.add_node(("client", client), demand=quota[client])
    now = {}
    for task, client in pairs:
        now.setdefault(task, []).append(client)
    for task, held in now.items():
        home = int(active[task])
        graph.add_node(("task", task), demand=-len(held))
        least = values_of(state, [home, held[0]], spread_racks=spread_racks)
        for client in used:
            value = values_of(state, [home, client], spread_racks=spread_racks)
            if client != home and (len(held) > 1 or value >= least):
                cost = standby_cost(state, [(task, client)], costs)
                graph.add_edge(("task", task), ("client", client), weight=cost, capacity=1)
    return nx.network_simplex(graph)[0]


def seeded(number):
    return random.Random(number)  # noqa: S311 a simulation, no secret
