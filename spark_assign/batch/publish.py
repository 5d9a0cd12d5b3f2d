"""Write a plan made by Spark into the plan store that the group's leader reads.

The store holds the snapshot of the group and the plan. A worker reads the plan, validates it
against the snapshot and replaces the old plan atomically. The driver gets counts. The store must be
a directory that the workers and the leaders share.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from assignor import TaskAssignment
from assignor.placement import ClientTasks, assignment_from
from assignor.stores import GroupSnapshot, PlanStore, StoreError, plan_for
from encoding import RebalanceError, TaskId
from spark_assign.workers import Batches

_DONE = "tasks long, copies long, error string"
_DONE_ARROW = pa.schema([("tasks", pa.int64()), ("copies", pa.int64()), ("error", pa.string())])
_PUBLISHED = "name string, error string"
_PUBLISHED_ARROW = pa.schema([("name", pa.string()), ("error", pa.string())])


def publish_plan(
    placements: DataFrame, store: str | Path, group: str, *, followup: bool
) -> tuple[int, int]:
    """Write a plan into a store; return its numbers of tasks and of standbys and warm-ups.

    Args:
        placements: a row per copy, in the schema `schemas.PLACEMENT`.
        store: directory of the plan store.
        group: id of the group in the store; its snapshot must be there.
        followup: whether a probing rebalance is wanted while copies warm up.

    Raises:
        StoreError: there is no snapshot, or the plan is not valid for it.
    """
    directory = str(store)

    def write(batches: Batches) -> Iterator[pa.RecordBatch]:
        row: dict[str, object] = {}
        try:
            tasks, copies = _write(batches, PlanStore(directory), group, followup=followup)
            row |= {"tasks": tasks, "copies": copies}
        except StoreError as error:
            row["error"] = str(error)
        yield pa.RecordBatch.from_pylist([row], schema=_DONE_ARROW)

    # `coalesce` would make one worker compute the whole plan.
    [done] = placements.repartition(1).mapInArrow(write, _DONE).collect()
    if done.error is not None:
        raise StoreError(done.error)
    return done.tasks, done.copies


def publish_plans(plans: DataFrame, store: str | Path) -> DataFrame:
    """Write the plans of many groups into a store; each replaces the plan of its group.

    Args:
        plans: a row per group, in the schema `schemas.RESULT`.
        store: directory of the plan store, with a snapshot of each group.

    Returns:
        A row per group with its `name` and `error`, the reason why the plan is not in the store, or
        null. Reading it again publishes again.
    """
    directory = str(store)

    def write(batches: Batches) -> Iterator[pa.RecordBatch]:
        opened = PlanStore(directory)
        for batch in batches:
            rows = [
                {"name": plan["name"], "error": _published(opened, plan)}
                for plan in batch.to_pylist()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=_PUBLISHED_ARROW)

    return plans.select("name", "probing", "clients").mapInArrow(write, _PUBLISHED)


def _published(store: PlanStore, plan: Mapping[str, Any]) -> str | None:
    """Write the plan of one group; why it is not written, or None."""
    name = plan["name"]
    try:
        snapshot = store.read_snapshot(name)
        if snapshot is None:
            raise StoreError(f"{store.snapshot_path(name)} does not exist")
        places = {client: _tasks_of(held) for client, held in plan["clients"]}
        assignment = assignment_from(snapshot.state, places, followup=plan["probing"])
        store.write_plan(name, plan_for(snapshot, assignment))
    except RebalanceError as error:
        return str(error)
    return None


def _tasks_of(held: Mapping[str, Sequence[str]]) -> ClientTasks:
    """The tasks of a client, which a plan has as texts."""
    return ClientTasks(**{role: [TaskId.parse(name) for name in held[role]] for role in held})


def _write(batches: Batches, store: PlanStore, group: str, *, followup: bool) -> tuple[int, int]:
    snapshot = store.read_snapshot(group)
    if snapshot is None:
        raise StoreError(
            f"{store.snapshot_path(group)} does not exist; the leader has not asked for a plan"
        )
    table = pa.Table.from_batches(list(batches))
    plan = plan_for(snapshot, _assignment(snapshot, table, followup=followup))
    store.write_plan(group, plan)
    return len(snapshot.state.tasks), len(plan.assignment.standbys)


def _assignment(snapshot: GroupSnapshot, table: pa.Table, *, followup: bool) -> TaskAssignment:
    """The rows of a plan as an assignment of the snapshot's tasks and clients."""
    state = snapshot.state
    place = np.array([task.partition for task in state.tasks], dtype=np.int64)
    keys = state.subtopology << 32 | place
    wanted = _longs(table, "subtopology") << 32 | _longs(table, "partition")
    task = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    index = pc.index_in(table.column("client"), value_set=pa.array(state.clients, pa.string()))
    client = pc.fill_null(index, -1).to_numpy().astype(np.int64)
    if (keys[task] != wanted).any() or (client < 0).any():
        raise StoreError(
            f"the plan for {snapshot.group} names tasks or clients that it does not have"
        )
    role = table.column("role")
    is_active = pc.equal(role, "active").to_numpy(zero_copy_only=False)
    is_warmup = pc.equal(role, "warmup").to_numpy(zero_copy_only=False)
    active = np.full(len(keys), -1, dtype=np.int64)
    active[task[is_active]] = client[is_active]
    return TaskAssignment(
        active=active,
        standbys=_pairs(task[~is_active], client[~is_active]),
        warmups=_pairs(task[is_warmup], client[is_warmup]),
        followup=followup,
    )


def _longs(table: pa.Table, name: str) -> Any:
    return table.column(name).to_numpy().astype(np.int64)


def _pairs(task: Any, client: Any) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(zip(task.tolist(), client.tolist(), strict=True)))
