"""Groups and assignments by name: process ids and `TaskId`s instead of columns of integers.

For strategies and tools that do not need arrays. Every function creates O(T + C + N) objects.
"""

import difflib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assignor.errors import TaskAssignmentError
from assignor.placement.state import NOBODY, ClientInput, GroupState, TaskAssignment
from assignor.placement.validation import (
    AssignmentError,
    InvalidAssignment,
    Violation,
    type_name,
    validate,
)
from encoding import TaskId, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTasks:
    """The tasks of one client.

    Attributes:
        active: tasks that it runs.
        standby: tasks of which it has a standby.
        warmup: tasks of which it builds a copy beyond num.standby.replicas (KIP-441); these are not
            in `standby`.
    """

    active: Collection[TaskId] = ()
    standby: Collection[TaskId] = ()
    warmup: Collection[TaskId] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlaces:
    """The clients of one task, by process id.

    Attributes:
        active: the client that runs it.
        standby: clients with a standby, sorted.
        warmup: clients that build a copy beyond num.standby.replicas, sorted.
    """

    active: str
    standby: tuple[str, ...] = ()
    warmup: tuple[str, ...] = ()


def by_client(state: GroupState, assignment: TaskAssignment) -> dict[str, ClientTasks]:
    """Process id -> tasks, for every client of the group; both sorted.

    Raises:
        InvalidAssignment: the assignment is not valid for this group.
    """
    _check(state, assignment)
    active: list[list[TaskId]] = [[] for _ in state.clients]
    standby: list[list[TaskId]] = [[] for _ in state.clients]
    warmup: list[list[TaskId]] = [[] for _ in state.clients]
    for name, client in zip(state.tasks, assignment.active.tolist(), strict=True):
        active[client].append(name)
    warming = set(assignment.warmups)
    for task, client in sorted(assignment.standbys):
        (warmup if (task, client) in warming else standby)[client].append(state.tasks[task])
    return {
        name: ClientTasks(
            active=tuple(active[client]),
            standby=tuple(standby[client]),
            warmup=tuple(warmup[client]),
        )
        for client, name in enumerate(state.clients)
    }


def by_task(state: GroupState, assignment: TaskAssignment) -> dict[TaskId, TaskPlaces]:
    """Task -> clients, for every task of the group; both sorted.

    Raises:
        InvalidAssignment: the assignment is not valid for this group.
    """
    _check(state, assignment)
    standby: dict[int, list[str]] = {}
    warmup: dict[int, list[str]] = {}
    warming = set(assignment.warmups)
    for task, client in sorted(assignment.standbys):
        kind = warmup if (task, client) in warming else standby
        kind.setdefault(task, []).append(state.clients[client])
    return {
        name: TaskPlaces(
            active=state.clients[client],
            standby=tuple(standby.get(task, ())),
            warmup=tuple(warmup.get(task, ())),
        )
        for task, (name, client) in enumerate(
            zip(state.tasks, assignment.active.tolist(), strict=True)
        )
    }


def assignment_from(
    state: GroupState,
    clients: Mapping[str, ClientTasks],
    *,
    followup: bool = False,
    look_again: bool = False,
    warnings: Iterable[str] = (),
) -> TaskAssignment:
    """The assignment that gives each client its tasks: the inverse of `by_client`.

    If the names come from another assignment, pass on its `followup`, `look_again` and `warnings`.

    Args:
        state: the group.
        clients: process id -> tasks; a client that is left out has none.
        followup: whether a probing rebalance is wanted while copies warm up (KIP-441).
        look_again: whether tasks wait for copies that made no progress, as in `TaskAssignment`.
        warnings: what could not be had, and why.

    Raises:
        InvalidAssignment: `clients` names a client or task that does not exist, leaves a task
            without an active client, has it active twice, or breaks another rule of `validate`.
    """
    active = np.full(len(state.tasks), NOBODY, dtype=np.int64)
    pairs: dict[str, list[tuple[int, int]]] = {"standby": [], "warmup": []}
    wrong: list[Violation] = []
    number_of: dict[Any, int] = {name: number for number, name in enumerate(state.tasks)}
    for process, held in sorted(clients.items()):
        client = _place(state.clients, process)
        if client is None or type(held) is not ClientTasks:
            wrong.append(
                _unknown_client(state, process) if client is None else _not_tasks(held, process)
            )
            continue
        for name in held.active:
            task = _number(number_of, name)
            if task is None:
                wrong.append(_unknown_task(name, process))
            elif active[task] != NOBODY:
                wrong.append(_active_twice(state, task, int(active[task]), client))
            else:
                active[task] = client
        for kind, found in pairs.items():
            for name in getattr(held, kind):
                if (task := _number(number_of, name)) is None:
                    wrong.append(_unknown_task(name, process))
                else:
                    found.append((task, client))
    assignment = TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs["standby"] + pairs["warmup"])),
        warmups=tuple(sorted(pairs["warmup"])),
        followup=followup,
        look_again=look_again,
        warnings=tuple(warnings),
    )
    # A wrong name also leaves its task without a client: report only the name.
    _raise_if(wrong)
    _check(state, assignment)
    return assignment


