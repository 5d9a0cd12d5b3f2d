"""`high_availability`, the default: as few moves as balance allows, and nobody started behind.

The promise is KIP-441's: a task runs on a client that has its state, and moves once the new place
has caught up. The way there is another than Kafka's, which deals all tasks anew and walks towards
that: here what runs well stays.
"""

from dataclasses import replace

import numpy as np

from assignor.placement.actives import homes
from assignor.placement.arrays import is_among
from assignor.placement.bands import keep_owners
from assignor.placement.final_places import targets, with_fresh_stateless, with_rack_costs
from assignor.placement.movements import actives_now, settle
from assignor.placement.standbys import target_standbys
from assignor.placement.state import LAG_UNKNOWN, NOBODY, GroupState, IntArray, TaskAssignment


def high_availability(state: GroupState) -> TaskAssignment:
    """Place every task; asks for a follow-up rebalance while copies come nearer to being used."""
    state = with_rack_costs(state, traffic=10, non_overlap=1)
    home = homes(state)
    target, standbys = targets(state, evens_out=True, home=home)
    stateful_target = np.where(state.stateful, target, NOBODY)
    now = actives_now(state, stateful_target, home)
    target = with_fresh_stateless(state, target, now)
    answer = settle(state, target=target, now=now, standbys=standbys)
    waiting = _waits_for_lags(state, stateful_target, now)
    return replace(answer, warnings=(*answer.warnings, *waiting)) if waiting else answer


def _waits_for_lags(state: GroupState, target: IntArray, now: IntArray) -> tuple[str, ...]:
    """A sentence on stateful tasks whose move waits for a lag that nobody can tell."""
    unknown = state.stateful & (now != target) & (state.end_offset_sums == LAG_UNKNOWN)
    task = np.flatnonzero(unknown)
    if not len(task):
        return ()
    width = len(state.clients)
    told = state.copy_lag != LAG_UNKNOWN
    copies = (state.copy_task() * width + state.copy_client)[told]
    task = task[~is_among(task * width + target[task], copies)]
    if not len(task):
        return ()
    many = "task stays where it ran" if len(task) == 1 else "tasks stay where they ran"
    said = (
        f"{len(task)} stateful {many}, {state.tasks[task[0]]} for one: "
        "end offset sums are not known, so no other client counts as caught up; "
        "let the leader read the cluster (`attach`, `internal_topics`), "
        "give end_offset_sums in a problem file, or use the strategy sticky"
    )
    return (said,)


def sticky(state: GroupState) -> TaskAssignment:
    """Place every task sticky and balanced by task and by thread; standbys on the least loaded.

    O((T + C + N) log C) time, O(T + C + N) memory.
    """
    active, standbys = targets(with_rack_costs(state, traffic=1, non_overlap=10))
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(active=active, standbys=tuple(pairs), warnings=standbys.warnings)


def fallback_prior(state: GroupState) -> TaskAssignment:
    """Every owner keeps its tasks; the rest goes to copies, then to the least loaded.

    O((T + C + N) log C) time. Always asks for a follow-up rebalance.
    """
    capacity = state.capacity()
    owner = np.where(capacity[state.owner] > 0, state.owner, NOBODY)
    for task in np.flatnonzero(state.stateful & (owner == NOBODY)).tolist():
        copies = [(lag, c) for c, lag in state.copies(task) if capacity[c] > 0]
        if copies:
            # Among equal lags the first client: all that is known here is who has state.
            owner[task] = min(copies)[1]
    active = keep_owners(state, owner)
    standbys = target_standbys(state, active)
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(
        active=active, standbys=tuple(pairs), followup=True, warnings=standbys.warnings
    )
