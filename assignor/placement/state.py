"""Input and output of a strategy, as columns of integers: `GroupState` and `TaskAssignment`.

Tasks are numbered 0..T-1 in (subtopology, partition) order and clients 0..C-1 in the order of their
process ids, so equal input gives equal columns whatever its order. Reported copies of state are
*sparse*: if a pair (task, client) is missing, the client has no state of the task. No column has
size T x C.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from assignor.config import AssignmentConfig
from assignor.errors import TaskAssignmentError
from encoding import TaskId, task_order

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Pairs = tuple[tuple[int, int], ...]
# For each task the racks that hold a replica of each of its partitions; None where unknown.
RacksByTask = tuple[tuple[frozenset[str] | None, ...], ...]
RacksGiven = Mapping[TaskId, Sequence[frozenset[str] | None]]

NOBODY = -1
# Lags sort as numbers: running, caught up ... behind, unknown last. (In Kafka Streams running and
# unknown are -2 and -3, so unknown sorts first and actives are started on unknown state.)
LAG_RUNNING = -1
LAG_UNKNOWN = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInput:
    """One process before a rebalance.

    Attributes:
        process_id: identity that stays the same over restarts; clients are sorted by it.
        threads: capacity, >= 0 (a client without threads gets nothing while another has some).
        active_tasks: tasks that ran here.
        lags: task -> LAG_RUNNING, records behind (>= 0) or LAG_UNKNOWN, for every copy held here.
        lags_before: the least lags up to the rebalance before (`least_lags`), where remembered; a
            copy that is behind and has not come nearer does not keep probing rebalances going.
        stuck: copies here made no progress (`client_shares.is_stuck`), no task waits for new ones.
        left_over: tasks of `lags` that were neither active nor standby here; only their state is.
        rack: client.rack, or None.
        tags: client tags (KIP-708).
    """

    process_id: str
    threads: int = 1
    active_tasks: frozenset[TaskId] = frozenset()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    lags_before: Mapping[TaskId, int] = field(default_factory=dict)
    stuck: bool = False
    left_over: frozenset[TaskId] = frozenset()
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
            of the next three columns.
        copy_client, copy_lag: int [N]; clients ascend within a task.
        copy_stalled: bool [N]; behind, and the lag did not shrink since the previous rebalance.
        end_offset_sums: int [T], the lag of a client without state; LAG_UNKNOWN if unknown.
        racks, tags: one entry per client.
        config: the settings.
        weights: float [T], the work of each task, or None when all count the same.
        partition_racks, changelog_racks: one entry a task, one part a source (changelog)
            partition; None when nothing is known.
        stuck: bool [C], clients whose copies made no progress; None: none.
        left_over: (task, client) of copies that were neither active nor standby; sorted.
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
    copy_stalled: BoolArray
    end_offset_sums: IntArray
    racks: tuple[str | None, ...]
    tags: tuple[tuple[tuple[str, str], ...], ...]
    config: AssignmentConfig
    weights: FloatArray | None = None
    partition_racks: RacksByTask | None = None
    changelog_racks: RacksByTask | None = None
    stuck: BoolArray | None = None
    left_over: Pairs = ()
    warnings: tuple[str, ...] = ()

    def copies(self, task: int) -> list[tuple[int, int]]:
        """(client, lag) of every reported copy of the task with this index, by client."""
        part = slice(self.copy_start[task], self.copy_start[task + 1])
        return list(zip(self.copy_client[part].tolist(), self.copy_lag[part].tolist(), strict=True))

    def capacity(self) -> IntArray:
        """Int [C]: threads of each client; all ones if no client has any, so that tasks run."""
        return self.threads if self.threads.any() else np.ones_like(self.threads)

    def copy_task(self) -> IntArray:
        """Int [N]: the task of each reported copy."""
        tasks = np.arange(len(self.tasks), dtype=np.int64)
        return np.repeat(tasks, self.copy_start[1:] - self.copy_start[:-1])

    def copy_rows(self) -> IntArray:
        """Int [N, 4]: task, client, lag and stalled (0 or 1) of each reported copy."""
        stalled = self.copy_stalled.astype(np.int64)
        return np.stack([self.copy_task(), self.copy_client, self.copy_lag, stalled], axis=1)

    def with_copies(self, rows: IntArray, **changes: Any) -> "GroupState":
        """The group with other copies, in rows as from `copy_rows`, and with other columns."""
        return replace(self, **_copy_columns(rows, len(self.tasks)), **changes)

    def read_only(self) -> "GroupState":
        """A copy of the group whose arrays are read-only; O(T + N)."""
        values = {column.name: getattr(self, column.name) for column in fields(self)}
        arrays: dict[str, Any] = {
            name: _locked(value) for name, value in values.items() if isinstance(value, np.ndarray)
        }
        return replace(self, **arrays)

    def is_caught_up(self) -> BoolArray:
        """Bool [N]: whether each reported copy is within the acceptable recovery lag.

        With an acceptable lag of 2**63 - 1 every lag is, also an unknown one, as in Kafka Streams.
        """
        return self.copy_lag <= self.config.acceptable_recovery_lag

    def starts_anywhere(self) -> BoolArray:
        """Bool [T]: whether the task is so small that a client without state is caught up."""
        return self.end_offset_sums <= self.config.acceptable_recovery_lag


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskAssignment:
    """The clients of all tasks after a rebalance.

    Attributes:
        active: int [T], the client of each active task.
        standbys: (task, client) pairs of standby and warm-up copies, sorted.
        warmups: the pairs of `standbys` that exceed num.standby.replicas until they have caught up.
        followup: whether a probing rebalance is wanted while copies warm up (KIP-441).
        look_again: whether tasks wait for copies without progress since the last rebalance; they
            may be slow instead of stuck, so a leader looks again a few times, ever later.
        warnings: what could not be had, and why.
    """

    active: IntArray
    standbys: tuple[tuple[int, int], ...] = ()
    warmups: tuple[tuple[int, int], ...] = ()
    followup: bool = False
    look_again: bool = False
    warnings: tuple[str, ...] = ()

    def standby_table(self) -> IntArray:
        """Int [P, 2]: `standbys` as a table."""
        flat = np.fromiter(chain.from_iterable(self.standbys), np.int64, 2 * len(self.standbys))
        return flat.reshape(-1, 2)


Strategy = Callable[[GroupState], TaskAssignment]


def group_state(
    *,
    tasks: Iterable[TaskId],
    stateful_tasks: Iterable[TaskId],
    clients: Iterable[ClientInput],
    config: AssignmentConfig | None = None,
    end_offset_sums: Mapping[TaskId, int] | None = None,
    weights: Mapping[TaskId, float] | None = None,
    partition_racks: RacksGiven | None = None,
    changelog_racks: RacksGiven | None = None,
) -> GroupState:
    """A group from tasks, clients and what the clients report.

    If a task has no entry in `end_offset_sums`, its sum is unknown (LAG_UNKNOWN): a client without
    state of the task does not count as caught up. With a sum of 0 there is nothing to restore.

    Tasks that no longer exist are ignored with a warning. If two clients ran a task, the first in
    client order is its owner, with a warning (KAFKA-13296 only logs). A lag above the end offset
    sum is used unchanged, with a warning.

    Raises:
        TaskAssignmentError: no clients, a process id twice, negative threads, a negative lag or end
            offset sum, or a weight that is not above 0.
    """
    ordered_tasks = tuple(sorted(set(tasks)))
    index_by_task = {task: index for index, task in enumerate(ordered_tasks)}
    ordered = sorted(clients, key=lambda client: client.process_id)
    _check_clients(ordered)
    warnings: list[str] = []
    owner = _owners(ordered, index_by_task, warnings)
    stateful = frozenset(stateful_tasks)
    count = len(ordered_tasks)
    state = GroupState(
        tasks=ordered_tasks,
        stateful=np.fromiter((task in stateful for task in ordered_tasks), np.bool_, count),
        subtopology=np.fromiter((task.subtopology for task in ordered_tasks), np.int64, count),
        clients=tuple(client.process_id for client in ordered),
        threads=np.array([client.threads for client in ordered], dtype=np.int64),
        owner=owner,
        **_copy_columns(_copies(ordered, index_by_task), count),
        end_offset_sums=_ends(ordered_tasks, end_offset_sums or {}),
        racks=tuple(client.rack for client in ordered),
        tags=tuple(client.tags for client in ordered),
        config=config or AssignmentConfig(),
        weights=_weights(ordered_tasks, weights),
        partition_racks=_racks(ordered_tasks, partition_racks),
        changelog_racks=_racks(ordered_tasks, changelog_racks),
        stuck=_stuck(ordered),
        left_over=_left_over(ordered, index_by_task),
    )
    warnings += lag_warnings(state)
    return replace(state, warnings=tuple(warnings)) if warnings else state


def _stuck(ordered: Sequence[ClientInput]) -> BoolArray | None:
    found = np.array([client.stuck for client in ordered], dtype=np.bool_)
    return found if found.any() else None


def _left_over(ordered: Sequence[ClientInput], index: Mapping[TaskId, int]) -> Pairs:
    pairs = ((task, c) for c, client in enumerate(ordered) for task in client.left_over)
    return tuple(sorted((index[task], client) for task, client in pairs if task in index))


def _locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    own = array.copy()
    own.flags.writeable = False
    # A view of it: unlike the array itself, a view cannot be made writable again.
    return own.view()


def lag_warnings(state: GroupState) -> tuple[str, ...]:
    """A warning if lags are above the end offset sum of their task; else empty."""
    ends = state.end_offset_sums[state.copy_task()]
    above = np.flatnonzero((state.copy_lag > ends) & (state.copy_lag != LAG_UNKNOWN))
    if not len(above):
        return ()
    first = f"the first on {state.clients[int(state.copy_client[above[0]])]}"
    return (f"{len(above)} lags are above the end offset sum, {first}; its state may be corrupted",)


def _owners(
    ordered: Sequence[ClientInput], index_by_task: Mapping[TaskId, int], warnings: list[str]
) -> IntArray:
    owner = np.full(len(index_by_task), NOBODY, dtype=np.int64)
    for number, client in enumerate(ordered):
        reported = client.active_tasks | client.lags.keys()
        gone = sorted((task for task in reported if task not in index_by_task), key=task_order)
        if gone:
            names = ", ".join(map(str, gone[:5]))
            more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""  # noqa: PLR2004 those named
            warnings.append(f"{client.process_id} reports tasks that do not exist: {names}{more}")
        # A set operation on the keys would visit every task for every client.
        for task in sorted(task for task in client.active_tasks if task in index_by_task):
            index = index_by_task[task]
            if owner[index] == NOBODY:
                owner[index] = number
                continue
            first = ordered[int(owner[index])].process_id
            warnings.append(f"task {task} runs on {first} and {client.process_id}; {first} counts")
    return owner


def _ends(tasks: Sequence[TaskId], end_offset_sums: Mapping[TaskId, int]) -> IntArray:
    ends = [end_offset_sums.get(task, LAG_UNKNOWN) for task in tasks]
    for task, end in zip(tasks, ends, strict=True):
        if end < 0:
            raise TaskAssignmentError(f"task {task} has end offset sum {end}; it is 0 or more")
    return np.array(ends, dtype=np.int64)


def _copies(ordered: Sequence[ClientInput], index_by_task: Mapping[TaskId, int]) -> IntArray:
    """The reported copies of existing tasks, in rows as from `GroupState.copy_rows`."""
    rows: list[tuple[int, int, int, bool]] = []
    for number, client in enumerate(ordered):
        before = client.lags_before
        rows.extend(
            # Without an earlier lag a copy does not count as stalled.
            (index_by_task[task], number, lag, lag > 0 and 0 <= before.get(task, -1) <= lag)
            for task, lag in client.lags.items()
            if task in index_by_task
        )
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _copy_columns(rows: IntArray, tasks: int) -> dict[str, Any]:
    """The columns of a state for rows as from `GroupState.copy_rows`, in any order."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    return {
        "copy_start": np.searchsorted(rows[:, 0], np.arange(tasks + 1)).astype(np.int64),
        "copy_client": rows[:, 1].copy(),
        "copy_lag": rows[:, 2].copy(),
        "copy_stalled": rows[:, 3] != 0,
    }