def client_inputs(state: GroupState) -> dict[str, ClientInput]:
    """Process id -> what the client reported, as `group_state` read it; sorted.

    Tasks that do not exist are left out, a task that two clients ran is with its owner only, and
    `lags_before` is empty: of it the state keeps which copies make no progress.
    """
    ran: list[list[TaskId]] = [[] for _ in state.clients]
    for name, owner in zip(state.tasks, state.owner.tolist(), strict=True):
        if owner != NOBODY:
            ran[owner].append(name)
    lags: list[dict[TaskId, int]] = [{} for _ in state.clients]
    columns = (state.copy_task().tolist(), state.copy_client.tolist(), state.copy_lag.tolist())
    for task, client, lag in zip(*columns, strict=True):
        lags[client][state.tasks[task]] = lag
    left_over: list[set[TaskId]] = [set() for _ in state.clients]
    for task, client in state.left_over:
        left_over[client].add(state.tasks[task])
    return {
        name: ClientInput(
            process_id=name,
            threads=int(state.threads[client]),
            active_tasks=frozenset(ran[client]),
            lags=lags[client],
            left_over=frozenset(left_over[client]),
            rack=state.racks[client],
            tags=state.tags[client],
        )
        for client, name in enumerate(state.clients)
    }


def nearest_caught_up_client(
    state: GroupState, task: TaskId, *, among: Iterable[str] | None = None
) -> str | None:
    """The client with threads that is caught up on the task, at the smallest lag.

    A client is caught up if its lag is at most `acceptable.recovery.lag`. The client that runs the
    task comes first; among equal lags, the first process id. The lag of a client without state is
    the task's end offset sum.

    Args:
        state: the group.
        task: the task; no client is caught up on a stateless one.
        among: process ids to choose from; all by default.

    Returns:
        A process id; None if no client is caught up.

    Raises:
        TaskAssignmentError: the task, or a client of `among`, does not exist.
    """
    number = _place(state.tasks, task)
    if number is None:
        raise TaskAssignmentError(str(_unknown_task(task, None)))
    candidates: Iterable[int] = range(len(state.clients))
    if among is not None:
        candidates = [_client_number(state, name) for name in among]
    if not state.stateful[number]:
        return None
    lags, end = dict(state.copies(number)), int(state.end_offset_sums[number])
    capacity, limit = state.capacity(), state.config.acceptable_recovery_lag
    ranked = [(lags.get(c, end), c) for c in candidates if capacity[c] > 0]
    best = min(ranked, default=None)
    return None if best is None or best[0] > limit else state.clients[best[1]]


def _place(names: Sequence[Any], name: object) -> int | None:
    """The index of a name in a sorted sequence; None if it is not in it."""
    try:
        place = bisect_left(names, name)
    except TypeError:  # of another type than the names, or a task with and one without a topology
        return None
    return place if place < len(names) and names[place] == name else None


def _number(number_of: Mapping[Any, int], name: object) -> int | None:
    return number_of.get(name) if type(name) is TaskId else None


def _client_number(state: GroupState, name: str) -> int:
    client = _place(state.clients, name)
    if client is None:
        raise TaskAssignmentError(str(_unknown_client(state, name)))
    return client


def _unknown_client(state: GroupState, name: object) -> Violation:
    near = difflib.get_close_matches(str(name), state.clients, n=1)
    hint = f"; did you mean {shown(near[0])}?" if near else ""
    message = f"client {shown(name)} does not exist (this group has {len(state.clients)}){hint}"
    given = name if isinstance(name, str) else None
    return Violation(code=AssignmentError.UNKNOWN_PROCESS_ID, message=message, client=given)


def _unknown_task(name: object, client: str | None) -> Violation:
    given = "" if client is None else f", which client {shown(client)} is given,"
    if type(name) is TaskId:
        message = f"task {shown(name)}{given} does not exist"
        code = AssignmentError.UNKNOWN_TASK_ID
        return Violation(code=code, message=message, client=client, task=name)
    message = f"task {shown(repr(name))}{given} is {type_name(name)}; give TaskId"
    return Violation(code=AssignmentError.WRONG_TYPE, message=message, client=client)


def _not_tasks(held: object, process: str) -> Violation:
    message = f"the tasks of a client are {type_name(held)}; give ClientTasks"
    return Violation(code=AssignmentError.WRONG_TYPE, message=message, client=process)


def _active_twice(state: GroupState, task: int, first: int, second: int) -> Violation:
    name = state.tasks[task]
    where = f"on {shown(state.clients[first])} and on {shown(state.clients[second])}"
    if first == second:
        where = f"twice on {shown(state.clients[first])}"
    return Violation(
        code=AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES,
        message=f"task {name} is active {where}",
        task=name,
        client=state.clients[second],
    )


def _check(state: GroupState, assignment: TaskAssignment) -> None:
    _raise_if(validate(state, assignment))


def _raise_if(violations: Sequence[Violation]) -> None:
    if violations:
        raise InvalidAssignment("the assignment", violations)
