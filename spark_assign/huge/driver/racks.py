"""The rack optimum of a huge group: pools of tasks over racks, solved on the driver; exact.

The graph has two nodes a rack (what is kept there, what arrives) and two a pool (tasks with a home,
tasks without), whatever the number of tasks and clients. What a rack may keep is bounded by what
its clients may keep together, so the flow never promises to keep more than quotas allow; which
client gives up what is then a matter of counts by (client, pool).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spark_assign.huge.driver.quotas import levelled_release, shared_out
from spark_assign.huge.worker.rows import Bools, Ints

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
    """A placement of least cost; time and memory of classes x racks, then of clients x pools.

    The flow looks at racks. Clients that cannot give up what it takes from their rack are looked at
    alone in the next one, as long as they are few.
    """
    must_go = np.maximum(problem.held.sum(axis=1) - problem.quota, 0)
    gives = (must_go > 0) & ~problem.lacks_rack[problem.rack_of]
    is_alone = gives & _is_exact(problem, gives)
    best: RackPlan | None = None
    while True:
        plan, failed = _solved(problem, must_go, is_alone)
        # What a flow costs is below any placement, the more it looks at the nearer.
        bound = plan.bound if best is None else max(plan.bound, best.bound)
        best = plan if best is None or plan.cost < best.cost else best
        best = replace(best, bound=bound)
        more = is_alone | failed
        if best.cost == best.bound or (more == is_alone).all() or not _is_exact(problem, more):
            return best
        is_alone = more


def _is_exact(problem: RackProblem, clients: Bools) -> bool:
    """Whether so few that the flow can look at each."""
    return bool(np.count_nonzero(problem.held[clients]) <= _EXACT_ARCS)


def _solved(problem: RackProblem, must_go: Ints, is_alone: Bools) -> tuple[RackPlan, Bools]:
    """A plan, and the clients that had to give up what the flow would have kept."""
    held = problem.held
    is_nameless = problem.lacks_rack[problem.rack_of]
    gone = np.zeros_like(held)
    gone[is_nameless] = levelled_release(held[is_nameless], must_go[is_nameless])
    keepers = _keepers(problem, must_go, is_alone, ~is_nameless)
    flow = _flow(problem, held - gone, keepers)
    arrive, failed = flow.arrive, np.zeros(len(held), dtype=np.bool_)
    for one, sent in zip(keepers, _sent(problem, keepers, flow), strict=True):
        wishes = _wishes(problem.weight, one.rack, sent)
        left, due, comes = _given_up(
            held[one.clients], must_go[one.clients], wishes, len(problem.lacks_rack)
        )
        failed[one.clients] = due > 0
        left -= levelled_release(left, due)
        gone[one.clients] = held[one.clients] - left
        arrive += comes
        # Whoever gives up more than the cheapest flow wants stays in the rack.
        arrive[:, one.rack] += gone[one.clients].sum(axis=0) - comes.sum(axis=1)
    moved = int(gone.sum())
    placed = arrive.copy()
    for rack in range(len(problem.lacks_rack)):
        placed[:, rack] += (held - gone)[problem.rack_of == rack].sum(axis=0)
    cost = problem.traffic * int((placed * problem.weight).sum()) + problem.overlap * moved
    return RackPlan(keep=held - gone, arrive=arrive, bound=flow.cost, cost=cost), failed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Keeper:
    """Clients of a rack that keep tasks together: int [M], and how many they may keep."""

    clients: Ints
    rack: int
    most: int


def _keepers(
    problem: RackProblem, must_go: Ints, is_alone: Bools, is_named: Bools
) -> list[_Keeper]:
    """The clients of each rack; some each alone, which makes the flow exact to the client."""
    alone = np.flatnonzero(is_alone)
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Flow:
    """A cheapest flow.

    Attributes:
        kept: int [P, keepers].
        sent: int [P, R], tasks that leave home, by where they go.
        arrive: int [P, R], tasks without a home; what leaves home is added to them.
        cost: of all.
    """

    kept: Ints
    sent: Ints
    arrive: Ints
    cost: int


def _flow(problem: RackProblem, held: Ints, keepers: Sequence[_Keeper]) -> _Flow:
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
    kept = np.zeros((pools, len(keepers)), np.int64)
    sent, arrive = np.zeros((pools, racks), np.int64), np.zeros((pools, racks), np.int64)
    for pool in range(pools):
        for (kind, place), count in flows["home", pool].items():
            (kept if kind == "kept" else sent)[pool, place] += count
        for (_, place), count in flows["free", pool].items():
            arrive[pool, place] += count
    at = stuck + sent + arrive
    for number, one in enumerate(keepers):
        at[:, one.rack] += kept[:, number]
    moved = int(owned.sum() - stuck.sum() - kept.sum())
    total = int((at * weight).sum()) + problem.overlap * moved
    return _Flow(kept=kept, sent=sent, arrive=arrive, cost=total)


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


def _sent(problem: RackProblem, keepers: Sequence[_Keeper], flow: _Flow) -> Iterator[Ints]:
    """For each keeper, int [P, R]: what leaves it, by where it goes; into its own rack first."""
    held = np.stack([problem.held[one.clients].sum(axis=0) for one in keepers], axis=1)
    leaving, to = held - flow.kept, flow.sent.copy()
    own = np.zeros_like(leaving)
    for number, one in enumerate(keepers):
        own[:, number] = np.minimum(leaving[:, number], to[:, one.rack])
        to[:, one.rack] -= own[:, number]
    # The rest is paired in the order of keepers and of racks, each an interval of one line.
    end, end_to = np.cumsum(leaving - own, axis=1), np.cumsum(to, axis=1)
    for number, one in enumerate(keepers):
        high = np.minimum(end[:, number, None], end_to)
        low = np.maximum((end - leaving + own)[:, number, None], end_to - to)
        sent = np.maximum(high - low, 0)
        sent[:, one.rack] += own[:, number]
        yield sent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Wish:
    """Tasks that are to go to a rack, of any of these pools: all gain or lose the same by it.

    Attributes:
        rack: where to.
        pools: int [M], those that the flow happened to choose first.
        chosen: int [M], how many of each it chose.
    """

    rack: int
    pools: Ints
    chosen: Ints


def _wishes(weight: Ints, home: int, sent: Ints) -> list[_Wish]:
    """What leaves a rack, as wishes; those that fewest pools can fulfil first.

    A cheapest flow takes all from a pool or two, of which a client may have none. What counts is
    the difference in traffic: other pools with the same one are as good.
    """
    wishes = []
    for rack in np.flatnonzero(sent.any(axis=0)).tolist():
        gain = weight[:, rack] - weight[:, home]
        for one in np.unique(gain[sent[:, rack] > 0]).tolist():
            pools = np.flatnonzero(gain == one)
            pools = pools[np.argsort(-sent[pools, rack], kind="stable")]
            wishes.append(_Wish(rack=rack, pools=pools, chosen=sent[pools, rack]))
    return sorted(wishes, key=lambda wish: len(wish.pools))


def _given_up(
    held: Ints, must_go: Ints, wishes: Sequence[_Wish], racks: int
) -> tuple[Ints, Ints, Ints]:
    """What clients give up to the wishes.

    Returns:
        int [C, P], what is left of `held`; int [C], how many each has still to give up, for others
        fulfilled the wishes that it could; int [P, R], where the wishes send the rest.
    """
    left, due = held.copy(), must_go.copy()
    comes = np.zeros((held.shape[1], racks), dtype=np.int64)
    counts = [int(wish.chosen.sum()) for wish in wishes]

    def give(number: int, pools: Ints, most: int, *, has_to: bool) -> None:
        able = left[:, pools].sum(axis=1)
        able = np.minimum(able, due) if has_to else able
        taken = np.clip(min(most, counts[number]) - (np.cumsum(able) - able), 0, able)
        part = shared_out(left[:, pools], taken)
        left[:, pools] -= part
        comes[pools, wishes[number].rack] += part.sum(axis=0)
        counts[number] -= int(taken.sum())
        np.maximum(due - taken, 0, out=due)

    # Those that have to give, then anybody.
    for has_to in (True, False):
        for number, wish in enumerate(wishes):
            for pool, most in zip(wish.pools, wish.chosen.tolist(), strict=True):
                done = int(comes[pool, wish.rack])
                if most > done:
                    give(number, np.array([pool]), most - done, has_to=has_to)
        for number, wish in enumerate(wishes):
            give(number, wish.pools, counts[number], has_to=has_to)
    for number in range(len(wishes)):
        # Racks must be filled.
        give(number, np.arange(held.shape[1]), counts[number], has_to=False)
    return left, due, comes
