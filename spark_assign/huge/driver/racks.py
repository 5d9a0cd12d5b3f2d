"""Placement of minimal rack cost for a huge group, solved on the driver as a min-cost flow.

The graph has two nodes per rack (kept tasks, arriving tasks) and two per pool (tasks with and
without a home), for any number of tasks and clients. The clients of a rack together keep at most
what their quotas allow. Which client gives up which tasks is decided by counts per (client, pool).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spark_assign.huge.driver.quotas import levelled_release, shared_out
from spark_assign.huge.worker.rows import Bools, Ints

# Up to this number of (client, pool) pairs the flow has a node per client.
_EXACT_ARCS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RackPlan:
    """A placement by counts, and its cost.

    Attributes:
        keep: int [C, P], tasks that stay at home.
        arrive: int [P, R], all other tasks, by rack.
        bound: a lower bound of the cost of any placement with these quotas.
        cost: of this placement; above `bound` only if no client can give up the cheapest tasks.
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
        quota: int [C], tasks that each client gets; they sum to all tasks.
        rack_of: int [C].
        lacks_rack: bool [R], True for the rack of clients that name none; these keep their tasks.
        weight: int [P, R], partitions that a task of the pool reads from another rack.
        traffic, overlap: cost of such a partition, and of a task that leaves its home.
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
    """A placement of minimal cost; time and memory grow with classes x racks and clients x pools.

    The flow has a node per rack. Clients that cannot give up the tasks that it takes from their
    rack get a node of their own in the next flow, as long as they are few.
    """
    must_go = np.maximum(problem.held.sum(axis=1) - problem.quota, 0)
    gives = (must_go > 0) & ~problem.lacks_rack[problem.rack_of]
    is_alone = gives & _is_exact(problem, gives)
    best: RackPlan | None = None
    while True:
        plan, failed = _solved(problem, must_go, is_alone)
        # The cost of a flow is a lower bound; more nodes make it tighter.
        bound = plan.bound if best is None else max(plan.bound, best.bound)
        best = plan if best is None or plan.cost < best.cost else best
        best = replace(best, bound=bound)
        more = is_alone | failed
        if best.cost == best.bound or (more == is_alone).all() or not _is_exact(problem, more):
            return best
        is_alone = more


def _is_exact(problem: RackProblem, clients: Bools) -> bool:
    """Whether the clients are few enough for a node each."""
    return bool(np.count_nonzero(problem.held[clients]) <= _EXACT_ARCS)


def _solved(problem: RackProblem, must_go: Ints, is_alone: Bools) -> tuple[RackPlan, Bools]:
    """A plan, and the clients that had to give up tasks that the flow keeps."""
    held = problem.held
    is_nameless = problem.lacks_rack[problem.rack_of]
    gone = np.zeros_like(held)
    gone[is_nameless] = levelled_release(held[is_nameless], must_go[is_nameless])
    client_sets = _client_sets(problem, must_go, is_alone, ~is_nameless)
    flow = _flow(problem, held - gone, client_sets)
    arrive, failed = flow.arrive, np.zeros(len(held), dtype=np.bool_)
    for client_set, sent in zip(client_sets, _sent(problem, client_sets, flow), strict=True):
        wishes = _wishes(problem.weight, client_set.rack, sent)
        left, due, arriving = _given_up(
            held[client_set.clients], must_go[client_set.clients], wishes, len(problem.lacks_rack)
        )
        failed[client_set.clients] = due > 0
        left -= levelled_release(left, due)
        gone[client_set.clients] = held[client_set.clients] - left
        arrive += arriving
        # Tasks given up beyond the cheapest flow stay in the rack.
        arrive[:, client_set.rack] += gone[client_set.clients].sum(axis=0) - arriving.sum(axis=1)
    moved = int(gone.sum())
    placed = arrive.copy()
    for rack in range(len(problem.lacks_rack)):
        placed[:, rack] += (held - gone)[problem.rack_of == rack].sum(axis=0)
    cost = problem.traffic * int((placed * problem.weight).sum()) + problem.overlap * moved
    return RackPlan(keep=held - gone, arrive=arrive, bound=flow.cost, cost=cost), failed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ClientSet:
    """Clients of a rack with one node in the flow.

    Attributes:
        clients: int [M].
        rack: of all of them.
        most: number of tasks that they may keep together.
    """

    clients: Ints
    rack: int
    most: int


