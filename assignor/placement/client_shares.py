"""Clients below their share of stateful tasks, or whose copies come no nearer, in any answer.

The share of a client is floor(stateful tasks x its threads / all threads). A client may be below it
for a while: tasks wait until its copies have caught up. What an operator should hear of is a client
that stays below it, since nothing is on its way, and one with its share whose copies come no
nearer: what is to move there (within the bands, or for racks) waits as well.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from assignor.placement.arrays import rows_by_value
from assignor.placement.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    ClientInput,
    GroupState,
    IntArray,
    TaskAssignment,
)
from encoding import TaskId, shown

_NAMED = 3


class Shortage(Enum):
    """Why a client is below its share."""

    STALLED = "its copies come no nearer"
    GIVEN_UP = "copies came no nearer there and made room for others"
    WARMING = "its copies are not caught up yet"
    WEIGHTS = "tasks are balanced by weight, not by number"
    STRATEGY = "the strategy leaves them elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowShare:
    """One client that runs fewer stateful tasks than its share, or whose copies come no nearer.

    Attributes:
        client: index of the client.
        held: stateful tasks that it runs.
        share: those that it should run at least.
        shortage: why.
        stalled: tasks of which it builds a copy that came no nearer since the last rebalance.
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
        """How many tasks wait for the client."""
        return max(self.share - self.held, len(self.stalled))


def is_stuck(client: ClientInput, limit: int, *, was_stuck: bool) -> bool:
    """Whether copies of a client came no nearer, now or when they were last there; O(copies).

    Args:
        client: with what it reports, and what it reported at the rebalance before.
        limit: the acceptable recovery lag.
        was_stuck: the answer at the rebalance before.
    """
    known = [(client.lags_before.get(task, -1), lag) for task, lag in client.lags.items()]
    if any(lag < before for before, lag in known):
        return False
    return was_stuck or any(lag > limit and 0 <= before <= lag for before, lag in known)


def least_lags(
    client: ClientInput, limit: int, *, given: Collection[TaskId] | None = None
) -> dict[TaskId, int]:
    """Task -> lag, to hand in as `lags_before` at the next rebalance; O(copies).

    Args:
        client: with what it reports, and what was remembered of it.
        limit: the acceptable recovery lag.
        given: tasks that the client is given now, to run or as copies; None: all that it reports.
            Nobody restores other state, so it cannot come nearer: its lag is forgotten, unless it
            came no nearer while it was given, so that other copies are tried first.

    The least lag that a copy has had so far, so that one whose lag goes up and down comes nearer
    only when it is nearer than ever. Once it was within the limit, the acceptable recovery lag, or
    ran, its lag counts from then on.
    """
    before = client.lags_before
    return {
        task: min(lag, before[task]) if before.get(task, LAG_RUNNING) > limit else lag
        for task, lag in client.lags.items()
        if given is None or task in given or (lag > limit and 0 <= before.get(task, -1) <= lag)
    }


def _held_and_shares(state: GroupState, assignment: TaskAssignment) -> tuple[IntArray, IntArray]:
    """Int [C] both: stateful tasks that each client runs, and its share of them, rounded down."""
    capacity = state.capacity()
    held = np.bincount(assignment.active[state.stateful], minlength=len(capacity))
    return held, int(state.stateful.sum()) * capacity // int(capacity.sum())


def _client(
    client: int, held: IntArray, share: IntArray, shortage: Shortage, stalled: IntArray
) -> BelowShare:
    """What is said of one client; `stalled` are its (task, client, lag)."""
    return BelowShare(
        client=client,
        held=int(held[client]),
        share=int(share[client]),
        shortage=shortage,
        stalled=tuple(stalled[:, 0].tolist()),
        lag=int(stalled[:, 2].max(initial=0)),
    )


