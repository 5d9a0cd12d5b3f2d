"""The final places of standbys: existing copies stay, new ones spread over all other clients.

Bands count actives and standbys together. An existing copy stays while its client is within its
band. New copies are assigned round robin, with a separate start for each active client, so that the
standbys of one client are on all others, and all survivors share its tasks after a crash. (Kafka
takes the least loaded client in order, which puts all standbys of one client on one other.)
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from assignor.placement.arrays import is_among, rows_by_value
from assignor.placement.bands import quotas
from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.standbys.copy_chains import move_along_chains
from assignor.placement.standbys.draft import DraftStandbys
from assignor.placement.standbys.free_capacity import Takers
from assignor.placement.standbys.new_copies import fill_standbys
from assignor.placement.state import BoolArray, GroupState, IntArray

# Most clients with free capacity that are compared for a copy that must leave its client.
_TAKERS = 64
# With fewer tasks a client, one task more exceeds the limit of `even_out`.
_FEWEST = 5
# Most caught-up copies among which those to keep are chosen one by one.
_MOST_CHOICES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standbys:
    """Standby pairs; int [P] both, sorted by task, then client.

    Attributes:
        task, client: the pairs.
        warnings: missing copies and copies that are not spread as configured, with the reason.
    """

    task: IntArray
    client: IntArray
    warnings: tuple[str, ...] = ()

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(task, client) of each standby, in order."""
        return tuple(zip(self.task.tolist(), self.client.tolist(), strict=True))


def target_standbys(state: GroupState, target: IntArray) -> Standbys:
    """The final places of standbys, with a warning if there are too few clients for them.

    Each task gets as many as configured, at most one less than there are usable clients.

    Args:
        state: the group.
        target: int [T], the client of every active task, stateless ones included.
    """
    capacity = state.capacity()
    usable = int((capacity > 0).sum())
    wanted = min(state.config.num_standby_replicas, usable - 1)
    nothing = np.zeros(0, dtype=np.int64)
    if wanted <= 0 or not state.stateful.any():
        return Standbys(task=nothing, client=nothing, warnings=_too_few(state, max(0, wanted)))
    spread = Spread.of(state)
    kept_task, kept_client = _keep(state, target, wanted, spread)
    copies = int(state.stateful.sum()) * wanted
    load = np.bincount(target, minlength=len(capacity)).astype(np.int64)
    held = np.bincount(kept_client, minlength=len(capacity)).astype(np.int64)
    free = _free(state, load, held, copies)
    if not (free < 0).any() and len(kept_task) == copies:
        return Standbys(task=kept_task, client=kept_client, warnings=_too_few(state, wanted))
    draft = DraftStandbys.of(
        state,
        target,
        wanted=wanted,
        kept=(kept_task, kept_client),
        candidates=_candidates(state, target),
        spread=spread,
    )
    draft.free = free.tolist()
    ends = state.end_offset_sums.tolist()
    _shed_all(draft, ends)
    fill_standbys(draft)
    _shed_until_settled(draft, ends, state, load, copies)
    if move_along_chains(draft):
        _shed_until_settled(draft, ends, state, load, copies)
    task, client = draft.copies()
    order = np.lexsort((client, task))
    return Standbys(task=task[order], client=client[order], warnings=_too_few(state, wanted))


def _shed_until_settled(
    draft: DraftStandbys, ends: Sequence[int], state: GroupState, load: IntArray, copies: int
) -> None:
    """Move the copies that the next rebalance would otherwise move because of the bands.

    A copy that was placed above a band, or moved along a chain, changes the quotas of others. The
    loop ends: bands stay the same, and each move reduces the number of copies outside them.
    """
    # If every client holds exactly its quota, the next rebalance computes the same quotas.
    while any(draft.free):
        held = np.bincount(draft.copies()[1], minlength=len(load)).astype(np.int64)
        draft.free = _free(state, load, held, copies).tolist()
        if not _shed_all(draft, ends):
            return


def has_few_tasks(state: GroupState) -> bool:
    """Whether a task more is so much for a client that no copy moves to share them better."""
    return int(state.stateful.sum()) < _FEWEST * int((state.capacity() > 0).sum())


