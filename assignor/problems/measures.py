"""What an assignment costs a group, and what it gains: the measures of one group.

Costs are those of the assignment itself. Gain and worth are those of the *settled* assignment, in
which all tasks are where the strategy wants them: `high_availability` first builds warm-ups, so the
first of its assignments costs restores and does not yet change the balance. A strategy that records
a trace names the settled assignment; otherwise the assignment itself counts as settled.

The *defects* of a group are

- tasks that no client runs,
- tasks that must move so that every client runs its share of the stateful tasks, and of all tasks,
  rounded down or up (with weights: work above a client's share and the heaviest task, and 4 % of
  both, in average tasks),
- configured standbys that do not exist although there is a client for them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil

import numpy as np

from assignor.placement import (
    LAG_UNKNOWN,
    NOBODY,
    WEIGHT_TOLERANCE,
    FloatArray,
    GroupState,
    IntArray,
    TaskAssignment,
    Trace,
    busiest,
    is_among,
    thread_bands,
    work_of,
)
from assignor.problems.rounds import moves_of

_DIGITS = 3
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Costs and gain of an assignment.

    Attributes:
        tasks, clients: of the group.
        handoffs, takeovers, stateless_moves, restores, cold, warmups: as in `Moves`.
        restored_records: records that the placed copies of stateful tasks lack, where known;
            copies that stay count too.
        unknown_restores: placed copies that lack an unknown number of records, because their lag is
            unknown, or the end offset sum of a task without state there.
        balance_before, balance_after, balance_settled: work of the busiest thread over the average
            of the tasks that run, which counts as at least one task; 1 is even, 0 if none runs.
        gained: defects of the group now, minus those once it has settled.
        touched: hand-offs, stateless moves and restores until the group has settled.
        worth: `gained`, times `gained / touched` if that is below 1; `gained` itself if it is not
            above 0.
    """

    tasks: int
    clients: int
    handoffs: int
    takeovers: int
    stateless_moves: int
    restores: int
    cold: int
    warmups: int
    restored_records: int
    unknown_restores: int
    balance_before: float
    balance_after: float
    balance_settled: float
    gained: int
    touched: int
    worth: float


def measures_of(
    state: GroupState, assignment: TaskAssignment, trace: Trace | None = None
) -> Measures:
    """Measure a valid assignment; O(T + N).

    Args:
        state: the group before.
        assignment: its assignment.
        trace: what the strategy recorded, if anything (`run_with_trace`).
    """
    moves = moves_of(state, assignment)
    active, pairs = settled_places(assignment, trace)
    records, unknown = records_to_restore(state, assignment)
    held = _copies_held(state)
    placed = np.bincount(pairs[:, 0], minlength=len(state.tasks))
    gained = _defects(state, state.owner, held) - _defects(state, active, placed)
    touched = _touched(state, active, pairs)
    return Measures(
        tasks=len(state.tasks),
        clients=len(state.clients),
        handoffs=moves.handoffs,
        takeovers=moves.takeovers,
        stateless_moves=moves.stateless_moves,
        restores=moves.restores,
        cold=moves.cold,
        warmups=moves.warmups,
        restored_records=records,
        unknown_restores=unknown,
        balance_before=balance(state, state.owner),
        balance_after=balance(state, assignment.active),
        balance_settled=balance(state, active),
        gained=gained,
        touched=touched,
        worth=worth_of(gained, touched),
    )


def worth_of(gained: int, touched: int) -> float:
    """The gain, discounted by the share of touched copies that gain something.

    >>> [worth_of(6, 0), worth_of(6, 6), worth_of(6, 12), worth_of(0, 5), worth_of(-2, 5)]
    [6.0, 6.0, 3.0, 0.0, -2.0]
    """
    if gained <= 0 or touched <= gained:
        return float(gained)
    return round(gained * gained / touched, _DIGITS)


def settled_places(assignment: TaskAssignment, trace: Trace | None) -> tuple[IntArray, IntArray]:
    """Active clients and standbys once all copies have caught up; those now if that is not known.

    A strategy whose trace has no standbys is taken to keep those of the assignment.

    Returns:
        int [T], the client of each active task, and int [P, 2], (task, client) of each standby.
    """
    if trace is None:
        return assignment.active, assignment.standby_table()
    final: Collection[tuple[int, int]] | None = trace.standbys
    if final is None:
        final = set(assignment.standbys).difference(assignment.warmups)
    pairs = np.fromiter(chain.from_iterable(final), np.int64, 2 * len(final)).reshape(-1, 2)
    return trace.target, pairs[trace.target[pairs[:, 0]] != pairs[:, 1]]


def _touched(state: GroupState, active: IntArray, pairs: IntArray) -> int:
    """Active tasks that leave a client that runs them, and copies on clients without state."""
    width, stateful = len(state.clients), np.flatnonzero(state.stateful)
    keys = state.copy_task() * width + state.copy_client
    standbys = pairs[:, 0] * width + pairs[:, 1]
    placed = np.concatenate([stateful * width + active[stateful], standbys])
    leaving = (state.owner != NOBODY) & (active != state.owner)
    return int(leaving.sum()) + int((~is_among(placed, keys)).sum())


