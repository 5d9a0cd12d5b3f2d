"""Work and share of each client: who is below its share, or has copies that make no progress.

The share of a client is floor(stateful tasks x its threads / all threads). A client may be below it
for a while: tasks wait until its copies have caught up. Operators are warned of a client that stays
below it, since no copy is on its way, and of a client with its share whose copies make no progress:
tasks that are to move there (within the bands, or for racks) wait as well.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    ClientInput,
    FloatArray,
    GroupState,
    IntArray,
    TaskAssignment,
)
from encoding import TaskId, shown

_NAMED = 3


class Shortage(Enum):
    """Why a client is below its share."""

    STALLED = "its copies make no progress"
    GIVEN_UP = "copies there made no progress and were given up"
    WARMING = "its copies are not caught up yet"
    WEIGHTS = "tasks are balanced by weight, not by number"
    STRATEGY = "the strategy leaves them elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowShare:
    """One client that runs fewer stateful tasks than its share, or whose copies make no progress.

    Attributes:
        client: index of the client.
        held: stateful tasks that it runs.
        share: those that it should run at least.
        shortage: why.
        stalled: tasks of which it builds a copy that made no progress since the last rebalance.
        lag: the largest lag of these copies; `LAG_UNKNOWN` where one is not known, 0 without any.
    """

    client: int
    held: int
    share: int
    shortage: Shortage
    stalled: tuple[int, ...] = ()
    lag: int = 0

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for the client."""
        return max(self.share - self.held, len(self.stalled))


def is_stuck(client: ClientInput, limit: int, *, was_stuck: bool) -> bool:
    """Whether copies of a client made no progress, now or when they were last there; O(copies).

    Args:
        client: its present lags, and those of the previous rebalance.
        limit: the acceptable recovery lag.
        was_stuck: the result at the previous rebalance.
    """
    known = [(client.lags_before.get(task, -1), lag) for task, lag in client.lags.items()]
    if any(lag < before for before, lag in known):
        return False
    return was_stuck or any(lag > limit and 0 <= before <= lag for before, lag in known)


def least_lags(
    client: ClientInput, limit: int, *, given: Collection[TaskId] | None = None
) -> dict[TaskId, int]:
    """Task -> the least lag of the copy so far, for `lags_before` at the next rebalance; O(copies).

    A lag that goes up and down thus counts as shrinking only when it is less than ever before. Once
    the copy was within the limit, or ran, its later lags count anew.

    Args:
        client: its present lags, and its `lags_before`.
        limit: the acceptable recovery lag.
        given: tasks that the client is given now, to run or as copies; None: all that it reports.
            No client restores other state, so it cannot come nearer: its lag is forgotten, unless
            it made no progress while it was given, so that other copies are tried first.
    """
    before = client.lags_before
    return {
        task: min(lag, before[task]) if before.get(task, LAG_RUNNING) > limit else lag
        for task, lag in client.lags.items()
        if given is None or task in given or (lag > limit and 0 <= before.get(task, -1) <= lag)
    }


def _held_and_shares(state: GroupState, assignment: TaskAssignment) -> tuple[IntArray, IntArray]:
    """Stateful tasks that each client runs, and its share of them, rounded down; int [C] both."""
    capacity = state.capacity()
    held = np.bincount(assignment.active[state.stateful], minlength=len(capacity))
    return held, int(state.stateful.sum()) * capacity // int(capacity.sum())


def _client(
    client: int, held: IntArray, share: IntArray, shortage: Shortage, stalled: IntArray
) -> BelowShare:
    """The entry of one client; `stalled`: int [K, 3], (task, client, lag) of its stalled copies."""
    return BelowShare(
        client=client,
        held=int(held[client]),
        share=int(share[client]),
        shortage=shortage,
        stalled=tuple(stalled[:, 0].tolist()),
        lag=int(stalled[:, 2].max(initial=0)),
    )


