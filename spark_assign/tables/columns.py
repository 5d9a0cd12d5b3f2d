"""Check and sort the columns of a batch of groups, all rows at once.

Client ids become numbers. Every check is done once for the whole batch; `Checks` keeps the first
reject of each row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY
from encoding import TaskId
from spark_assign.tables.checks import (
    Checks,
    flat,
    nulls,
    numbers,
    racks_of,
    ranks_of,
    repeats,
)

_THREADS_MAX = 10**6
_WEIGHT_MAX = 1e15
_NUMBER_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A batch as read: flat arrays, the row of each element, names as ranks among all names."""

    checks: Checks
    tasks: Any
    task_start: Any
    task_rows: Any
    clients: Any
    client_start: Any
    client_rows: Any
    copies: Any
    copy_start: Any
    client_ranks: Any
    owner_ranks: Any
    copy_ranks: Any
    by_rank: list[str]

    @classmethod
    def of(cls, batch: pa.RecordBatch, checks: Checks) -> "Raw":
        """The arrays of a batch."""
        tasks, task_start = flat(batch.column("tasks"))
        clients, client_start = flat(batch.column("clients"))
        copies, copy_start = flat(tasks.field("copies"))
        ranks, by_rank = ranks_of(
            clients.field("client"), tasks.field("owner"), copies.field("client")
        )
        rows = np.arange(batch.num_rows)
        return cls(
            checks=checks,
            tasks=tasks,
            task_start=task_start,
            task_rows=np.repeat(rows, np.diff(task_start)),
            clients=clients,
            client_start=client_start,
            client_rows=np.repeat(rows, np.diff(client_start)),
            copies=copies,
            copy_start=copy_start,
            client_ranks=ranks[0],
            owner_ranks=ranks[1],
            copy_ranks=ranks[2],
            by_rank=by_rank,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of all rows, by row and id.

    Attributes:
        start: int [rows + 1], the slice of each row.
        ids: client ids in that order.
        keys: int, row * width + rank of the id + 1; ascending.
        width: number of ranks, plus 1.
        table: the struct array in the same order.
    """

    start: Any
    ids: list[str]
    keys: Any
    width: int
    table: Any

    def index(self, rows: Any, ranks: Any) -> Any:
        """Number of a client within its row; NOBODY where the row has none of that rank."""
        wanted = rows * self.width + ranks + 1
        place = np.searchsorted(self.keys, wanted)
        found = place < len(self.keys)
        found[found] = self.keys[place[found]] == wanted[found]
        found &= ranks >= 0
        return np.where(found, place - self.start[rows], NOBODY)

    def columns(self, part: slice) -> dict[str, Any]:
        """The columns of a `GroupState` for these clients."""
        table = self.table.slice(part.start, part.stop - part.start)
        return {
            "clients": tuple(self.ids[part]),
            "threads": numbers(table.field("threads"), 1).astype(np.int64),
            "racks": tuple(rack or None for rack in table.field("rack").to_pylist()),
            "tags": tuple(_tags(given) for given in table.field("tags").to_pylist()),
        }


def sorted_clients(raw: Raw) -> Clients:
    """The clients of all rows, checked and sorted."""
    checks, rows, names = raw.checks, raw.client_rows, raw.clients.field("client")
    checks.add(nulls(raw.clients), rows, "clients", no_value, "a client is null; leave it out")
    checks.add(raw.client_ranks < 0, rows, "clients.client", no_value, "a client needs an id")
    counts = numbers(raw.clients.field("threads"), 1)
    checks.add(
        (counts < 0) | (counts > _THREADS_MAX),
        rows,
        "clients.threads",
        lambda place: counts[place],
        f"give a whole number, 0 to {_THREADS_MAX}",
    )
    # Rank -1, of a client without an id, must stay within its row.
    width = len(raw.by_rank) + 1
    keys = rows * width + raw.client_ranks + 1
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    ids = names.take(pa.array(order)).to_pylist()
    checks.add(
        repeats(keys),
        rows[order],
        "clients.client",
        lambda place: ids[place],
        "the client is given twice; merge the two",
    )
    table = raw.clients.take(pa.array(order))
    return Clients(start=raw.client_start, ids=ids, keys=keys, width=width, table=table)


def no_value(_: int) -> None:
    """None, the value that a check shows for null."""


def check_tasks(raw: Raw) -> Any:
    """Check all tasks; return their order by row, subtopology and partition."""
    checks, rows = raw.checks, raw.task_rows
    checks.add(nulls(raw.tasks), rows, "tasks", no_value, "a task is null; leave it out")
    for name in ("subtopology", "partition", "stateful"):
        column = raw.tasks.field(name)
        expected = "give true or false" if name == "stateful" else "give a whole number"
        checks.add(nulls(column), rows, f"tasks.{name}", no_value, expected)
    subtopology, partition = (
        numbers(raw.tasks.field(name), 0) for name in ("subtopology", "partition")
    )
    for name, column in (("subtopology", subtopology), ("partition", partition)):
        place = f"tasks.{name}"
        checks.add(column < 0, rows, place, column.__getitem__, "numbers start at 0")
        checks.add(
            column > _NUMBER_MAX, rows, place, column.__getitem__, f"numbers end at {_NUMBER_MAX}"
        )
    order = np.lexsort((partition, subtopology, rows))
    first, second = subtopology[order], partition[order]
    checks.add(
        repeats(rows[order], first, second),
        rows[order],
        "tasks",
        lambda place: f"{first[place]}_{second[place]}",
        "the task is given twice; a task has one row",
    )
    return order


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Columns of all tasks, sorted."""

    subtopology: Any
    partition: Any
    stateful: Any
    owner: Any
    ends: Any
    weights: Any
    has_weight: Any
    partition_racks: Any
    changelog_racks: Any

    def columns(self, part: slice) -> dict[str, Any]:
        """The columns of a `GroupState` for these tasks."""
        subtopology = self.subtopology[part]
        return {
            "tasks": tuple(map(TaskId, subtopology.tolist(), self.partition[part].tolist())),
            "stateful": self.stateful[part],
            "subtopology": subtopology,
            "owner": self.owner[part],
            "end_offset_sums": self.ends[part],
            "weights": self.weights[part] if self.has_weight[part].any() else None,
            "partition_racks": racks_of(self.partition_racks, part),
            "changelog_racks": racks_of(self.changelog_racks, part),
        }


def sorted_tasks(raw: Raw, order: Any, clients: Clients) -> Tasks:
    """The columns of all tasks in an order, checked."""
    checks, rows, tasks = raw.checks, raw.task_rows, raw.tasks
    owner = clients.index(rows, raw.owner_ranks)
    checks.add(
        (raw.owner_ranks >= 0) & (owner == NOBODY),
        rows,
        "tasks.owner",
        lambda place: raw.by_rank[raw.owner_ranks[place]],
        "the group has no such client; add it, or leave owner null",
    )
    ends = numbers(tasks.field("end_offset_sum"), LAG_UNKNOWN)
    checks.add(ends < 0, rows, "tasks.end_offset_sum", lambda p: ends[p], "it is 0 or more")
    checks.add(
        (ends == LAG_UNKNOWN) & ~nulls(tasks.field("end_offset_sum")),
        rows,
        "tasks.end_offset_sum",
        lambda place: ends[place],
        "leave it null if it is not known",
    )
    weights = numbers(tasks.field("weight"), 1.0)
    checks.add(
        ~((weights > 0) & (weights <= _WEIGHT_MAX)),
        rows,
        "tasks.weight",
        lambda place: weights[place],
        "weights are above 0, up to 1e15",
    )
    return Tasks(
        subtopology=numbers(tasks.field("subtopology"), 0)[order].astype(np.int64),
        partition=numbers(tasks.field("partition"), 0)[order],
        stateful=numbers(tasks.field("stateful"), False)[order],  # noqa: FBT003 a value, no switch
        owner=owner[order],
        ends=ends[order],
        weights=weights[order],
        has_weight=~nulls(tasks.field("weight"))[order],
        partition_racks=tasks.field("partition_racks").take(pa.array(order)),
        changelog_racks=tasks.field("changelog_racks").take(pa.array(order)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Copies of all tasks, by task and client; `start` is by sorted task."""

    start: Any
    client: Any
    lag: Any
    stalled: Any

    def columns(self, part: slice) -> dict[str, Any]:
        """The columns of a `GroupState` for the copies of these tasks."""
        start = self.start[part.start : part.stop + 1]
        held = slice(int(start[0]), int(start[-1]))
        return {
            "copy_start": start - start[0],
            "copy_client": self.client[held],
            "copy_lag": self.lag[held],
            "copy_stalled": self.stalled[held],
        }


def sorted_copies(raw: Raw, order: Any, clients: Clients, owner: Any) -> Copies:
    """The copies of all tasks in an order, checked and sorted.

    Args:
        raw: the batch.
        order: of the tasks.
        clients: of all rows.
        owner: int [T], the owner of each task in that order.
    """
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.arange(len(order))
    given = np.repeat(np.arange(len(order)), np.diff(raw.copy_start))
    rows, task, ranks = raw.task_rows[given], place_of[given], raw.copy_ranks
    client = clients.index(rows, ranks)
    raw.checks.add(
        client == NOBODY,
        rows,
        "tasks.copies.client",
        lambda place: raw.by_rank[ranks[place]] if ranks[place] >= 0 else None,
        "the group has no such client; add it, or leave the copy out",
    )
    lag = numbers(raw.copies.field("lag"), LAG_UNKNOWN)
    raw.checks.add(
        lag < LAG_RUNNING,
        rows,
        "tasks.copies.lag",
        lambda place: lag[place],
        "a lag is -1 (running), null (unknown), or 0 and more",
    )
    by_task = np.lexsort((client, task))
    task, client, rows = task[by_task], client[by_task], rows[by_task]
    raw.checks.add(
        repeats(task, client),
        rows,
        "tasks.copies.client",
        lambda place: clients.ids[clients.start[rows[place]] + client[place]],
        "the client is given twice for one task; it has one copy",
    )
    lag = lag[by_task]
    running = np.flatnonzero((lag == LAG_RUNNING) & (client != NOBODY))
    known = owner.copy()
    # Without an owner, the last client that runs the task counts as such.
    unowned = running[owner[task[running]] == NOBODY]
    known[task[unowned]] = client[unowned]
    checked = running[known[task[running]] != client[running]]
    ids, start = clients.ids, clients.start
    raw.checks.add(
        np.ones(len(checked), dtype=np.bool_),
        rows[checked],
        "tasks.copies.lag",
        lambda place: f"-1 of {ids[start[rows[checked[place]]] + client[checked[place]]]}",
        "the task runs on another client; only the lag of its owner is -1",
    )
    return Copies(
        start=np.searchsorted(task, np.arange(len(order) + 1)).astype(np.int64),
        client=client,
        lag=lag,
        stalled=numbers(raw.copies.field("stalled"), False)[by_task],  # noqa: FBT003 as above
    )


def _tags(given: Mapping[str, str] | list[tuple[str, str]] | None) -> tuple[tuple[str, str], ...]:
    if not given:
        return ()
    return tuple(sorted((key, value or "") for key, value in dict(given).items()))
