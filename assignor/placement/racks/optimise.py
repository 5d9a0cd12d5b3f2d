"""Rack-aware placement (KIP-925): the same counts for every client, less traffic between racks.

`optimize_active` and `optimize_standbys` take a placement and exchange tasks between clients of
different racks, so that traffic_cost x partitions read from another rack + non_overlap_cost x tasks
that leave their place is least. The place of a task is the client that *runs* it. (In Kafka it is
the current target, so Kafka moves nearly all tasks.) The places of a task that no client runs, or
whose owner is behind, are its caught-up copies: a move to one of them costs no more than a stay.

Missing information reduces the optimisation, with a warning: a partition with unknown replicas
costs nothing, and a client without a rack keeps its tasks. (Kafka then skips the step, and logs.)
"""

from collections.abc import Sequence

import numpy as np

from assignor.placement.racks.bounded import group_arcs, solve_groups
from assignor.placement.racks.classes import ExchangeProblem, exchange, lower_bound
from assignor.placement.racks.kept_places import KeptPlaces, kept_places
from assignor.placement.racks.many_racks import (
    exchange_actives,
    exchange_standbys,
    has_many_racks,
    unknown_racks,
)
from assignor.placement.racks.standbys import Copies, cells_of, improve
from assignor.placement.racks.traffic import Traffic, client_racks, traffic_of
from assignor.placement.state import BoolArray, GroupState, IntArray, RacksByTask

TRAFFIC_COST, NON_OVERLAP_COST = 10, 1
# Up to this many arcs the exact graph is solved (about half a second).
_EXACT_ARCS = 8_000
_NAMED = 3
_MOST_COST = 2**31 - 1  # as in Kafka, where costs are 32-bit numbers
Pairs = tuple[tuple[int, int], ...]


def rack_costs(state: GroupState) -> tuple[int, int]:
    """Traffic and non-overlap cost of stateful tasks: as configured, else Kafka's 10 and 1."""
    traffic = state.config.rack_aware_assignment_traffic_cost
    overlap = state.config.rack_aware_assignment_non_overlap_cost
    return (
        TRAFFIC_COST if traffic is None else min(traffic, _MOST_COST),
        NON_OVERLAP_COST if overlap is None else min(overlap, _MOST_COST),
    )


def _has_choice(state: GroupState) -> bool:
    """Whether the clients are in more than one rack."""
    return len({rack for rack in state.racks if rack is not None}) > 1


def optimize_active(
    state: GroupState,
    active: IntArray,
    under_way: IntArray | None = None,
    *,
    among: BoolArray | None = None,
) -> tuple[IntArray, tuple[str, ...]]:
    """Exchange actives between racks at the least cost.

    Every client keeps its number of stateful and of stateless tasks. With `balance_subtopology` a
    client holds at most its share of a subtopology, rounded up, or as many as in `active`. For
    stateless tasks traffic counts first, and moves only break ties.

    Args:
        state: the group, with `partition_racks` and the racks of its clients.
        active: int [T], the client of every task.
        under_way: int [T], the client on which a copy warms up for a move of an earlier rebalance,
            or NOBODY; the task keeps that destination.
        among: bool [T], the tasks that may be exchanged; None: all.

    Returns:
        int [T], the new placement, and warnings about unknown racks. Unchanged without a rack
        strategy.
    """
    if state.config.rack_aware_assignment_strategy == "none":
        return active, ()
    tasks = np.arange(len(state.tasks))
    racks = state.partition_racks
    is_large = has_many_racks(state.racks, len(tasks))
    traffic = None if is_large else traffic_of(state, racks, tasks)
    unknown = unknown_racks(racks, tasks) if traffic is None else traffic.unknown
    warnings = missing_racks(state, racks, tasks, "source", unknown)
    if racks is None or not _has_choice(state):
        return active, warnings
    has_rack = np.array([rack is not None for rack in state.racks], dtype=np.bool_)
    may_move = has_rack[active] if among is None else has_rack[active] & among
    placed, kept = active.copy(), kept_places(state, active, under_way)
    for is_stateful in (True, False):
        tasks = np.flatnonzero((state.stateful == is_stateful) & may_move)
        if not len(tasks):
            continue
        costs = rack_costs(state) if is_stateful else (len(tasks) + 1, 1)
        if traffic is None:
            part = kept.part(tasks, np.ones(len(has_rack), dtype=np.bool_))
            placed[tasks] = exchange_actives(state, active, tasks, racks, kept=part, costs=costs)
        else:
            placed[tasks] = _best(state, active, tasks, traffic, costs, kept=kept)
    return placed, warnings


