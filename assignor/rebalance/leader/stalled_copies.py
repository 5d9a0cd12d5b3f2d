"""Follow-up rebalances for copies whose lag did not shrink: a few, at doubling intervals.

A slow copy is not stuck, and a client whose restore begins late would otherwise wait for its tasks
until something else causes a rebalance. A stuck copy must not keep the group rebalancing for ever:
the follow-ups end, until tasks wait for another client or all lags are smaller than ever before
(`least_lags`; a lag that goes up and down ends them too). The time is handed in: no clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.placement import (
    ClientInput,
    GroupState,
    TaskAssignment,
    least_lags,
    share_warnings,
    stalled_clients,
)
from encoding import TaskId

# With the probing interval of ten minutes the last look is ten and a half hours after the first.
LOOKS_MOST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledCopies:
    """What a leader remembers of copies whose lag did not shrink; input of the next rebalance.

    Attributes:
        looks: follow-up rebalances asked for so far, 0 to `LOOKS_MOST`.
        look_at_ms: epoch milliseconds of the next one; 0: none is asked for.
        clients: process ids that tasks wait or waited for; a new one restarts the count.
        copies: (process id, task) of the copies that the operator was warned of.
        stuck: process ids whose copies made no progress when last seen. They are forgotten at each
            follow-up, so that every client is tried again then.
    """

    looks: int = 0
    look_at_ms: int = 0
    clients: frozenset[str] = frozenset()
    copies: frozenset[tuple[str, TaskId]] = frozenset()
    stuck: frozenset[str] = frozenset()

    def stuck_at(self, now_ms: int) -> frozenset[str]:
        """The clients that count as stuck at this time; none when a follow-up is due."""
        is_due = 0 < self.look_at_ms <= now_ms
        return frozenset() if is_due else self.stuck


NONE_STALLED = StalledCopies()


def stalled_now(
    state: GroupState,
    assignment: TaskAssignment,
    *,
    before: StalledCopies,
    now_ms: int,
    interval_ms: int,
) -> StalledCopies:
    """What to remember after an answer, with the time of the next follow-up.

    Args:
        state: the group before the answer.
        assignment: the answer.
        before: the memory of the previous rebalance.
        now_ms: epoch milliseconds.
        interval_ms: the probing interval: the first wait.
    """
    is_stuck = [False] * len(state.clients) if state.stuck is None else state.stuck.tolist()
    stuck = frozenset(name for name, is_so in zip(state.clients, is_stuck, strict=True) if is_so)
    if assignment.followup:
        # Other clients are tried first: the count does not restart for each of them.
        kept = replace(before, look_at_ms=0, copies=frozenset(), stuck=stuck)
        return kept if stuck else NONE_STALLED
    if not assignment.look_again:
        return NONE_STALLED
    low = stalled_clients(state, assignment)
    copies = frozenset(
        (state.clients[client.client], state.tasks[t]) for client in low for t in client.stalled
    )
    clients = frozenset(state.clients[client.client] for client in low)
    if not clients <= before.clients:
        before = NONE_STALLED
    clients |= before.clients
    # A wait longer than any back-off means that the clock was set back.
    if 0 < before.look_at_ms - now_ms <= interval_ms << LOOKS_MOST:
        looks, look_at_ms = before.looks, before.look_at_ms
    elif before.looks >= LOOKS_MOST:
        looks, look_at_ms = before.looks, 0
    else:
        looks, look_at_ms = before.looks + 1, now_ms + (interval_ms << before.looks)
    return StalledCopies(
        looks=looks, look_at_ms=look_at_ms, clients=clients, copies=copies, stuck=stuck
    )


def remembered_lags(
    clients: Sequence[ClientInput],
    state: GroupState,
    assignment: TaskAssignment,
    before: Mapping[str, Mapping[TaskId, int]] | None,
) -> dict[str, Mapping[TaskId, int]]:
    """Process id -> `least_lags`, of the tasks that each process runs or restores from now on.

    The lag of other state on its disk cannot shrink.

    Args:
        clients: with their present lags.
        state: the group before the answer.
        assignment: the answer.
        before: what is remembered, where it is too early to compare it; else None.
    """
    given: dict[str, set[TaskId]] = {name: set() for name in state.clients}
    for task, number in zip(state.tasks, assignment.active.tolist(), strict=True):
        given[state.clients[number]].add(task)
    for index, number in assignment.standbys:
        given[state.clients[number]].add(state.tasks[index])
    if before is not None:
        return {
            name: {task: lag for task, lag in lags.items() if task in given[name]}
            for name, lags in before.items()
            if name in given
        }
    limit = state.config.acceptable_recovery_lag
    return {
        client.process_id: least_lags(client, limit, given=given[client.process_id])
        for client in clients
    }


def news_of(
    state: GroupState, assignment: TaskAssignment, *, before: StalledCopies, now: StalledCopies
) -> tuple[str, ...]:
    """The warnings of an answer, without repeated ones about stalled copies."""
    if not now.copies or now.copies != before.copies:
        return assignment.warnings
    known = frozenset(share_warnings(state, assignment))
    return tuple(warning for warning in assignment.warnings if warning not in known)
