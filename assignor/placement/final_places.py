"""Final places of all tasks and standbys: the steps that this package's own strategies share."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from assignor.placement.actives import target_actives
from assignor.placement.bands import fill, place_stateless, quotas
from assignor.placement.standbys import Standbys, even_out, tag_warnings, target_standbys
from assignor.placement.state import LAG_RUNNING, NOBODY, GroupState, IntArray
from assignor.placement.weights import weighted_target

# Most turns in which rack costs, then bands are applied; it ends when neither changes anything.
_PASSES = 8


class FinalPlaces(NamedTuple):
    """The places of all tasks once all copies have caught up.

    Attributes:
        active: int [T], the client of every active task.
        standbys: the standbys, with all warnings.
        balanced: int [T], the client of every active task before rack costs were applied.
    """

    active: IntArray
    standbys: Standbys
    balanced: IntArray


def targets(
    state: GroupState, *, evens_out: bool = False, home: IntArray | None = None
) -> FinalPlaces:
    """The final places of all active tasks and standbys.

    Bands are applied first, then rack costs: these exchange tasks and keep every client's counts.

    Args:
        state: the group.
        evens_out: whether standbys may leave their state so that no crash overloads a client; for
            strategies that keep the old copy until the new one has caught up.
        home: int [T], from `homes` if it is already computed; not changed.
    """
    balanced = target_actives(state, home)
    place_stateless(state, balanced)
    if state.config.rack_aware_assignment_strategy == "none":
        standbys = target_standbys(state, balanced)
        # With tags or racks, copies are where these require them to be.
        if evens_out and not state.config.rack_aware_assignment_tags and not any(state.racks):
            standbys = even_out(state, balanced, standbys)
        return FinalPlaces(balanced, _with_tag_warnings(state, balanced, standbys), balanced)
    # Imported where it is needed: most groups have no rack strategy, and flows bring networkx.
    from assignor.placement.racks.all_copies import optimize_together  # noqa: PLC0415 see above
    from assignor.placement.racks.optimise import optimize_active  # noqa: PLC0415 see above

    active = balanced
    warnings: tuple[str, ...] = ()
    if state.weights is None:
        moves = _moves_under_way(state)
        active, warnings = optimize_active(state, balanced, moves)
        if (moves != NOBODY).any():
            # A copy may be left over from another placement: moves decide among equal costs only.
            anew, _ = optimize_active(state, balanced)
            active = _cheaper(state, balanced, active, anew)
    else:
        warnings = (
            "racks of active tasks are not optimised: tasks have weights; remove them or the racks",
        )
    standbys = target_standbys(state, active)
    rack_warnings: tuple[str, ...] = ()
    for _ in range(_PASSES):
        given = tuple(zip(standbys.task.tolist(), standbys.client.tolist(), strict=True))
        active, pairs, rack_warnings = optimize_together(state, active, given)
        exchanged = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        # After the exchange, copies may be able to leave a client above its band.
        is_same = pairs == tuple(sorted(given))
        level = (
            standbys if is_same else target_standbys(_settled(state, active, *exchanged), active)
        )
        standbys = replace(standbys, task=level.task, client=level.client)
        is_level = is_same or np.array_equal(exchanged, (level.task, level.client))
        # Of one standby a task the optimum is exact; of more, the exchanged copies may find more.
        if is_same or (is_level and state.config.num_standby_replicas == 1):
            break
    placed = replace(
        standbys, warnings=tuple(dict.fromkeys((*warnings, *standbys.warnings, *rack_warnings)))
    )
    return FinalPlaces(active, _with_tag_warnings(state, active, placed), balanced)


def with_fresh_stateless(state: GroupState, target: IntArray, now: IntArray) -> IntArray:
    """Int [T]: `target`, with new stateless tasks placed on the clients that run the least now.

    `place_stateless` counts stateful tasks on their final clients. While they still warm up there,
    their present clients would get more than their share of the new tasks. With a rack strategy the
    new tasks are then exchanged for the least traffic.

    Args:
        state: the group.
        target: int [T], the final client of each task, stateless ones included.
        now: int [T], the client of each stateful task after this rebalance.
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
        free = quotas(count, capacity, len(runs), at_least=count) - count
        only_stateless = np.where(state.stateful, NOBODY, runs)
        fill(state, fresh.tolist(), only_stateless, free, capacity)
        runs = np.where(state.stateful, now, only_stateless)
        if state.config.rack_aware_assignment_strategy != "none":
            from assignor.placement.racks.optimise import optimize_active  # noqa: PLC0415 see targets

            is_fresh = np.zeros(len(runs), dtype=np.bool_)
            is_fresh[fresh] = True
            runs, _ = optimize_active(state, runs, among=is_fresh)
    return np.where(state.stateful, target, runs)