def _best(
    state: GroupState,
    active: IntArray,
    tasks: IntArray,
    traffic: Traffic,
    costs: tuple[int, int],
    *,
    kept: KeptPlaces,
) -> IntArray:
    """Int [M]: the cheapest placement found; by client if that by rack is not provably optimal."""
    problem = _exchange_problem(state, active, tasks, traffic, costs, kept=kept)
    limits = None
    if state.config.rack_aware_assignment_strategy == "balance_subtopology":
        limits = shares(problem)
    by_rack = exchange(
        problem, np.zeros(len(tasks), dtype=np.int64) if limits is None else problem.block_of
    )
    places = problem.kept.count()
    is_settled = (places == 0) | ((places == 1) & problem.kept.includes(problem.client))
    if limits is None and is_settled.all():
        return by_rack
    # At equal cost keep the placement by balance: the next rebalance then finds it again.
    found = min(problem.client, by_rack, key=problem.cost)
    if problem.cost(found) == lower_bound(problem):
        return found
    if group_arcs(problem, limits) > _EXACT_ARCS:
        return found
    return min(found, solve_groups(problem, limits), key=problem.cost)


def _exchange_problem(
    state: GroupState,
    active: IntArray,
    tasks: IntArray,
    traffic: Traffic,
    costs: tuple[int, int],
    *,
    kept: KeptPlaces,
) -> ExchangeProblem:
    held = np.bincount(active[tasks], minlength=len(state.clients))
    _, block_of = np.unique(state.subtopology[tasks], return_inverse=True)
    return ExchangeProblem(
        client=active[tasks],
        # A client with quota 0 cannot keep its tasks: they move in any case.
        kept=kept.part(tasks, held > 0),
        class_of=traffic.class_of[tasks],
        weight=costs[0] * traffic.weight,
        rack_of=traffic.rack_of,
        overlap=costs[1],
        block_of=block_of.reshape(-1).astype(np.int64),
    )


