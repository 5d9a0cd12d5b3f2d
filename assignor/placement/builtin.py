"""Built-in strategies: `high_availability` (the default), `sticky`, `fallback_prior`.

`high_availability` implements KIP-441: a task runs on a client that has its state, and moves once
its new client has caught up. Kafka assigns all tasks anew and moves towards that assignment; here a
task stays where it runs unless balance requires a move.
"""

from dataclasses import replace

import numpy as np

from assignor.placement.actives import homes
from assignor.placement.arrays import is_among
from assignor.placement.bands import keep_owners
from assignor.placement.final_places import targets, with_fresh_stateless, with_rack_costs
from assignor.placement.movements import actives_now, settle
from assignor.placement.standbys import Standbys, target_standbys
from assignor.placement.state import LAG_UNKNOWN, NOBODY, GroupState, IntArray, TaskAssignment
from assignor.placement.trace import Record, Trace


def high_availability(state: GroupState, *, record: Record | None = None) -> TaskAssignment:
    """Place every task; requests a follow-up rebalance while warm-ups or their lags make progress.

    Args:
        state: the group.
        record: called with the trace of the assignment, if given.
    """
    state = with_rack_costs(state, traffic=10, non_overlap=1)
    home = homes(state)
    target, standbys, balanced = targets(state, evens_out=True, home=home)
    stateful_target = np.where(state.stateful, target, NOBODY)
    now = actives_now(state, stateful_target, home)
    target = with_fresh_stateless(state, target, now)
    if record is not None:
        record(_trace(state, home, balanced, target, standbys))
    answer = settle(state, target=target, now=now, standbys=standbys)
    waiting = _waits_for_lags(state, stateful_target, now)
    return replace(answer, warnings=(*answer.warnings, *waiting)) if waiting else answer


def _waits_for_lags(state: GroupState, target: IntArray, now: IntArray) -> tuple[str, ...]:
    """A warning about stateful tasks that wait because end offset sums are unknown; else empty."""
    unknown = state.stateful & (now != target) & (state.end_offset_sums == LAG_UNKNOWN)
    task = np.flatnonzero(unknown)
    if not len(task):
        return ()
    width = len(state.clients)
    is_known = state.copy_lag != LAG_UNKNOWN
    copies = (state.copy_task() * width + state.copy_client)[is_known]
    task = task[~is_among(task * width + target[task], copies)]
    if not len(task):
        return ()
    many = "task stays where it ran" if len(task) == 1 else "tasks stay where they ran"
    warning = (
        f"{len(task)} stateful {many}, {state.tasks[task[0]]} for one: "
        "end offset sums are not known, so no other client counts as caught up; "
        "let the leader read the cluster (`attach`, `internal_topics`), "
        "give end_offset_sums in a problem file, or use the strategy sticky"
    )
    return (warning,)


def sticky(state: GroupState, *, record: Record | None = None) -> TaskAssignment:
    """Place every task sticky, balanced over threads; standbys on the least loaded clients.

    O((T + C + N) log C) time, O(T + C + N) memory.

    Args:
        state: the group.
        record: called with the trace of the assignment, if given.
    """
    state = with_rack_costs(state, traffic=1, non_overlap=10)
    home = homes(state)
    active, standbys, balanced = targets(state, home=home)
    if record is not None:
        record(_trace(state, home, balanced, active, standbys))
    return TaskAssignment(active=active, standbys=standbys.pairs(), warnings=standbys.warnings)


def _trace(
    state: GroupState, home: IntArray, balanced: IntArray, target: IntArray, standbys: Standbys
) -> Trace:
    return Trace(
        home=np.where(state.stateful, home, NOBODY),
        balanced=balanced,
        target=target,
        standbys=frozenset(standbys.pairs()),
    )


def fallback_prior(state: GroupState) -> TaskAssignment:
    """Place every task on its owner, else on a copy, else on the least loaded client.

    O((T + C + N) log C) time. Always requests a follow-up rebalance.
    """
    capacity = state.capacity()
    owner = np.where(capacity[state.owner] > 0, state.owner, NOBODY)
    for task in np.flatnonzero(state.stateful & (owner == NOBODY)).tolist():
        copies = [(lag, c) for c, lag in state.copies(task) if capacity[c] > 0]
        if copies:
            # The smallest lag; among equal lags the first client.
            owner[task] = min(copies)[1]
    active = keep_owners(state, owner)
    standbys = target_standbys(state, active)
    return TaskAssignment(
        active=active, standbys=standbys.pairs(), followup=True, warnings=standbys.warnings
    )
