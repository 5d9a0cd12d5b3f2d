"""Rack-aware placement of actives and standbys together: tasks exchange all their clients.

Actives are placed first, at the least cost. Many placements have that cost, and they differ in how
near the standbys can be to their changelogs while staying in other racks. The clients of a task,
active and standby, are a *slot*. Slots are exchanged between tasks: the actives keep the least
cost, and the standbys get the least cost that is possible with it. The tasks per client and the
spread of copies are properties of the slots, so they stay the same.
"""

from dataclasses import dataclass

import numpy as np

from assignor.placement.racks.classes import decode
from assignor.placement.racks.graph import FORBIDDEN, Transport, solve_transport
from assignor.placement.racks.kept_places import kept_places
from assignor.placement.racks.many_racks import has_many_racks
from assignor.placement.racks.optimise import Pairs, optimize_standbys, rack_costs
from assignor.placement.racks.traffic import traffic_of
from assignor.placement.state import BoolArray, GroupState, IntArray

# The solver examines kinds x patterns x patterns numbers per step; with more it is not used.
_MOST_NUMBERS = 400_000
_ROUNDS = 4


def optimize_together(
    state: GroupState, active: IntArray, standbys: Pairs, *, spread_racks: bool = True
) -> tuple[IntArray, Pairs, tuple[str, ...]]:
    """Place standbys at less cost than `optimize_standbys` alone, and actives at the same cost.

    Args:
        state: the group.
        active: int [T], the result of `optimize_active`.
        standbys: (task, client) pairs.
        spread_racks: as in `optimize_standbys`.

    Returns:
        Actives, standbys, and the warnings of `optimize_standbys`. Unchanged without a rack
        strategy.
    """
    pairs, warnings = optimize_standbys(state, active, standbys, spread_racks=spread_racks)
    is_known = state.partition_racks is not None and state.changelog_racks is not None
    if state.config.rack_aware_assignment_strategy == "none" or not pairs or not is_known:
        return active, pairs, warnings
    if has_many_racks(state.racks, len(pairs)):
        return active, pairs, warnings
    for _ in range(_ROUNDS):
        swapped = None if _is_least(state, pairs) else _swap_slots(state, active, pairs)
        if swapped is None:
            break
        active, pairs = swapped
        pairs, _ = optimize_standbys(state, active, pairs, spread_racks=spread_racks)
    return active, pairs, warnings


def _is_least(state: GroupState, pairs: Pairs) -> bool:
    """Whether every standby is in a rack in which its changelogs cost least."""
    task, client = np.array(pairs, dtype=np.int64).T
    traffic = traffic_of(state, state.changelog_racks, task)
    weight = traffic.weight[traffic.class_of]
    own = weight[np.arange(len(task)), traffic.rack_of[client]]
    return bool((own == weight.min(axis=1)).all())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slots:
    """Tasks that can exchange slots with each other.

    Attributes:
        task: int [M], the tasks.
        client: int [M, 1 + N], the slot of each: active client, then standby clients by rack.
        keeps: bool [M, 2], whether the active is on one of its places, and whether any standby is
            on a client with state.
    """

    task: IntArray
    client: IntArray
    keeps: BoolArray


def _slots(state: GroupState, active: IntArray, pairs: Pairs) -> list[_Slots]:
    """The slots, one part per number of standbys; with `balance_subtopology` also per subtopology.

    Args:
        state: the group.
        active: int [T], the client of every active task.
        pairs: (task, client) of all standbys.
    """
    rack_known = [rack is not None for rack in state.racks]
    held: dict[int, list[int]] = {}
    for task, client in pairs:
        held.setdefault(task, []).append(client)
    is_balanced = state.config.rack_aware_assignment_strategy == "balance_subtopology"
    states = set(zip(state.copy_task().tolist(), state.copy_client.tolist(), strict=True))
    is_kept = kept_places(state, active).includes(active).tolist()
    parts: dict[tuple[int, int], list[tuple[int, list[int], bool, bool]]] = {}
    for task, clients in sorted(held.items()):
        slot = [int(active[task]), *sorted(clients, key=lambda c: (state.racks[c] or "", c))]
        if not all(rack_known[client] for client in slot):
            continue
        part = (len(slot), int(state.subtopology[task]) if is_balanced else 0)
        warm = any((task, client) in states for client in clients)
        parts.setdefault(part, []).append((task, slot, is_kept[task], warm))
    return [
        _Slots(
            task=np.array([row[0] for row in rows], dtype=np.int64),
            client=np.array([row[1] for row in rows], dtype=np.int64),
            keeps=np.array([row[2:] for row in rows], dtype=np.bool_),
        )
        for _, rows in sorted(parts.items())
    ]


def _swap_slots(state: GroupState, active: IntArray, pairs: Pairs) -> tuple[IntArray, Pairs] | None:
    """Actives and standbys after the best exchange of slots; None if none reduces the cost."""
    placed, held, gained = active.copy(), dict.fromkeys(pairs), False
    for slots in _slots(state, active, pairs):
        order = _best_order(state, slots)
        if order is None:
            continue
        gained = True
        for task, slot in zip(slots.task.tolist(), slots.client.tolist(), strict=True):
            for client in slot[1:]:
                del held[task, client]
        for task, slot in zip(slots.task.tolist(), slots.client[order].tolist(), strict=True):
            placed[task] = slot[0]
            held |= {(task, client): None for client in slot[1:]}
    return (placed, tuple(sorted(held))) if gained else None


def _best_order(state: GroupState, slots: _Slots) -> IntArray | None:
    """Int [M]: the index of the slot that each task takes; None if no exchange is cheaper."""
    here = traffic_of(state, state.partition_racks, slots.task)
    standby_traffic = traffic_of(state, state.changelog_racks, slots.task)
    racks = here.rack_of[slots.client]
    patterns, pattern = np.unique(racks, axis=0, return_inverse=True)
    kinds = np.stack(
        [here.class_of, standby_traffic.class_of, *slots.keeps.T.astype(np.int64)], axis=1
    )
    names, kind = np.unique(kinds, axis=0, return_inverse=True)
    kind, pattern = kind.reshape(-1).astype(np.int64), pattern.reshape(-1).astype(np.int64)
    if len(names) * len(patterns) ** 2 > _MOST_NUMBERS:
        return None
    traffic, overlap = rack_costs(state)
    near = traffic * here.weight[names[:, 0]][:, patterns[:, 0]]
    far = sum(traffic * standby_traffic.weight[names[:, 1]][:, column] for column in patterns.T[1:])
    most = 1 + len(slots.task) * (int(np.max(far, initial=0)) + patterns.shape[1] * overlap)
    if most * int(near.max(initial=0) + overlap) >= FORBIDDEN:
        return None  # the costs are so large that both kinds do not fit into one number
    now = np.bincount(kind * len(patterns) + pattern, minlength=len(names) * len(patterns))
    now = now.reshape(len(names), len(patterns)).astype(np.int64)
    problem = Transport(
        start=now,
        # Actives come first: all standbys together gain less than one unit of their cost.
        cost=most * near + far,
        kept=now,
        move=overlap * (most * names[:, 2] + (patterns.shape[1] - 1) * names[:, 3]),
    )
    wanted = solve_transport(problem)
    if problem.total(wanted) >= problem.total(now):
        return None
    return decode(kind, pattern, np.arange(len(slots.task)), now, wanted)
