"""Rack-aware placement (KIP-925): the same counts for every client, less traffic between racks.

`optimize_active` and `optimize_standbys` take a placement and exchange tasks between clients of
different racks, so that traffic_cost x partitions read from another rack + non_overlap_cost x tasks
that leave their place is least. The place of a task is the client that *runs* it, not the target of
the moment as in Kafka, which is what makes Kafka move nearly everything. A task that nobody runs,
or whose owner is behind, has its caught-up copies for places: taking it over there is worth as much
as keeping it on its owner.

Missing information does no harm and is said: a partition with unknown replicas counts nothing, a
client without a rack keeps what it has. (Kafka leaves all racks alone then, and only logs it.)
"""

import numpy as np

from assignor.placement.racks.bounded import group_arcs, solve_groups
from assignor.placement.racks.classes import Placement, exchange, lower_bound
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
# Up to so many arcs the exact graph is worth its time (about half a second).
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
    """Whether clients are in more than one rack."""
    return len({rack for rack in state.racks if rack is not None}) > 1


def optimize_active(
    state: GroupState,
    active: IntArray,
    under_way: IntArray | None = None,
    *,
    among: BoolArray | None = None,
) -> tuple[IntArray, tuple[str, ...]]:
    """Exchange actives between racks at least cost.

    Stateful and stateless tasks each keep their number on every client. With
    `balance_subtopology` a client holds no more of a subtopology than its share, rounded up, or
    than it was given. For stateless tasks traffic counts first and moves only break ties.

    Args:
        state: the group, `partition_racks` and the racks of its clients.
        active: int [T], the client of every task.
        under_way: int [T], where a copy warms up for a move that this placement made before, or
            NOBODY; the task is kept there.
        among: bool [T], the tasks that may change places; None: all.

    Returns:
        The new placement, and warnings about what was not known. Unchanged without a strategy.
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
    """The cheapest placement of these tasks: by rack if that proves enough, else by client."""
    placement = _placement(state, active, tasks, traffic, costs, kept=kept)
    limits = None
    if state.config.rack_aware_assignment_strategy == "balance_subtopology":
        limits = shares(placement)
    by_rack = exchange(
        placement, np.zeros(len(tasks), dtype=np.int64) if limits is None else placement.block_of
    )
    places = placement.kept.count()
    is_settled = (places == 0) | ((places == 1) & placement.kept.includes(placement.client))
    if limits is None and is_settled.all():
        return by_rack
    # At equal cost the first of them: what balance chose is what the next rebalance finds again.
    found = min(placement.client, by_rack, key=placement.cost)
    if placement.cost(found) == lower_bound(placement):
        return found
    if group_arcs(placement, limits) > _EXACT_ARCS:
        return found
    return min(found, solve_groups(placement, limits), key=placement.cost)


def _placement(
    state: GroupState,
    active: IntArray,
    tasks: IntArray,
    traffic: Traffic,
    costs: tuple[int, int],
    *,
    kept: KeptPlaces,
) -> Placement:
    held = np.bincount(active[tasks], minlength=len(state.clients))
    _, block_of = np.unique(state.subtopology[tasks], return_inverse=True)
    return Placement(
        client=active[tasks],
        # A client that is to hold nothing cannot keep its tasks: they move in any case.
        kept=kept.part(tasks, held > 0),
        class_of=traffic.class_of[tasks],
        weight=costs[0] * traffic.weight,
        rack_of=traffic.rack_of,
        overlap=costs[1],
        block_of=block_of.reshape(-1).astype(np.int64),
    )


def shares(placement: Placement) -> IntArray:
    """Int [S, C]: most tasks of a subtopology: a client's share rounded up, or what it had."""
    clients = len(placement.rack_of)
    blocks = int(placement.block_of.max(initial=-1)) + 1
    quota = np.bincount(placement.client, minlength=clients)
    sizes = np.bincount(placement.block_of, minlength=blocks)
    share = -(-quota[None, :] * sizes[:, None] // max(1, len(placement.client)))
    given = np.bincount(
        placement.block_of * clients + placement.client, minlength=blocks * clients
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
    """Exchange standbys between racks at least cost, by the replicas of their changelogs.

    Every client keeps its number of standbys, no task gets two copies on one client, and the copies
    of a task stay on as many tag values, or without tags on as many racks, as they were: a copy in
    the active one's rack saves traffic and is lost with it.

    Args:
        state: the group, `changelog_racks` and the racks of its clients.
        active: int [T], the client of every task.
        standbys: (task, client) pairs.
        spread_racks: False lets racks be shared where that is cheaper, as Kafka does.
        among: bool [T], the tasks whose standbys may change places; None: all.

    Returns:
        The new pairs, sorted, and warnings about what was not known. Unchanged without a strategy.
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
    """Clients for standbys that may move, with other clients that hold their tasks; int [P]."""
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
    """What the rack strategy cannot know, and what is done about it, as sentences.

    Args:
        state: the group.
        racks: replica racks of the partitions of each task.
        tasks: int [M], those that are placed.
        kind: what the partitions are, in a word.
        unknown: how many of the tasks have a partition with unknown racks.
    """
    strategy = state.config.rack_aware_assignment_strategy
    lacking = [c for c, rack in zip(state.clients, state.racks, strict=True) if rack is None]
    warnings = []
    if lacking and len(lacking) == len(state.clients):
        return (f"{strategy} has no effect: no client says its rack; set client.rack",)
    if lacking:
        warnings.append(
            f"{_named(lacking)} {_without_rack(lacking)} under {strategy}; set client.rack"
        )
    if racks is None:
        return (*warnings, f"{strategy} has no effect: no replica racks of {kind} partitions known")
    if unknown:
        lost = [str(state.tasks[task]) for task in tasks.tolist() if not all(racks[task])]
        warnings.append(
            f"some {kind} partitions of {_named(lost)} have unknown replica racks and count "
            f"nothing under {strategy}; set broker.rack on all brokers"
        )
    return tuple(warnings)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _without_rack(names: list[str]) -> str:
    if len(names) == 1:
        return "has no rack and keeps what it has"
    return "have no rack and keep what they have"