def _client_sets(
    problem: RackProblem, must_go: Ints, is_alone: Bools, is_named: Bools
) -> list[_ClientSet]:
    """The client sets of each rack; a client in `is_alone` has a set of its own."""
    alone = np.flatnonzero(is_alone)
    held = problem.held.sum(axis=1)
    client_sets = [
        _ClientSet(
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
        client_sets.append(_ClientSet(clients=rows, rack=rack, most=most))
    return client_sets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Flow:
    """A flow of minimal cost.

    Attributes:
        kept: int [P, client sets].
        sent: int [P, R], tasks that leave home, by where they go.
        arrive: int [P, R], tasks without a home; tasks that leave home are added to them.
        cost: total cost.
    """

    kept: Ints
    sent: Ints
    arrive: Ints
    cost: int


def _flow(problem: RackProblem, held: Ints, client_sets: Sequence[_ClientSet]) -> _Flow:
    import networkx as nx  # noqa: PLC0415 slow to import, needed for rack costs only

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
        # Clients without a rack must not attract tasks.
        cost[:, ~named] = weight[:, named].min(axis=1, keepdims=True)
    stuck = by_rack * ~named[None, :]
    own = owned - stuck.sum(axis=1)
    demand = places - stuck.sum(axis=0)
    graph = _graph(problem, held, client_sets, cost=cost, own=own, demand=demand)
    _, flows = nx.network_simplex(graph)
    kept = np.zeros((pools, len(client_sets)), np.int64)
    sent, arrive = np.zeros((pools, racks), np.int64), np.zeros((pools, racks), np.int64)
    for pool in range(pools):
        for (kind, place), count in flows["home", pool].items():
            (kept if kind == "kept" else sent)[pool, place] += count
        for (_, place), count in flows["free", pool].items():
            arrive[pool, place] += count
    at = stuck + sent + arrive
    for number, client_set in enumerate(client_sets):
        at[:, client_set.rack] += kept[:, number]
    moved = int(owned.sum() - stuck.sum() - kept.sum())
    total = int((at * weight).sum()) + problem.overlap * moved
    return _Flow(kept=kept, sent=sent, arrive=arrive, cost=total)


def _graph(
    problem: RackProblem,
    held: Ints,
    client_sets: Sequence[_ClientSet],
    *,
    cost: Ints,
    own: Ints,
    demand: Ints,
) -> Any:
    """The graph from pools to client sets and racks.

    Args:
        problem: the problem.
        held: int [C, P], tasks at home.
        client_sets: nodes for the tasks that stay.
        cost: int [P, R], cost of a task in a rack.
        own: int [P], tasks with a home.
        demand: int [R], tasks that each rack needs.
    """
    import networkx as nx  # noqa: PLC0415 as above

    graph: Any = nx.DiGraph()
    for rack, count in enumerate(demand.tolist()):
        graph.add_node(("rack", rack), demand=count)
    for number, client_set in enumerate(client_sets):
        graph.add_edge(
            ("kept", number), ("rack", client_set.rack), capacity=client_set.most, weight=0
        )
        for pool, count in enumerate(held[client_set.clients].sum(axis=0).tolist()):
            if count:
                price = int(cost[pool, client_set.rack])
                graph.add_edge(("home", pool), ("kept", number), weight=price, capacity=count)
    for pool in range(len(own)):
        graph.add_node(("home", pool), demand=-int(own[pool]))
        graph.add_node(("free", pool), demand=-int(problem.free[pool]))
        for rack, price in enumerate(cost[pool].tolist()):
            graph.add_edge(("free", pool), ("rack", rack), weight=price)
            graph.add_edge(("home", pool), ("rack", rack), weight=price + problem.overlap)
    return graph


def _sent(problem: RackProblem, client_sets: Sequence[_ClientSet], flow: _Flow) -> Iterator[Ints]:
    """For each client set, int [P, R]: tasks that leave, by rack; its own rack comes first."""
    held = np.stack(
        [problem.held[client_set.clients].sum(axis=0) for client_set in client_sets], axis=1
    )
    leaving, to = held - flow.kept, flow.sent.copy()
    own = np.zeros_like(leaving)
    for number, client_set in enumerate(client_sets):
        own[:, number] = np.minimum(leaving[:, number], to[:, client_set.rack])
        to[:, client_set.rack] -= own[:, number]
    # The rest is matched in the order of client sets and of racks, by intervals.
    end, end_to = np.cumsum(leaving - own, axis=1), np.cumsum(to, axis=1)
    for number, client_set in enumerate(client_sets):
        high = np.minimum(end[:, number, None], end_to)
        low = np.maximum((end - leaving + own)[:, number, None], end_to - to)
        sent = np.maximum(high - low, 0)
        sent[:, client_set.rack] += own[:, number]
        yield sent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Wish:
    """Tasks that should go to a rack, from any of these pools; the saving is the same for all.

    Attributes:
        rack: the destination.
        pools: int [M], those chosen by the flow come first.
        chosen: int [M], number of tasks that the flow chose of each pool.
    """

    rack: int
    pools: Ints
    chosen: Ints


def _wishes(weight: Ints, home: int, sent: Ints) -> list[_Wish]:
    """The tasks that should leave a rack, as wishes; wishes with the fewest pools come first.

    A flow of minimal cost may take all tasks from one or two pools, of which a client may have
    none. Only the difference in traffic counts: pools with the same difference are equivalent.
    """
    wishes = []
    for rack in np.flatnonzero(sent.any(axis=0)).tolist():
        gain = weight[:, rack] - weight[:, home]
        for saving in np.unique(gain[sent[:, rack] > 0]).tolist():
            pools = np.flatnonzero(gain == saving)
            pools = pools[np.argsort(-sent[pools, rack], kind="stable")]
            wishes.append(_Wish(rack=rack, pools=pools, chosen=sent[pools, rack]))
    return sorted(wishes, key=lambda wish: len(wish.pools))


def _given_up(
    held: Ints, must_go: Ints, wishes: Sequence[_Wish], racks: int
) -> tuple[Ints, Ints, Ints]:
    """Fulfil the wishes with tasks of some clients.

    Returns:
        int [C, P], what is left of `held`; int [C], how many tasks each client must still give up,
        because others fulfilled its wishes; int [P, R], the tasks given up, by destination.
    """
    left, due = held.copy(), must_go.copy()
    arriving = np.zeros((held.shape[1], racks), dtype=np.int64)
    counts = [int(wish.chosen.sum()) for wish in wishes]

    def give(number: int, pools: Ints, most: int, *, has_to: bool) -> None:
        able = left[:, pools].sum(axis=1)
        able = np.minimum(able, due) if has_to else able
        taken = np.clip(min(most, counts[number]) - (np.cumsum(able) - able), 0, able)
        part = shared_out(left[:, pools], taken)
        left[:, pools] -= part
        arriving[pools, wishes[number].rack] += part.sum(axis=0)
        counts[number] -= int(taken.sum())
        np.maximum(due - taken, 0, out=due)

    # First clients that must give up tasks, then all.
    for has_to in (True, False):
        for number, wish in enumerate(wishes):
            for pool, most in zip(wish.pools, wish.chosen.tolist(), strict=True):
                done = int(arriving[pool, wish.rack])
                if most > done:
                    give(number, np.array([pool]), most - done, has_to=has_to)
        for number, wish in enumerate(wishes):
            give(number, wish.pools, counts[number], has_to=has_to)
    for number in range(len(wishes)):
        # Every rack must get its number of tasks.
        give(number, np.arange(held.shape[1]), counts[number], has_to=False)
    return left, due, arriving