def balance(state: GroupState, active: IntArray) -> float:
    """Work of the busiest thread over the average; 1 is even.

    The average is over the tasks that threads run, and counts as at least one task.

    Args:
        state: the group.
        active: int [T], the client of each task; a task on NOBODY does not run.
    """
    capacity = state.capacity()
    is_run = (active != NOBODY) & (capacity[active] > 0)
    if not is_run.any():
        return 0.0
    _, most = busiest(state, active)
    count = int(is_run.sum())
    total = float(count if state.weights is None else state.weights[is_run].sum())
    average = max(total / int(capacity.sum()), total / count)
    return round(most / average, _DIGITS)


def balance_of(capacity: IntArray, held: IntArray) -> float:
    """As `balance`, of equal tasks by their numbers.

    Args:
        capacity: int [C], threads.
        held: int [C], tasks that each client runs.
    """
    run = np.where(capacity > 0, held, 0)
    most = (run / np.maximum(capacity, 1)).max(initial=0.0)
    return round(float(most) / max(int(run.sum()) / int(capacity.sum()), 1.0), _DIGITS)


def lacking_records(state: GroupState, task: IntArray, client: IntArray) -> IntArray:
    """Int [P]: records that each (task, client) lacks at most; LAG_UNKNOWN where there is no bound.

    A client without state lacks the end offset sum of the task, as does one whose lag is unknown.
    """
    ends: IntArray = state.end_offset_sums[task]
    lag = _reported_lags(state, task, client)
    return np.maximum(np.where(lag == LAG_UNKNOWN, ends, lag), 0)


def _reported_lags(state: GroupState, task: IntArray, client: IntArray) -> IntArray:
    """Int [P]: the lag of each (task, client); the end offset sum where there is no state."""
    width = len(state.clients)
    keys = state.copy_task() * width + state.copy_client
    wanted = task * width + client
    lag: IntArray = state.end_offset_sums[task]
    if len(keys):
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        lag = np.where(keys[place] == wanted, state.copy_lag[place], lag)
    return lag


def records_to_restore(state: GroupState, assignment: TaskAssignment) -> tuple[int, int]:
    """Records that the placed copies of stateful tasks lack, and copies of which it is unknown.

    A copy with an unknown lag may lack any number up to the end offset sum, 0 if that is 0.
    """
    stateful, pairs = np.flatnonzero(state.stateful), assignment.standby_table()
    task = np.concatenate([stateful, pairs[:, 0]])
    client = np.concatenate([assignment.active[stateful], pairs[:, 1]])
    lag = _reported_lags(state, task, client)
    is_known = (lag != LAG_UNKNOWN) | (state.end_offset_sums[task] == 0)
    lacking = np.where(lag == LAG_UNKNOWN, 0, np.maximum(lag, 0))
    return total_of(lacking[is_known]), int((~is_known).sum())


def total_of(numbers: IntArray) -> int:
    """The sum of numbers of at least 0, at most 2**63 - 1, however large they are."""
    high, low = numbers >> 32, numbers & 0xFFFF_FFFF
    return min((int(high.sum()) << 32) + int(low.sum()), LAG_UNKNOWN)


def _copies_held(state: GroupState) -> IntArray:
    """Int [T]: copies of each task beside the one that runs."""
    task = state.copy_task()
    others = task[state.copy_client != state.owner[task]]
    return np.bincount(others, minlength=len(state.tasks))


def _defects(state: GroupState, active: IntArray, standbys: IntArray) -> int:
    """The number of defects.

    Args:
        state: the group.
        active: int [T], the client of each task, or NOBODY.
        standbys: int [T], the number of copies beside.
    """
    if not state.tasks:
        return 0
    usable = int((state.capacity() > 0).sum())
    wanted = min(state.config.num_standby_replicas, usable - 1)
    missing = np.maximum(wanted - standbys[state.stateful], 0)
    uneven = _excess_work(state, active) if state.weights is not None else _misplaced(state, active)
    return int((active == NOBODY).sum()) + uneven + int(missing.sum())


def _misplaced(state: GroupState, active: IntArray) -> int:
    """Tasks that must move so that all clients are within their bands."""
    capacity, has_client = state.capacity(), active != NOBODY
    parts = (
        (int(state.stateful.sum()), active[state.stateful & has_client]),
        (len(state.tasks), active[has_client]),
    )
    return misplaced_tasks(
        capacity,
        [(total, np.bincount(chosen, minlength=len(capacity))) for total, chosen in parts],
    )


def misplaced_tasks(capacity: IntArray, parts: Sequence[tuple[int, IntArray]]) -> int:
    """Tasks that must move so that all clients are within their bands for each kind of tasks.

    Tasks that no client runs fill up clients below their bands.

    Args:
        capacity: int [C], threads.
        parts: tasks of each kind, and int [C], those that each client runs.
    """
    counts = []
    for total, held in parts:
        bands = thread_bands(capacity, total)
        above = int(np.maximum(held - bands.high, 0).sum())
        below = int(np.maximum(bands.low - held, 0).sum())
        counts.append(max(above, below - (total - int(held.sum()))))
    return max(counts)


def _excess_work(state: GroupState, active: IntArray) -> int:
    """Work above what a client may have, in average tasks, each client's rounded up.

    It may have its share and the heaviest task, and as much more as placement by weight tolerates.
    """
    weights: FloatArray = np.ones(1) if state.weights is None else state.weights
    capacity, total = state.capacity(), float(weights.sum())
    heaviest = np.where(capacity > 0, weights.max(), 0.0)
    limit = WEIGHT_TOLERANCE * (capacity * total / int(capacity.sum()) + heaviest)
    above = np.maximum(work_of(state, active) - limit, 0.0) / (total / len(weights))
    return sum(ceil(tasks - _ROUNDING) for tasks in above.tolist())
