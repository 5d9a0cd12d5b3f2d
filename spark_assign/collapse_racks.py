"""The rack optimum of a huge group: pools of tasks over racks, solved on the driver; exact.

The graph has two nodes a rack (what is kept there, what arrives) and two a pool (tasks with a home,
tasks without), whatever the number of tasks and clients. What a rack may keep is bounded by what
its clients may keep together, so the flow never promises to keep more than quotas allow; which
client gives up what is then a matter of counts by (client, pool).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_assign.collapse_quotas import levelled_release
from spark_assign.collapse_rows import Bools, Ints

# Augmenting paths that are looked for before a client gives up what the optimum would have kept.
_PATHS = 2_000
# Up to so many counts by (client, pool) the flow is solved to the client.
_EXACT_ARCS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RackPlan:
    """What stays, what goes where, and what that costs.

    Attributes:
        keep: int [C, P], tasks that stay at home.
        arrive: int [P, R], all other tasks, by rack.
        bound: the least cost of any placement with these quotas.
        cost: of this one; more than `bound` only where no client can give up what should go.
    """

    keep: Ints
    arrive: Ints
    bound: int
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RackProblem:
    """Tasks of some pools, and the clients that share them.

    Attributes:
        held: int [C, P], tasks at home.
        free: int [P], tasks without a home.
        quota: int [C], tasks that each client gets, sum of all tasks.
        rack_of: int [C].
        lacks_rack: bool [R], the rack of clients that do not name one: they keep what they have.
        weight: int [P, R], partitions read from elsewhere.
        traffic, overlap: costs of such a partition, and of a task that leaves home.
    """

    held: Ints
    free: Ints
    quota: Ints
    rack_of: Ints
    lacks_rack: Bools
    weight: Ints
    traffic: int
    overlap: int


def solve_racks(problem: RackProblem) -> RackPlan:
    """A placement of least cost; time and memory of classes x racks, then of clients x pools."""
    held, quota = problem.held, problem.quota
    is_nameless = problem.lacks_rack[problem.rack_of]
    must_go = np.maximum(held.sum(axis=1) - quota, 0)
    gone = np.zeros_like(held)
    gone[is_nameless] = levelled_release(held[is_nameless], must_go[is_nameless])
    keepers = _keepers(problem, must_go, ~is_nameless)
    kept, arrive, bound = _flow(problem, held - gone, keepers)
    for number, one in enumerate(keepers):
        wanted = held[one.clients].sum(axis=0) - kept[:, number]
        gone[one.clients] = _released(held[one.clients], must_go[one.clients], wanted)
        arrive[:, one.rack] += gone[one.clients].sum(axis=0) - wanted
    moved = int(gone.sum())
    placed = arrive.copy()
    for rack in range(len(problem.lacks_rack)):
        placed[:, rack] += (held - gone)[problem.rack_of == rack].sum(axis=0)
    cost = problem.traffic * int((placed * problem.weight).sum()) + problem.overlap * moved
    return RackPlan(keep=held - gone, arrive=arrive, bound=bound, cost=cost)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Keeper:
    """Clients of a rack that keep tasks together: int [M], and how many they may keep."""

    clients: Ints
    rack: int
    most: int


def _keepers(problem: RackProblem, must_go: Ints, is_named: Bools) -> list[_Keeper]:
    """The clients of each rack; those that have to give tasks up each alone, if they are few.

    Alone they make the flow exact to the client. Together the flow may want of them what no one of
    them has; where each holds tasks of many pools, it hardly does.
    """
    full = np.flatnonzero((must_go > 0) & is_named)
    alone = full if np.count_nonzero(problem.held[full]) <= _EXACT_ARCS else full[:0]
    held = problem.held.sum(axis=1)
    keepers = [
        _Keeper(
            clients=np.array([client]),
            rack=int(problem.rack_of[client]),
            most=int(held[client] - must_go[client]),
        )
        for client in alone.tolist()
    ]
    is_shared = is_named.copy()
    is_shared[alone] = False
    for rack in np.unique(problem.rack_of[is_shared]).tolist():
        rows = np.flatnonzero((problem.rack_of == rack) & is_shared)
        most = int((held[rows] - must_go[rows]).sum())
        keepers.append(_Keeper(clients=rows, rack=rack, most=most))
    return keepers


def _flow(problem: RackProblem, held: Ints, keepers: Sequence[_Keeper]) -> tuple[Ints, Ints, int]:
    """Kept [P, keepers] and arriving [P, R] tasks of a cheapest flow, and its cost."""
    import networkx as nx  # noqa: PLC0415 a quarter of a second, with rack costs only

    racks, pools = len(problem.lacks_rack), held.shape[1]
    by_rack, places = np.zeros((pools, racks), np.int64), np.zeros(racks, np.int64)
    for rack in range(racks):
        rows = problem.rack_of == rack
        by_rack[:, rack] = held[rows].sum(axis=0)
        places[rack] = problem.quota[rows].sum()
    weight = problem.weight * problem.traffic
    owned = problem.held.sum(axis=0)
    named = ~problem.lacks_rack
    cost = weight.copy()
    if named.any():
        # Nobody is drawn to a client only because it does not say where it is.
        cost[:, ~named] = weight[:, named].min(axis=1, keepdims=True)
    stuck = by_rack * ~named[None, :]
    own = owned - stuck.sum(axis=1)
    demand = places - stuck.sum(axis=0)
    graph = _graph(problem, held, keepers, cost=cost, own=own, demand=demand)
    _, flows = nx.network_simplex(graph)
    kept, arrive = np.zeros((pools, len(keepers)), np.int64), np.zeros((pools, racks), np.int64)
    for pool in range(pools):
        for name in ("home", "free"):
            for (kind, place), count in flows[name, pool].items():
                (kept if kind == "kept" else arrive)[pool, place] += count
    at = stuck + arrive
    for number, one in enumerate(keepers):
        at[:, one.rack] += kept[:, number]
    moved = int(owned.sum() - stuck.sum() - kept.sum())
    return kept, arrive, int((at * weight).sum()) + problem.overlap * moved


def _graph(
    problem: RackProblem,
    held: Ints,
    keepers: Sequence[_Keeper],
    *,
    cost: Ints,
    own: Ints,
    demand: Ints,
) -> Any:
    """Pools to keepers and racks; `own` tasks of each pool have a home, racks want `demand`."""
    import networkx as nx  # noqa: PLC0415 as above

    graph: Any = nx.DiGraph()
    for rack, count in enumerate(demand.tolist()):
        graph.add_node(("rack", rack), demand=count)
    for number, one in enumerate(keepers):
        graph.add_edge(("kept", number), ("rack", one.rack), capacity=one.most, weight=0)
        for pool, count in enumerate(held[one.clients].sum(axis=0).tolist()):
            if count:
                price = int(cost[pool, one.rack])
                graph.add_edge(("home", pool), ("kept", number), weight=price, capacity=count)
    for pool in range(len(own)):
        graph.add_node(("home", pool), demand=-int(own[pool]))
        graph.add_node(("free", pool), demand=-int(problem.free[pool]))
        for rack, price in enumerate(cost[pool].tolist()):
            graph.add_edge(("free", pool), ("rack", rack), weight=price)
            graph.add_edge(("home", pool), ("rack", rack), weight=price + problem.overlap)
    return graph


def _released(held: Ints, must_go: Ints, wanted: Ints) -> Ints:
    """Int [C, P]: `wanted` tasks of each pool leave, at least `must_go` of each client.

    Where a client's share of the pools that should go is used up by others, they give up something
    else along a path of exchanges; where there is none, more leave than wanted.
    """
    gone = np.zeros_like(held)
    due, left = must_go.copy(), wanted.copy()
    # Pools with most to give first: fewest clients are left over in the end.
    for pool in np.argsort(-left, kind="stable").tolist():
        able = np.minimum(held[:, pool], due)
        before = np.cumsum(able) - able
        taken = np.clip(int(left[pool]) - before, 0, able)
        gone[:, pool] = taken
        due -= taken
        left[pool] -= taken.sum()
    tries = 0
    for client in np.flatnonzero(due).tolist():
        while due[client] and tries < _PATHS and _exchange(held, gone, left, client):
            due[client] -= 1
            tries += 1
    rows = np.flatnonzero(due)
    gone[rows] += levelled_release((held - gone)[rows], due[rows])
    for pool in np.flatnonzero(left > 0).tolist():
        # Whoever gives up what nobody has to: in the order of the clients.
        able = held[:, pool] - gone[:, pool]
        before = np.cumsum(able) - able
        gone[:, pool] += np.clip(int(left[pool]) - before, 0, able)
    return gone


def _exchange(held: Ints, gone: Ints, left: Ints, client: int) -> bool:
    """One more task of the client leaves, others exchange what they give up; False: no way."""
    pools = len(left)
    came: dict[int, tuple[int, int]] = {}
    queue = np.flatnonzero(held[client] > gone[client]).tolist()
    reached = dict.fromkeys(queue)
    while queue:
        pool = queue.pop(0)
        if left[pool] > 0:
            left[pool] -= 1
            while pool in came:
                before, other = came[pool]
                gone[other, pool] += 1
                gone[other, before] -= 1
                pool = before
            gone[client, pool] += 1
            return True
        givers = np.flatnonzero(gone[:, pool] > 0)
        able = held[givers] > gone[givers]
        for after in range(pools):
            if after not in reached and able[:, after].any():
                reached[after] = None
                came[after] = (pool, int(givers[np.argmax(able[:, after])]))
                queue.append(after)
    return False
