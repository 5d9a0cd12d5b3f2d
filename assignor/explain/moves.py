"""The moves of an answer, each with its reason: actives, standbys, warm-ups, copies given up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from assignor.explain.actives import Reason, active_reason
from assignor.explain.copies import copy_reason, dropped, dropped_reason
from assignor.explain.facts import Facts
from assignor.placement import NOBODY, GroupState
from assignor.problems import Moves, moves_of, records_to_restore

T = TypeVar("T")
KINDS = ("active", "waiting", "warm-up", "standby", "dropped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One change.

    Attributes:
        kind: active (runs elsewhere, or anew), waiting (stays, but belongs elsewhere), warm-up or
            standby (a copy where there was none, or that warms up), dropped (state given up).
        task: index of the task.
        source: index of the client that had it, or NOBODY.
        client: index of the client that gets it; for waiting the one where it belongs; for dropped
            NOBODY.
        reason: why.
        records: records that the new place has to restore.
    """

    kind: str
    task: int
    source: int
    client: int
    reason: Reason
    records: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All changes of an answer.

    Attributes:
        moves: by kind, then task, then client.
        counts: hand-offs, restores and so on, as in simulations.
        restored_records: records that all placed copies lack, caught-up ones included.
        unknown_restores: placed copies that lack an unknown number of records; they are not in
            `restored_records`.
        stay: active tasks that stay on their owner.
    """

    moves: tuple[Move, ...]
    counts: Moves
    restored_records: int
    unknown_restores: int
    stay: int

    def groups(self) -> list[tuple[str, str, list[Move]]]:
        """(kind, rule, moves), kinds in the order of `KINDS`, the largest groups first."""
        found: dict[tuple[str, str], list[Move]] = {}
        for move in self.moves:
            found.setdefault((move.kind, move.reason.rule), []).append(move)
        ranked = sorted(found.items(), key=lambda g: (KINDS.index(g[0][0]), -len(g[1]), g[0]))
        return [(kind, rule, moves) for (kind, rule), moves in ranked]


def diff_of(facts: Facts) -> Diff:
    """Return the moves of the answer, with O(moves) reasons."""
    state, active = facts.state, facts.assignment.active
    moves = [_active_move(facts, task) for task in np.flatnonzero(active != state.owner).tolist()]
    if facts.trace is not None:
        waits = (active == state.owner) & (facts.trace.target != active)
        moves += [
            Move(
                kind="waiting",
                task=task,
                source=facts.active[task],
                client=facts.target(task),
                reason=active_reason(facts, task),
            )
            for task in np.flatnonzero(waits).tolist()
        ]
    for task, client in sorted(facts.assignment.standbys):
        is_warmup = (task, client) in facts.warmups
        had = facts.lag(task, client) is not None
        if had and not is_warmup and facts.owner(task) != client:
            continue
        if had and facts.owner(task) == client and facts.active[task] == client:
            continue
        moves.append(_copy_move(facts, task, client, is_warmup=is_warmup))
    for task in np.flatnonzero(state.stateful).tolist():
        moves += [
            Move(
                kind="dropped",
                task=task,
                source=client,
                client=NOBODY,
                reason=dropped_reason(facts, task, client),
            )
            for client in dropped(facts, task)
        ]
    records, unknown = records_to_restore(state, facts.assignment)
    return Diff(
        moves=tuple(sorted(moves, key=lambda m: (KINDS.index(m.kind), m.task, m.client, m.source))),
        counts=moves_of(state, facts.assignment),
        restored_records=records,
        unknown_restores=unknown,
        stay=int((active == state.owner).sum()),
    )


def restored_records(facts: Facts) -> int:
    """Records that the placed copies of stateful tasks lack, actives included, where known."""
    return records_to_restore(facts.state, facts.assignment)[0]


def _active_move(facts: Facts, task: int) -> Move:
    client, stateful = facts.active[task], bool(facts.state.stateful[task])
    return Move(
        kind="active",
        task=task,
        source=facts.owner(task),
        client=client,
        reason=active_reason(facts, task),
        records=facts.to_restore(task, client) if stateful else 0,
    )


def _copy_move(facts: Facts, task: int, client: int, *, is_warmup: bool) -> Move:
    return Move(
        kind="warm-up" if is_warmup else "standby",
        task=task,
        source=facts.active[task],
        client=client,
        reason=copy_reason(facts, task, client),
        records=facts.to_restore(task, client),
    )


def joined(before: GroupState, after: GroupState) -> GroupState:
    """The group of `after`, with the owners and the state that its clients had in `before`.

    For two snapshots of one group: clients that joined have nothing, and the state of clients that
    left is gone. Tasks that `before` does not have are without owner and state.
    """
    client_of = _numbers(before.clients, {name: n for n, name in enumerate(after.clients)})
    task_of = _numbers(before.tasks, {task: n for n, task in enumerate(after.tasks)})
    owner = np.full(len(after.tasks), NOBODY, dtype=np.int64)
    rows = []
    old_task = before.copy_task().tolist()
    for old, task in enumerate(task_of):
        ran = int(before.owner[old])
        if NOBODY not in {task, ran}:
            owner[task] = client_of[ran]
    columns = (old_task, before.copy_client.tolist(), before.copy_lag.tolist())
    for task, client, lag in zip(*columns, strict=True):
        if task_of[task] != NOBODY and client_of[client] != NOBODY:
            rows.append((task_of[task], client_of[client], lag, 0))
    return after.with_copies(np.array(rows, dtype=np.int64).reshape(-1, 4), owner=owner)


def _numbers(names: Iterable[T], number: Mapping[T, int]) -> list[int]:
    return [number.get(name, NOBODY) for name in names]