def _free(state: GroupState, load: IntArray, held: IntArray, copies: int) -> IntArray:
    """Int [C]: standbys that each client may still take; below 0: it holds too many."""
    total = int(load.sum()) + copies
    return quotas(load + held, state.capacity(), total, at_least=load) - load - held


def _too_few(state: GroupState, wanted: int) -> tuple[str, ...]:
    if not state.stateful.any():
        return ()
    usable = int((state.capacity() > 0).sum())
    return too_few_clients(state.config.num_standby_replicas, wanted, usable)


def too_few_clients(configured: int, placed: int, clients: int) -> tuple[str, ...]:
    """A warning if fewer standby replicas are placed than configured; else empty.

    Args:
        configured: num.standby.replicas.
        placed: standbys of each task.
        clients: clients that can hold tasks.
    """
    if placed >= configured:
        return ()
    replicas = "replica is" if configured == 1 else "replicas are"
    standbys = "none is" if placed == 0 else "1 is" if placed == 1 else f"{placed} are"
    number = "is only 1 client" if clients == 1 else f"are only {clients} clients"
    more = "another" if configured - placed == 1 else "more"
    warning = (
        f"{configured} standby {replicas} configured, {standbys} placed: there {number}; "
        f"start {more}"
    )
    return (warning,)


def _candidates(state: GroupState, target: IntArray) -> tuple[IntArray, IntArray]:
    """(task, client) of the copies that may stay, int [N] both, best first within each task.

    Caught-up copies come first, then copies that are not the previous owner's, then small lags.
    """
    task = state.copy_task()
    capacity = state.capacity()
    fits = state.stateful[task] & (state.copy_client != target[task])
    fits &= capacity[state.copy_client] > 0
    where = np.flatnonzero(fits)
    client, of_task = state.copy_client[where], task[where]
    lag = state.copy_lag[where]
    is_behind = lag > state.config.acceptable_recovery_lag
    was_owner = client == state.owner[of_task]
    order = np.lexsort((client, np.where(is_behind, lag, 0), was_owner, is_behind, of_task))
    return of_task[order], client[order]


def _keep(
    state: GroupState, target: IntArray, wanted: int, spread: Spread
) -> tuple[IntArray, IntArray]:
    """(task, client) of the best `wanted` copies of each task, sorted; int [K] both."""
    task, client = _candidates(state, target)
    if not len(task):
        return task, client
    first = np.searchsorted(task, task, side="left")
    best = np.arange(len(task)) - first < wanted
    if spread.is_needed and wanted == 1:
        fits = np.flatnonzero(spread.allowed(target[task], client))
        best = np.zeros(len(task), dtype=np.bool_)
        best[fits[np.diff(task[fits], prepend=-1) != 0]] = True
    elif not spread.is_needed:
        _share_caught_up(state, target, task, client, best)
    else:
        best = np.zeros(len(task), dtype=np.bool_)
        clients, active = client.tolist(), target.tolist()
        starts = [*np.flatnonzero(np.diff(task, prepend=-1)).tolist(), len(clients)]
        for start, end in pairwise(starts):
            kept = set(spread.keep(clients[start:end], active[int(task[start])], wanted))
            best[start:end] = [c in kept for c in clients[start:end]]
    task, client = task[best], client[best]
    order = np.lexsort((client, task))
    return task[order], client[order]


def _share_caught_up(
    state: GroupState, target: IntArray, task: IntArray, client: IntArray, best: BoolArray
) -> None:
    """Choose anew among caught-up copies, so that several clients share what one client runs.

    All are equally cheap to keep, but a client that keeps most of them takes over most tasks after
    a crash. The previous owner keeps its copy only in a group with few tasks a client, for which
    `even_out` does nothing, and only if every other client has more of them.

    Args:
        state: the group.
        target: int [T], the client of every active task.
        task: int [N], with `client` from `_candidates`.
        client: int [N].
        best: bool [N], the copies that are kept; changed.
    """
    width, hot = len(state.clients), state.is_caught_up()
    copies = state.copy_task()[hot] * width + state.copy_client[hot]
    is_hot = is_among(task * width + client, copies)
    wanted = np.bincount(task[best], minlength=len(target))
    has_choice = np.bincount(task[is_hot], minlength=len(target)) > wanted
    rows = np.flatnonzero(is_hot & has_choice[task])
    if not 0 < len(rows) <= _MOST_CHOICES:
        return
    best[rows] = False
    shared = Counter(zip(target[task[best]].tolist(), client[best].tolist(), strict=True))
    held = Counter(target.tolist()) + Counter(client[best].tolist())
    threads, owners, is_last = state.capacity().tolist(), state.owner, not has_few_tasks(state)
    for each, found in groupby(rows.tolist(), key=task.__getitem__):
        active, owner, keeps = int(target[each]), int(owners[each]), {}
        for row in found:
            c = int(client[row])
            load = (shared[active, c] + (c == owner)) / threads[c]
            keeps[c] = (is_last and c == owner, load, held[c] / threads[c], row)
        for c in sorted(keeps, key=keeps.__getitem__)[: wanted[each]]:
            best[keeps[c][-1]] = True
            shared[active, c] += 1
            held[c] += 1