def below_share(state: GroupState, assignment: TaskAssignment) -> tuple[BelowShare, ...]:
    """Clients that an answer leaves below their share of stateful tasks, by client; O(T + N)."""
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
    """Clients that something waits for though their copies come no nearer; O(T + N).

    First those below their share (`STALLED`, `GIVEN_UP`), then those with it, each by client. An
    answer does not say where tasks are to go. So of clients with their share those count whose
    warm-ups stall; where `look_again` says that a task waits and there are none of either, those
    whose other copies stall; and where there are no copies either, those that gave them up.
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
    """As `stalled_clients`, where any copy stalls; `below` are the clients below their share."""
    waits = (Shortage.STALLED, Shortage.GIVEN_UP)
    found = [one for one in below if one.shortage in waits]
    others = np.ones(len(state.clients), dtype=np.bool_)
    others[[one.client for one in below]] = False
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
    """Clients with copies in the answer that are behind, and (task, client, lag) of stalled ones.

    A copy without state is behind where the task has so much that restoring it counts.
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
    """One sentence a reason for clients that stay below their share, and one for each stalled one.

    Empty while a follow-up rebalance is wanted: then copies are on their way. Weights balance the
    work and not the number of tasks, so nothing is said of them either.
    """
    if assignment.followup:
        return ()
    low = below_share(state, assignment)
    warnings = [
        stalled_warning(state, one)
        for one in (_stalled_clients(state, assignment, low) if _is_any_stalled(state) else ())
        if one.shortage is Shortage.STALLED or one.held >= one.share
    ]
    others = (Shortage.GIVEN_UP, Shortage.WARMING, Shortage.STRATEGY)
    return (*warnings, *_sentences(state, low, others))


def share_lines(state: GroupState, assignment: TaskAssignment) -> tuple[str, ...]:
    """One sentence a reason for all clients below their share, those that warm up included."""
    return _sentences(state, below_share(state, assignment), tuple(Shortage))


def _sentences(
    state: GroupState, low: Sequence[BelowShare], shortages: Sequence[Shortage]
) -> tuple[str, ...]:
    """One sentence for each of the shortages that a client has."""
    parts = [(one, [client for client in low if client.shortage is one]) for one in shortages]
    return tuple(_below(state, part, shortage) for shortage, part in parts if part)


def stalled_warning(state: GroupState, low: BelowShare) -> str:
    """The sentence for a client whose copies come no nearer."""
    name = shown(state.clients[low.client])
    lag = "an unknown lag" if low.lag == LAG_UNKNOWN else f"a lag of up to {low.lag:,} records"
    wait, copies = _counted(low.waiting, "task"), _counted(len(low.stalled), "copy")
    verb = "waits" if low.waiting == 1 else "wait"
    if low.held >= low.share:
        why = f"{copies} there came no nearer since the last rebalance, with {lag}"
        if not low.stalled:
            why = "copies there came no nearer and made room for others"
        return (
            f"client {name} runs {_counted(low.held, 'stateful task')}, and {why}: "
            f"what is to move there stays where it is; look at the restore of {name}"
        )
    return (
        f"{wait} {verb} for client {name}, which runs {low.held} of its share of {low.share}: "
        f"{copies} there came no nearer since the last rebalance, with {lag}; "
        f"look at the restore of {name}"
    )


def stalled_text(state: GroupState, assignment: TaskAssignment) -> str:
    """Which tasks wait for copies that come no nearer, in a few words; empty where none does."""
    low = stalled_clients(state, assignment)
    if not low:
        return ""
    waiting = sum(one.waiting for one in low)
    wait = f"{_counted(waiting, 'task')} {'waits' if waiting == 1 else 'wait'}"
    if any(one.held >= one.share for one in low):  # then nobody knows how many
        wait = "tasks wait"
    names = ", ".join(shown(state.clients[one.client]) for one in low[:_NAMED])
    more = f" and {_counted(len(low) - _NAMED, 'more client')}" if len(low) > _NAMED else ""
    return f"{wait} for copies on {names}{more} that come no nearer"


def _below(state: GroupState, low: Sequence[BelowShare], shortage: Shortage) -> str:
    why = shortage.value if len(low) == 1 else shortage.value.replace("its ", "their ", 1)
    return f"{_clients(state, low)} below the share of stateful tasks: {why}"


def _clients(state: GroupState, low: Sequence[BelowShare]) -> str:
    """The clients counted, and the first three with what they run of their share."""
    names = ", ".join(
        f"{shown(state.clients[one.client])} runs {one.held} of {one.share}" for one in low[:_NAMED]
    )
    more = f" and {len(low) - _NAMED} more" if len(low) > _NAMED else ""
    return f"{_counted(len(low), 'client')} ({names}{more}) {'is' if len(low) == 1 else 'are'}"


def _counted(number: int, what: str) -> str:
    many = "copies" if what == "copy" else f"{what}s"
    return f"{number} {what if number == 1 else many}"
