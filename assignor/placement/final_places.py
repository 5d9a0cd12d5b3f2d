"""Where everything belongs in the end: the steps that all strategies of ours share."""

from dataclasses import replace

import numpy as np

from assignor.placement.actives import target_actives
from assignor.placement.bands import fill, place_stateless, quotas
from assignor.placement.standbys import Standbys, even_out, tag_warnings, target_standbys
from assignor.placement.state import LAG_RUNNING, NOBODY, GroupState, IntArray
from assignor.placement.weights import weighted_target

# Rack costs and bands take turns until both are content; each turn brings copies into bands.
_PASSES = 8


def targets(
    state: GroupState, *, evens_out: bool = False, home: IntArray | None = None
) -> tuple[IntArray, Standbys]:
    """Clients of all active tasks (int [T]), and standbys; warnings are with the standbys.

    Bands first, then racks inside them: the rack optimum exchanges tasks and keeps every count.

    Args:
        state: the group.
        evens_out: whether standbys may leave their state so that a crash overloads nobody; for
            strategies that keep the old copy until the new one has caught up.
        home: int [T], as `homes` has them, where they are known already; not changed.
    """
    active = target_actives(state, home)
    place_stateless(state, active)
    if state.config.rack_aware_assignment_strategy == "none":
        standbys = target_standbys(state, active)
        # Copies that have to be in other racks or tag values are where they have to be.
        if evens_out and not state.config.rack_aware_assignment_tags and not any(state.racks):
            standbys = even_out(state, active, standbys)
        return active, _with_tag_warnings(state, active, standbys)
    # Imported where it is needed: most groups have no rack strategy, and flows bring networkx.
    from assignor.placement.racks.all_copies import optimize_together  # noqa: PLC0415 see above
    from assignor.placement.racks.optimise import optimize_active  # noqa: PLC0415 see above

    warnings: tuple[str, ...] = ()
    if state.weights is None:
        active, warnings = optimize_active(state, active, _moves_under_way(state))
    else:
        warnings = (
            "racks of active tasks are not optimised: tasks have weights; drop one of both",
        )
    standbys = target_standbys(state, active)
    said: tuple[str, ...] = ()
    for _ in range(_PASSES):
        given = tuple(zip(standbys.task.tolist(), standbys.client.tolist(), strict=True))
        active, pairs, said = optimize_together(state, active, given)
        there = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        # Exchanged copies may leave a client that is over its band, where they could not before.
        is_same = pairs == tuple(sorted(given))
        level = standbys if is_same else target_standbys(_settled(state, active, *there), active)
        standbys = replace(standbys, task=level.task, client=level.client)
        is_level = is_same or np.array_equal(there, (level.task, level.client))
        # Of one standby a task the optimum is exact; of more, the exchanged copies may find more.
        if is_same or (is_level and state.config.num_standby_replicas == 1):
            break
    placed = replace(
        standbys, warnings=tuple(dict.fromkeys((*warnings, *standbys.warnings, *said)))
    )
    return active, _with_tag_warnings(state, active, placed)


def with_fresh_stateless(state: GroupState, target: IntArray, now: IntArray) -> IntArray:
    """Int [T]: `target`, with the stateless tasks that nobody ran placed where the least runs now.

    `place_stateless` counts stateful tasks where they belong in the end; while they still warm up
    there, the clients that they are about to leave would get more than their share of what starts.
    Under a rack strategy they are then exchanged for the least traffic.

    Args:
        state: the group.
        target: int [T], where tasks belong; stateless ones included.
        now: int [T], who runs each stateful task in this rebalance.
    """
    has_owner = (state.owner != NOBODY) & (state.capacity()[state.owner] > 0)
    fresh = np.flatnonzero(~state.stateful & ~has_owner)
    if not len(fresh) or np.array_equal(target[state.stateful], now[state.stateful]):
        return target
    runs = np.where(state.stateful, now, target)
    runs[fresh] = NOBODY
    if state.weights is not None:
        nowhere = np.full(len(runs), NOBODY, dtype=np.int64)
        runs[fresh] = weighted_target(state, fresh, nowhere, runs, state.weights)
    else:
        capacity = state.capacity()
        count = np.bincount(runs[runs != NOBODY], minlength=len(capacity)).astype(np.int64)
        room = quotas(count, capacity, len(runs), at_least=count) - count
        only_stateless = np.where(state.stateful, NOBODY, runs)
        fill(state, fresh.tolist(), only_stateless, room, capacity)
        runs = np.where(state.stateful, now, only_stateless)
        if state.config.rack_aware_assignment_strategy != "none":
            from assignor.placement.racks.optimise import optimize_active  # noqa: PLC0415 see targets

            is_fresh = np.zeros(len(runs), dtype=np.bool_)
            is_fresh[fresh] = True
            runs, _ = optimize_active(state, runs, among=is_fresh)
    return np.where(state.stateful, target, runs)


def _with_tag_warnings(state: GroupState, active: IntArray, standbys: Standbys) -> Standbys:
    """The standbys with a sentence for each tag key that their spread falls short of."""
    if not state.config.rack_aware_assignment_tags or not len(standbys.task):
        return standbys
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    said = tag_warnings(state, active, tuple(pairs))
    return Standbys(
        task=standbys.task, client=standbys.client, warnings=(*standbys.warnings, *said)
    )


def _settled(state: GroupState, active: IntArray, task: IntArray, client: IntArray) -> GroupState:
    """The group once all tasks and standbys (int [P], sorted by task) are where they belong."""
    runs = np.flatnonzero(state.stateful)
    rows = np.zeros((len(runs) + len(task), 4), dtype=np.int64)
    rows[:, 0], rows[:, 1] = np.concatenate([runs, task]), np.concatenate([active[runs], client])
    rows[: len(runs), 2] = LAG_RUNNING
    return state.with_copies(rows, owner=active)


def _moves_under_way(state: GroupState) -> IntArray:
    """Int [T]: where a warm-up that is there is going to run its task, or NOBODY.

    Many placements have the least cost. Without this a rebalance may settle on another one than the
    last did, drop what warms up, and start over.
    """
    under_way = np.full(len(state.tasks), NOBODY, dtype=np.int64)
    config = state.config
    traffic = config.rack_aware_assignment_traffic_cost or 0
    overlap = config.rack_aware_assignment_non_overlap_cost or 0
    counts = np.diff(state.copy_start)
    extra = state.stateful & (state.owner != NOBODY) & (counts > 1 + config.num_standby_replicas)
    for task in np.flatnonzero(extra).tolist():
        here = int(state.owner[task])
        cost = {c: _crossed(state, task, c) for c, _ in state.copies(task)}
        gain = traffic * (_crossed(state, task, here) - min(cost.values()))
        if gain > overlap:
            copies = [(cost[c], lag, c) for c, lag in state.copies(task) if c != here]
            under_way[task] = min(copies)[2]
    return under_way


def _crossed(state: GroupState, task: int, client: int) -> int:
    """Source partitions of the task without a replica in the client's rack."""
    rack = state.racks[client]
    parts = state.partition_racks[task] if state.partition_racks is not None else ()
    return sum(1 for racks in parts if rack is not None and racks and rack not in racks)


def with_rack_costs(state: GroupState, *, traffic: int, non_overlap: int) -> GroupState:
    """The state with a strategy's own rack costs where none are configured (KIP-925)."""
    config = state.config
    if config.rack_aware_assignment_strategy == "none":
        return state
    return replace(state, config=config.with_rack_costs(traffic=traffic, non_overlap=non_overlap))