def below_share(state: GroupState, assignment: TaskAssignment) -> tuple[BelowShare, ...]:
    """Clients below their share of stateful tasks in an assignment, by client; O(T + N)."""
    held, share = _held_and_shares(state, assignment)
    low = np.flatnonzero(held < share)
    if not len(low):
        return ()
    behind, stalled = _copies_behind(state, assignment)
    rows = rows_by_value(stalled[:, 1], np.arange(len(stalled)))
    found = []
    for client in low.tolist():
        copies = stalled[rows.get(client, [])]
        shortage = Shortage.STRATEGY
        if len(copies):
            shortage = Shortage.STALLED
        elif state.stuck is not None and state.stuck[client]:
            shortage = Shortage.GIVEN_UP
        elif assignment.followup or client in behind:
            shortage = Shortage.WARMING
        elif state.weights is not None:
            shortage = Shortage.WEIGHTS
        found.append(_client(client, held, share, shortage, copies))
    return tuple(found)


def stalled_clients(state: GroupState, assignment: TaskAssignment) -> tuple[BelowShare, ...]:
    """Clients that tasks wait for although their copies make no progress; O(T + N).

    First clients below their share (`STALLED`, `GIVEN_UP`), then others, each by client. An
    assignment does not contain the targets of tasks. So the others are clients whose warm-ups are
    stalled. If `look_again` says that a task waits and none is found so far, they are clients with
    other stalled copies; and if there are none of these, clients whose copies were given up.
    Empty while a follow-up rebalance is wanted.
    """
    if assignment.followup or not _is_any_stalled(state):
        return ()
    return _stalled_clients(state, assignment, below_share(state, assignment))


def _is_any_stalled(state: GroupState) -> bool:
    return state.stuck is not None or bool(state.copy_stalled.any())


def _stalled_clients(
    state: GroupState, assignment: TaskAssignment, below: Sequence[BelowShare]
) -> tuple[BelowShare, ...]:
    """The result of `stalled_clients` for a group with stalled copies.

    Args:
        state: the group.
        assignment: its assignment.
        below: the clients below their share.
    """
    waits = (Shortage.STALLED, Shortage.GIVEN_UP)
    found = [low for low in below if low.shortage in waits]
    others = np.ones(len(state.clients), dtype=np.bool_)
    others[[low.client for low in below]] = False
    _, rows = _copies_behind(state, assignment)
    rows, warmups = rows[others[rows[:, 1]]], set(assignment.warmups)
    is_warmup = [pair in warmups for pair in zip(*rows[:, :2].T.tolist(), strict=True)]
    copies = rows[np.array(is_warmup, dtype=np.bool_)]
    is_unnamed = assignment.look_again and not found and not len(copies)
    if is_unnamed:
        copies = rows
    clients = np.unique(copies[:, 1]).tolist()
    if is_unnamed and not clients and state.stuck is not None:
        clients = np.flatnonzero(state.stuck & others).tolist()
    held, share = _held_and_shares(state, assignment)
    rows_of = rows_by_value(copies[:, 1], np.arange(len(copies)))
    for client in clients:
        own = copies[rows_of.get(client, [])]
        shortage = Shortage.STALLED if len(own) else Shortage.GIVEN_UP
        found.append(_client(client, held, share, shortage, own))
    return tuple(found)


def _copies_behind(state: GroupState, assignment: TaskAssignment) -> tuple[set[int], IntArray]:
    """Clients with assigned copies that are behind, and (task, client, lag) of the stalled ones.

    A copy without state is behind unless the task is so small that any client can start it.
    """
    width = len(state.clients)
    pairs = assignment.standby_table()
    wanted = pairs[:, 0] * width + pairs[:, 1]
    keys = state.copy_task() * width + state.copy_client
    is_here = np.isin(keys, wanted)
    hot = keys[is_here & state.is_caught_up()]
    is_new = ~np.isin(wanted, keys)
    is_behind = ~np.isin(wanted, hot) & ~(is_new & state.starts_anywhere()[pairs[:, 0]])
    rows = state.copy_rows()[is_here & state.copy_stalled & ~state.is_caught_up()]
    return set(pairs[is_behind, 1].tolist()), rows[:, :3]


def share_warnings(state: GroupState, assignment: TaskAssignment) -> tuple[str, ...]:
    """Warnings: one per client with stalled copies, one per other reason to stay below the share.

    Empty while a follow-up rebalance is wanted: then copies are on their way. With weights there is
    no warning about the share, since they balance the work and not the number of tasks.
    """
    if assignment.followup:
        return ()
    low = below_share(state, assignment)
    warnings = [
        stalled_warning(state, low_client)
        for low_client in (
            _stalled_clients(state, assignment, low) if _is_any_stalled(state) else ()
        )
        if low_client.shortage is Shortage.STALLED or low_client.held >= low_client.share
    ]
    others = (Shortage.GIVEN_UP, Shortage.WARMING, Shortage.STRATEGY)
    return (*warnings, *_sentences(state, low, others))