def _shed_all(draft: DraftStandbys, ends: Sequence[int]) -> int:
    """Move copies off clients that hold too many; returns how many moved."""
    over = [client for client, free in enumerate(draft.free) if free < 0]
    if not over:
        return 0
    # Only clients with free capacity get copies, so the copies of the others are known now.
    task, client = draft.copies()
    chosen = np.array(draft.free, dtype=np.int64)[client] < 0
    held = rows_by_value(client[chosen], task[chosen])
    takers = Takers.of(draft.free, draft.spread.cells)
    return sum(
        _shed_to_copies(draft, takers, held.get(client, []), client)
        + _shed(draft, takers, ends, held.get(client, []), client)
        for client in over
    )


def _shed_to_copies(draft: DraftStandbys, takers: Takers, held: Sequence[int], client: int) -> int:
    """Move copies to clients with free capacity and state of the task; returns how many moved.

    Nothing is restored.
    """
    shed = 0
    for task in held:
        if draft.free[client] >= 0:
            break
        for other in draft.others.get(task, ()):
            fits = draft.free[other] > 0 and draft.can_hold(task, other)
            if fits and draft.may_replace(task, client, other):
                draft.drop(task, client)
                draft.add(task, other)
                takers.filled(other)
                shed += 1
                break
    return shed


def _shed(
    draft: DraftStandbys, takers: Takers, ends: Sequence[int], held: Sequence[int], client: int
) -> int:
    """Move copies off one client to clients without state of the task; returns how many moved.

    New copies go first, then those whose (active client, standby client) pair shares most tasks,
    cheapest to restore first. A copy for which there is no other client stays.
    """
    if draft.free[client] >= 0 or not takers.count:
        return 0
    fresh = draft.fresh.get(client, {})
    by_active: dict[tuple[bool, int], list[int]] = {}
    for task in held:
        if client in draft.holders[task]:
            by_active.setdefault((task not in fresh, draft.active[task]), []).append(task)
    heap = []
    for key, part in by_active.items():
        # Popped from the end: cheapest last, and the highest number among equals.
        part.sort(key=ends.__getitem__, reverse=True)
        heap.append((key[0], -draft.pairs[key[1], client], key[1]))
    heapq.heapify(heap)
    shed = 0
    while draft.free[client] < 0 and heap and takers.count:
        is_old, _, active = heapq.heappop(heap)
        task = by_active[is_old, active].pop()
        taker = _taker(draft, takers, task, client)
        if taker is not None:
            shed += 1
            draft.drop(task, client)
            draft.add_new(task, taker)
            takers.filled(taker)
        if by_active[is_old, active]:
            heapq.heappush(heap, (is_old, -draft.pairs[active, client], active))
    return shed


def _taker(draft: DraftStandbys, takers: Takers, task: int, client: int) -> int | None:
    """The client to which a copy moves from a client above its band; None: the copy stays."""
    active, held_by = draft.active[task], draft.holders[task]
    best: tuple[float, float, int] | None = None
    for other in takers.first(draft.successors(task, client), _TAKERS):
        if other == active or other in held_by:
            continue
        threads = draft.capacity[other]
        shared = draft.pairs.get((active, other), 0)
        found = (shared / threads, -draft.free[other] / threads, other)
        if best is None or found < best:
            best = found
    return None if best is None else best[2]