def _with_tag_warnings(state: GroupState, active: IntArray, standbys: Standbys) -> Standbys:
    """The standbys, with a warning for each tag key that they are not spread over."""
    if not state.config.rack_aware_assignment_tags or not len(standbys.task):
        return standbys
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    tag_texts = tag_warnings(state, active, tuple(pairs))
    return Standbys(
        task=standbys.task, client=standbys.client, warnings=(*standbys.warnings, *tag_texts)
    )


def _settled(state: GroupState, active: IntArray, task: IntArray, client: IntArray) -> GroupState:
    """The group after all tasks and standbys (int [P], sorted by task) have moved."""
    runs = np.flatnonzero(state.stateful)
    rows = np.zeros((len(runs) + len(task), 4), dtype=np.int64)
    rows[:, 0], rows[:, 1] = np.concatenate([runs, task]), np.concatenate([active[runs], client])
    rows[: len(runs), 2] = LAG_RUNNING
    return state.with_copies(rows, owner=active)


def _moves_under_way(state: GroupState) -> IntArray:
    """Int [T]: the client with a warm-up that is to run the task, or NOBODY.

    Several placements may have the least cost. Without this, a rebalance may choose another one
    than the last did, and start its warm-ups anew.
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


def _cheaper(state: GroupState, balanced: IntArray, active: IntArray, other: IntArray) -> IntArray:
    """Int [T]: the placement with the least traffic and moves of stateful tasks; `active` if equal.

    Args:
        state: the group.
        balanced: int [T], the client of every task by balance alone.
        active: int [T], a placement.
        other: int [T], another one.
    """
    from assignor.placement.racks.kept_places import kept_places  # noqa: PLC0415 see targets

    places = kept_places(state, balanced)
    differs = np.flatnonzero(state.stateful & (active != other))
    overlap = state.config.rack_aware_assignment_non_overlap_cost or 0
    traffic = state.config.rack_aware_assignment_traffic_cost or 0

    def cost(client: IntArray) -> int:
        moved = (places.count() > 0) & ~places.includes(client)
        pairs = zip(differs.tolist(), client[differs].tolist(), strict=True)
        crossed = sum(_crossed(state, task, at) for task, at in pairs)
        return traffic * crossed + overlap * int(moved[differs].sum())

    return min(active, other, key=cost)


def _crossed(state: GroupState, task: int, client: int) -> int:
    """Source partitions of the task without a replica in the client's rack."""
    rack = state.racks[client]
    parts = state.partition_racks[task] if state.partition_racks is not None else ()
    return sum(1 for racks in parts if rack is not None and racks and rack not in racks)


def with_rack_costs(state: GroupState, *, traffic: int, non_overlap: int) -> GroupState:
    """The group with a strategy's default rack costs if none are configured (KIP-925)."""
    config = state.config
    if config.rack_aware_assignment_strategy == "none":
        return state
    return replace(state, config=config.with_rack_costs(traffic=traffic, non_overlap=non_overlap))