def share_lines(state: GroupState, assignment: TaskAssignment) -> tuple[str, ...]:
    """One sentence per reason for all clients below their share, also those that warm up."""
    return _sentences(state, below_share(state, assignment), tuple(Shortage))


def _sentences(
    state: GroupState, low: Sequence[BelowShare], shortages: Sequence[Shortage]
) -> tuple[str, ...]:
    """One sentence for each of the shortages that a client has."""
    parts = [
        (shortage, [client for client in low if client.shortage is shortage])
        for shortage in shortages
    ]
    return tuple(_below(state, part, shortage) for shortage, part in parts if part)


def stalled_warning(state: GroupState, low: BelowShare) -> str:
    """The sentence for a client whose copies make no progress."""
    name = shown(state.clients[low.client])
    lag, check = f"a lag of up to {low.lag:,} records", f"check the restore on {name}"
    if low.lag == LAG_UNKNOWN:
        lag = "an unknown lag"
        check = f"check that the listener on {name} reports task_offsets, and the restore there"
    wait, copies = _counted(low.waiting, "task"), _counted(len(low.stalled), "copy")
    verb = "waits" if low.waiting == 1 else "wait"
    if low.held >= low.share:
        why = f"{copies} there made no progress since the last rebalance, with {lag}"
        if not low.stalled:
            why = "copies there made no progress and were given up"
        return (
            f"client {name} runs {_counted(low.held, 'stateful task')}, and {why}: tasks that are "
            f"to move there stay on their previous clients; {check}"
        )
    return (
        f"{wait} {verb} for client {name}, which runs {low.held} of its share of {low.share}: "
        f"{copies} there made no progress since the last rebalance, with {lag}; {check}"
    )


def stalled_text(state: GroupState, assignment: TaskAssignment) -> str:
    """Which tasks wait for copies that make no progress, in a few words; empty where none does."""
    low = stalled_clients(state, assignment)
    if not low:
        return ""
    waiting = sum(client.waiting for client in low)
    wait = f"{_counted(waiting, 'task')} {'waits' if waiting == 1 else 'wait'}"
    if any(client.held >= client.share for client in low):  # then their number is not known
        wait = "tasks wait"
    names = ", ".join(shown(state.clients[client.client]) for client in low[:_NAMED])
    more = f" and {_counted(len(low) - _NAMED, 'more client')}" if len(low) > _NAMED else ""
    return f"{wait} for copies on {names}{more} that make no progress"


def _below(state: GroupState, low: Sequence[BelowShare], shortage: Shortage) -> str:
    why = shortage.value if len(low) == 1 else shortage.value.replace("its ", "their ", 1)
    return f"{_clients(state, low)} below the share of stateful tasks: {why}"


def _clients(state: GroupState, low: Sequence[BelowShare]) -> str:
    """The number of the clients, and of the first three the tasks that they run and their share."""
    names = ", ".join(
        f"{shown(state.clients[client.client])} runs {client.held} of {client.share}"
        for client in low[:_NAMED]
    )
    more = f" and {len(low) - _NAMED} more" if len(low) > _NAMED else ""
    return f"{_counted(len(low), 'client')} ({names}{more}) {'is' if len(low) == 1 else 'are'}"


def _counted(number: int, what: str) -> str:
    many = "copies" if what == "copy" else f"{what}s"
    return f"{number} {what if number == 1 else many}"


def work_of(state: GroupState, active: IntArray) -> FloatArray:
    """Float [C]: the work of the tasks that each client runs; without weights their number.

    Args:
        state: the group.
        active: int [T], the client of every task; tasks on NOBODY are not counted.
    """
    placed = active != NOBODY
    weights = None if state.weights is None else state.weights[placed]
    work = np.bincount(active[placed], weights=weights, minlength=len(state.clients))
    return work.astype(np.float64)


def busiest(state: GroupState, active: IntArray) -> tuple[int, float]:
    """The client with the most work per thread, the first among equals, and that work."""
    capacity = state.capacity()
    each = np.where(capacity > 0, work_of(state, active) / np.maximum(capacity, 1), 0.0)
    client = int(each.argmax())
    return client, float(each[client])
