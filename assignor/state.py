"""What a strategy sees, and what it answers: columns of integers.

Tasks are interned to 0..T-1 in (subtopology, partition) order and clients to 0..C-1 in the order
of their process ids, so equal input gives equal columns whatever the order of insertion. Reported
copies of state are *sparse*: a pair (task, client) that is missing means "no state there", and
nothing here is of size T x C.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from assignor.config import AssignmentConfig
from assignor.errors import TaskAssignmentError
from encoding import TaskId, task_order

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NOBODY = -1
# Lags are ordered as numbers: running here, caught up ... behind, and unknown worse than all
# (Kafka Streams' sentinels sort the other way round, which starts actives on unknown state).
LAG_RUNNING = -1
LAG_UNKNOWN = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInput:
    """One process before a rebalance.

    Attributes:
        process_id: identity that outlives restarts; the order of clients.
        threads: capacity, >= 0 (a client without threads gets nothing while another has some).
        active_tasks: tasks that ran here.
        lags: task -> LAG_RUNNING, records behind (>= 0) or LAG_UNKNOWN, for every copy held here.
        rack: client.rack, or None.
        tags: client tags (KIP-708).
    """

    process_id: str
    threads: int = 1
    active_tasks: frozenset[TaskId] = frozenset()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    rack: str | None = None
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupState:
    """A group before a rebalance.

    Attributes:
        tasks: T task ids, sorted.
        stateful: bool [T].
        subtopology: int [T], of each task.
        clients: C process ids, sorted.
        threads: int [C].
        owner: int [T], the client whose thread ran the task, or NOBODY.
        copy_start: int [T + 1]; the copies of task t are the slice copy_start[t]:copy_start[t + 1]
            of the next two.
        copy_client, copy_lag: int [N]; ascending clients within a task.
        racks, tags: one entry a client.
        config: the settings.
        warnings: what was odd in the input and how it was read.
    """

    tasks: tuple[TaskId, ...]
    stateful: BoolArray
    subtopology: IntArray
    clients: tuple[str, ...]
    threads: IntArray
    owner: IntArray
    copy_start: IntArray
    copy_client: IntArray
    copy_lag: IntArray
    racks: tuple[str | None, ...]
    tags: tuple[tuple[tuple[str, str], ...], ...]
    config: AssignmentConfig
    warnings: tuple[str, ...] = ()

    def copies(self, task: int) -> list[tuple[int, int]]:
        """(client, lag) of every reported copy of the task with this index, by client."""
        part = slice(self.copy_start[task], self.copy_start[task + 1])
        return list(zip(self.copy_client[part].tolist(), self.copy_lag[part].tolist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskAssignment:
    """Where every task goes.

    Attributes:
        active: int [T], the client of each active task.
        standbys: (task, client) pairs of standby and warm-up copies, sorted.
        followup: whether a probing rebalance is wanted while copies warm up (KIP-441).
    """

    active: IntArray
    standbys: tuple[tuple[int, int], ...] = ()
    followup: bool = False


Strategy = Callable[[GroupState], TaskAssignment]


def group_state(
    *,
    tasks: Iterable[TaskId],
    stateful_tasks: Iterable[TaskId],
    clients: Iterable[ClientInput],
    config: AssignmentConfig | None = None,
) -> GroupState:
    """Intern tasks and clients, and turn what the clients report into columns.

    Tasks that no longer exist are ignored with a warning. A task that two clients ran goes, as
    owner, to the first of them in client order, with a warning (KAFKA-13296 only logs).

    Raises:
        TaskAssignmentError: no clients, a process id twice, negative threads or a negative lag.
    """
    ordered_tasks = tuple(sorted(set(tasks)))
    index_by_task = {task: index for index, task in enumerate(ordered_tasks)}
    ordered = sorted(clients, key=lambda client: client.process_id)
    _check_clients(ordered)
    warnings: list[str] = []
    owner = np.full(len(ordered_tasks), NOBODY, dtype=np.int64)
    rows: list[tuple[int, int, int]] = []
    for number, client in enumerate(ordered):
        gone = sorted(
            (client.active_tasks | client.lags.keys()) - index_by_task.keys(), key=task_order
        )
        if gone:
            names = ", ".join(map(str, gone[:5]))
            more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""  # noqa: PLR2004
            warnings.append(f"{client.process_id} reports tasks that do not exist: {names}{more}")
        for task in sorted(client.active_tasks & index_by_task.keys()):
            index = index_by_task[task]
            if owner[index] != NOBODY:
                first = ordered[int(owner[index])].process_id
                warnings.append(
                    f"task {task} runs on {first} and {client.process_id}; {first} counts"
                )
                continue
            owner[index] = number
        rows.extend(
            (index_by_task[task], number, lag)
            for task, lag in client.lags.items()
            if task in index_by_task
        )
    rows.sort()
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    stateful = frozenset(stateful_tasks)
    return GroupState(
        tasks=ordered_tasks,
        stateful=np.array([task in stateful for task in ordered_tasks], dtype=np.bool_),
        subtopology=np.array([task.subtopology for task in ordered_tasks], dtype=np.int64),
        clients=tuple(client.process_id for client in ordered),
        threads=np.array([client.threads for client in ordered], dtype=np.int64),
        owner=owner,
        copy_start=np.searchsorted(table[:, 0], np.arange(len(ordered_tasks) + 1)).astype(np.int64),
        copy_client=table[:, 1].copy(),
        copy_lag=table[:, 2].copy(),
        racks=tuple(client.rack for client in ordered),
        tags=tuple(client.tags for client in ordered),
        config=config or AssignmentConfig(),
        warnings=tuple(warnings),
    )


def _check_clients(ordered: list[ClientInput]) -> None:
    if not ordered:
        raise TaskAssignmentError("no clients: a group without members has no assignment")
    for left, right in pairwise(ordered):
        if left.process_id == right.process_id:
            raise TaskAssignmentError(f"process id {left.process_id} is given twice; merge the two")
    for client in ordered:
        if client.threads < 0:
            raise TaskAssignmentError(f"client {client.process_id} has {client.threads} threads")
        for task, lag in client.lags.items():
            if lag < LAG_RUNNING:
                raise TaskAssignmentError(
                    f"client {client.process_id} reports lag {lag} for task {task}; "
                    "lags are 0 or more"
                )


def validate(state: GroupState, assignment: TaskAssignment) -> tuple[str, ...]:
    """Every rule that the assignment breaks, as sentences; empty when it is valid.

    Checks that each task has exactly one active client that exists (KIP-924's own validation
    misses a forgotten task), and that standbys are of known stateful tasks, on known clients, at
    most one copy of a task a client.
    """
    total, clients = len(state.tasks), len(state.clients)
    if assignment.active.shape != (total,):
        return (f"active has shape {assignment.active.shape}, but there are {total} tasks",)
    nowhere = np.flatnonzero((assignment.active < 0) | (assignment.active >= clients))
    problems = [f"task {state.tasks[index]} has no active client" for index in nowhere.tolist()]
    seen = set()
    for task, client in assignment.standbys:
        if not (0 <= task < total and 0 <= client < clients):
            problems.append(
                f"standby ({task}, {client}) names a task or client that does not exist"
            )
        elif not state.stateful[task]:
            problems.append(f"standby of {state.tasks[task]}, which has no state")
        elif assignment.active[task] == client or (task, client) in seen:
            problems.append(f"{state.clients[client]} holds two copies of {state.tasks[task]}")
        seen.add((task, client))
    return tuple(problems)
