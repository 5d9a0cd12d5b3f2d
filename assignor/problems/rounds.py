"""Simulate rebalances of a group until it has settled, and count what each of them moves.

After a round every client owns its assigned tasks, copies have caught up, and state that is not
assigned is deleted; then the next rebalance comes. Copies of stuck clients never catch up.
Deterministic: no clock, no randomness.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    BoolArray,
    ClientInput,
    GroupState,
    Strategy,
    TaskAssignment,
    group_state,
    is_among,
    is_stuck,
    run_strategy,
)

ROUNDS_MAX = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Counts of what one round moves.

    Attributes:
        handoffs: stateful active tasks that move from a live owner.
        stateless_moves: stateless active tasks that move from a live owner.
        takeovers: stateful active tasks without a live owner.
        restores: stateful copies placed on clients without state of the task.
        cold: active tasks started on a client that lags while another is caught up.
        warmups: copies beyond `num.standby.replicas`.
    """

    handoffs: int
    stateless_moves: int
    takeovers: int
    restores: int
    cold: int
    warmups: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """One rebalance.

    Attributes:
        state: the group before the rebalance.
        assignment: the result of the strategy.
        moves: the difference between both.
        peak_load: stateful active tasks per thread of the busiest client over the average, which
            counts as at least 1.
    """

    state: GroupState
    assignment: TaskAssignment
    moves: Moves
    peak_load: float


def moves_of(state: GroupState, assignment: TaskAssignment) -> Moves:
    """Count what an assignment moves; O(T + N)."""
    active, stateful = assignment.active, state.stateful
    moved = (state.owner != NOBODY) & (active != state.owner)
    width = len(state.clients)
    task, hot = state.copy_task(), state.is_caught_up()
    keys = task * width + state.copy_client
    anywhere = state.starts_anywhere()
    chosen = np.flatnonzero(stateful)
    active_keys = chosen * width + active[chosen]
    pairs = assignment.standby_table()
    placed = np.concatenate([active_keys, pairs[:, 0] * width + pairs[:, 1]])
    is_hot: BoolArray = is_among(active_keys, keys[hot])
    is_hot |= anywhere[chosen] & ~is_among(active_keys, keys)
    # A client without a copy is caught up with a small task, a copy that is behind is not.
    could_be_hot = anywhere & (np.diff(state.copy_start) < width)
    could_be_hot[task[hot]] = True
    extra = np.bincount(pairs[:, 0], minlength=len(active)) - state.config.num_standby_replicas
    return Moves(
        handoffs=int((moved & stateful).sum()),
        stateless_moves=int((moved & ~stateful).sum()),
        takeovers=int((stateful & (state.owner == NOBODY)).sum()),
        restores=int((~is_among(placed, keys)).sum()),
        cold=int((~is_hot & could_be_hot[chosen]).sum()),
        warmups=int(np.maximum(extra, 0).sum()),
    )


def peak_load(state: GroupState, assignment: TaskAssignment) -> float:
    """Stateful active tasks per thread of the busiest client over the average (at least 1)."""
    capacity = state.capacity()
    count = np.bincount(assignment.active[state.stateful], minlength=len(capacity))
    average = max(1.0, int(state.stateful.sum()) / int(capacity.sum()))
    usable = capacity > 0
    return float((count[usable] / capacity[usable]).max() / average)


def clients_after(
    state: GroupState, assignment: TaskAssignment, *, stuck: Mapping[str, int] | None = None
) -> list[ClientInput]:
    """The clients as they report at the next rebalance.

    Args:
        state: the group before.
        assignment: what was handed out.
        stuck: client -> lag that its standbys go on reporting, LAG_UNKNOWN included.
    """
    actives: list[set[int]] = [set() for _ in state.clients]
    for task, client in enumerate(assignment.active.tolist()):
        actives[client].add(task)
    copies: list[list[int]] = [[] for _ in state.clients]
    for task, client in assignment.standbys:
        copies[client].append(task)
    before: list[dict[int, int]] = [{} for _ in state.clients]
    task_of = state.copy_task().tolist()
    rows = zip(task_of, state.copy_client.tolist(), state.copy_lag.tolist(), strict=True)
    for task, client, lag in rows:
        before[client][task] = lag
    ends, tasks = state.end_offset_sums.tolist(), state.tasks
    result = []
    for number, process_id in enumerate(state.clients):
        lags = {tasks[t]: LAG_RUNNING for t in actives[number] if state.stateful[t]}
        lag = (stuck or {}).get(process_id, 0)
        lags |= {tasks[t]: lag if lag == LAG_UNKNOWN else min(lag, ends[t]) for t in copies[number]}
        client = ClientInput(
            process_id=process_id,
            threads=int(state.threads[number]),
            active_tasks=frozenset(tasks[t] for t in actives[number]),
            lags=lags,
            lags_before={tasks[t]: lag for t, lag in before[number].items()},
            rack=state.racks[number],
            tags=state.tags[number],
        )
        was_stuck = state.stuck is not None and bool(state.stuck[number])
        limit = state.config.acceptable_recovery_lag
        result.append(replace(client, stuck=is_stuck(client, limit, was_stuck=was_stuck)))
    return result


def regroup(state: GroupState, clients: list[ClientInput]) -> GroupState:
    """The group with the same tasks and settings, and other clients."""
    tasks = state.tasks
    ends = dict(zip(tasks, state.end_offset_sums.tolist(), strict=True))
    weights = state.weights
    made = group_state(
        tasks=tasks,
        stateful_tasks=[
            task for task, has_state in zip(tasks, state.stateful, strict=True) if has_state
        ],
        clients=clients,
        config=state.config,
        end_offset_sums=ends,
        weights=None if weights is None else dict(zip(tasks, weights.tolist(), strict=True)),
    )
    return replace(
        made, partition_racks=state.partition_racks, changelog_racks=state.changelog_racks
    )


def play(
    state: GroupState,
    strategy: Strategy,
    *,
    stuck: Mapping[str, int] | None = None,
    rounds_max: int = ROUNDS_MAX,
) -> Iterator[Round]:
    """Rounds until no follow-up rebalance is requested, at most `rounds_max`.

    Raises:
        TaskAssignmentError: the strategy failed or broke a rule, as for `run_strategy`.
    """
    for _ in range(rounds_max):
        assignment = run_strategy(state, strategy)
        yield Round(
            state=state,
            assignment=assignment,
            moves=moves_of(state, assignment),
            peak_load=peak_load(state, assignment),
        )
        if not assignment.followup:
            return
        state = regroup(state, clients_after(state, assignment, stuck=stuck))


def totals(rounds: list[Round]) -> dict[str, int | float]:
    """Sums over rounds, the worst peak load, and the number of rounds."""
    counts: Counter[str] = Counter()
    for played in rounds:
        for name in ("handoffs", "stateless_moves", "takeovers", "restores", "cold"):
            counts[name] += getattr(played.moves, name)
    return {
        "rounds": len(rounds),
        **{name: counts[name] for name in sorted(counts)},
        "warmups_max": max((played.moves.warmups for played in rounds), default=0),
        "peak_load": round(max((played.peak_load for played in rounds), default=0.0), 3),
    }