def _weights(tasks: Sequence[TaskId], weights: Mapping[TaskId, float] | None) -> FloatArray | None:
    if not weights:
        return None
    column = np.array([weights.get(task, 1.0) for task in tasks], dtype=np.float64)
    for task, weight in zip(tasks, column.tolist(), strict=True):
        if not 0 < weight < float("inf"):
            raise TaskAssignmentError(f"task {task} has weight {weight}; weights are above 0")
    return column


def _racks(tasks: Sequence[TaskId], racks: RacksGiven | None) -> RacksByTask | None:
    return None if racks is None else tuple(tuple(racks.get(task, ())) for task in tasks)


def _check_clients(ordered: list[ClientInput]) -> None:
    if not ordered:
        raise TaskAssignmentError("no clients: a group without members has no assignment")
    for left, right in pairwise(ordered):
        if left.process_id == right.process_id:
            raise TaskAssignmentError(f"process id {left.process_id} is given twice; merge the two")
    for client in ordered:
        if client.threads < 0:
            raise TaskAssignmentError(
                f"client {client.process_id} has {client.threads} threads; threads are 0 or more"
            )
        for task, lag in client.lags.items():
            if lag < LAG_RUNNING:
                raise TaskAssignmentError(
                    f"client {client.process_id} reports lag {lag} for task {task}; "
                    "lags are 0 or more"
                )