def shares(problem: ExchangeProblem) -> IntArray:
    """Int [S, C]: most tasks of a subtopology on a client: its share rounded up, or its present."""
    clients = len(problem.rack_of)
    blocks = int(problem.block_of.max(initial=-1)) + 1
    quota = np.bincount(problem.client, minlength=clients)
    sizes = np.bincount(problem.block_of, minlength=blocks)
    share = -(-quota[None, :] * sizes[:, None] // max(1, len(problem.client)))
    given = np.bincount(
        problem.block_of * clients + problem.client, minlength=blocks * clients
    ).reshape(blocks, clients)
    limits: IntArray = np.maximum(share, given).astype(np.int64)
    return limits


def optimize_standbys(
    state: GroupState,
    active: IntArray,
    standbys: Pairs,
    *,
    spread_racks: bool = True,
    among: BoolArray | None = None,
) -> tuple[Pairs, tuple[str, ...]]:
    """Exchange standbys between racks at the least cost, by the replicas of their changelogs.

    Every client keeps its number of standbys, and no client gets two copies of a task. The copies
    of a task stay on as many different tag values as they were; without tags, on as many different
    racks: a standby in the rack of the active saves traffic, but is lost together with it.

    Args:
        state: the group, with `changelog_racks` and the racks of its clients.
        active: int [T], the client of every task.
        standbys: (task, client) pairs.
        spread_racks: False: copies may share a rack if that is cheaper, as in Kafka.
        among: bool [T], the tasks whose standbys may be exchanged; None: all.

    Returns:
        The new pairs, sorted, and warnings about unknown racks. Unchanged without a rack strategy.
    """
    pairs = tuple(sorted(standbys))
    if state.config.rack_aware_assignment_strategy == "none" or not pairs:
        return pairs, ()
    table = np.array(pairs, dtype=np.int64)
    tasks = np.unique(table[:, 0])
    unknown = unknown_racks(state.changelog_racks, tasks)
    warnings = missing_racks(state, state.changelog_racks, tasks, "changelog", unknown)
    has_rack = np.array([rack is not None for rack in state.racks], dtype=np.bool_)
    if state.changelog_racks is None or not _has_choice(state):
        return pairs, warnings
    may_move = has_rack[table[:, 1]] & (True if among is None else among[table[:, 0]])
    task, client = table[may_move].T
    fixed: dict[int, list[int]] = {}
    for held, at in table[~may_move].tolist():
        fixed.setdefault(held, []).append(at)
    others = [[int(active[held]), *fixed.get(held, ())] for held in task.tolist()]
    placed = _cheaper(state, active, (task, client), others, spread_racks=spread_racks)
    moved = zip(task.tolist(), placed.tolist(), strict=True)
    stayed = [pair for pair, moves in zip(pairs, may_move.tolist(), strict=True) if not moves]
    return tuple(sorted([*moved, *stayed])), warnings


def _cheaper(
    state: GroupState,
    active: IntArray,
    standbys: tuple[IntArray, IntArray],
    others: list[list[int]],
    *,
    spread_racks: bool,
) -> IntArray:
    """Int [P]: cheaper clients for the standbys that may move.

    Args:
        state: the group.
        active: int [T], the client of every task.
        standbys: (task, client) of these standbys, int [P] both.
        others: for each of them, other clients that hold its task and do not move.
        spread_racks: as in `optimize_standbys`.
    """
    task, client = standbys
    traffic_cost, overlap = rack_costs(state)
    racks, rack_of = client_racks(state)
    cell_of, values = cells_of(state, rack_of, spread_racks=spread_racks)
    if has_many_racks(racks, len(task)):
        rows = [tuple(row) for row in values[cell_of].tolist()]
        costs = (traffic_cost, overlap)
        return exchange_standbys(state, task, client, others=others, values_of=rows, costs=costs)
    traffic = traffic_of(state, state.changelog_racks, task)
    has_rack = np.array([rack is not None for rack in state.racks], dtype=np.bool_)
    copies = Copies(
        task=task,
        weight=traffic_cost * traffic.weight[traffic.class_of],
        class_of=traffic.class_of,
        rack_of=traffic.rack_of,
        cell_of=cell_of,
        values=values,
        overlap=overlap,
        state_at=state.copy_task() * len(state.clients) + state.copy_client,
        states=_standby_states(state, active),
        can_hold=has_rack & (np.bincount(client, minlength=len(has_rack)) > 0),
    )
    return improve(copies, client, others)


def _standby_states(state: GroupState, active: IntArray) -> IntArray:
    task = state.copy_task()
    elsewhere = task[state.copy_client != active[task]]
    return np.bincount(elsewhere, minlength=len(state.tasks)).astype(np.int64)


def missing_racks(
    state: GroupState, racks: RacksByTask | None, tasks: IntArray, kind: str, unknown: int
) -> tuple[str, ...]:
    """Warnings about unknown racks of clients and partitions, and their consequences.

    Args:
        state: the group.
        racks: replica racks of the partitions of each task; None: all unknown.
        tasks: int [M], the tasks that are placed.
        kind: "source" or "changelog", the kind of partitions.
        unknown: number of the tasks that have a partition with unknown racks.
    """
    strategy = state.config.rack_aware_assignment_strategy
    lacking = [c for c, rack in zip(state.clients, state.racks, strict=True) if rack is None]
    clients = len(state.clients)
    warnings = rack_warnings(strategy, lacking, clients, kind=kind, is_known=racks is not None)
    if racks is None or len(lacking) == clients or not unknown:
        return warnings
    lost = [str(state.tasks[task]) for task in tasks.tolist() if not all(racks[task])]
    warning = (
        f"some {kind} partitions of {_named(lost)} have unknown replica racks; {strategy} "
        "ignores them; set broker.rack on all brokers"
    )
    return (*warnings, warning)


def rack_warnings(
    strategy: str, lacking: Sequence[str], clients: int, *, kind: str, is_known: bool
) -> tuple[str, ...]:
    """Warnings about racks without which a rack-aware strategy has less effect, or none.

    Args:
        strategy: value of rack.aware.assignment.strategy.
        lacking: the clients without a rack.
        clients: number of all clients.
        kind: "source" or "changelog", the kind of partitions.
        is_known: whether the replica racks of any of these partitions are known.
    """
    if len(lacking) == clients:
        return (f"{strategy} has no effect: no client has a rack; set client.rack",)
    warnings = []
    if lacking:
        warnings.append(
            f"{_named(lacking)} {_without_rack(lacking)} under {strategy}; set client.rack"
        )
    if not is_known:
        warnings.append(f"{strategy} has no effect: no replica racks of {kind} partitions known")
    return tuple(warnings)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _without_rack(names: Sequence[str]) -> str:
    if len(names) == 1:
        return "has no rack and keeps its tasks"
    return "have no rack and keep their tasks"
