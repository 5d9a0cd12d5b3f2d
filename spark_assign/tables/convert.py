"""Group states as rows of the job's tables."""

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from assignor import GroupState
from assignor.config import setting_texts
from assignor.placement import LAG_UNKNOWN, NOBODY
from spark_assign.tables.schemas import GROUP

GROUP_ARROW = to_arrow_schema(GROUP)


def group_row(name: str, state: GroupState) -> dict[str, Any]:
    """A group as a row of a group table; `states.states_of` reads it back."""
    return {
        "name": name,
        "config": sorted(setting_texts(state.config).items()),
        "tasks": task_rows(state),
        "clients": client_rows(state),
    }


def group_batch(groups: list[tuple[str, GroupState]]) -> pa.RecordBatch:
    """Groups as a batch in the schema `schemas.GROUP`."""
    rows = [group_row(name, state) for name, state in groups]
    return pa.RecordBatch.from_pylist(rows, schema=GROUP_ARROW)


def task_rows(state: GroupState) -> list[dict[str, Any]]:
    """One row per task, in the schema `schemas.TASK`."""
    clients, owners = state.clients, state.owner.tolist()
    starts, holders = state.copy_start.tolist(), state.copy_client.tolist()
    lags, stalled = state.copy_lag.tolist(), state.copy_stalled.tolist()
    stateful, ends = state.stateful.tolist(), state.end_offset_sums.tolist()
    weights = None if state.weights is None else state.weights.tolist()
    return [
        {
            "subtopology": task.subtopology,
            "partition": task.partition,
            "stateful": stateful[index],
            "owner": None if owners[index] == NOBODY else clients[owners[index]],
            "copies": [
                {
                    "client": clients[holders[copy]],
                    "lag": _known(lags[copy]),
                    "stalled": stalled[copy],
                }
                for copy in range(starts[index], starts[index + 1])
            ],
            "end_offset_sum": _known(ends[index]),
            "weight": None if weights is None else weights[index],
            "partition_racks": _racks(state.partition_racks, index),
            "changelog_racks": _racks(state.changelog_racks, index),
        }
        for index, task in enumerate(state.tasks)
    ]


def client_rows(state: GroupState) -> list[dict[str, Any]]:
    """One row per client, in the schema `schemas.CLIENT`."""
    rows = zip(state.clients, state.threads.tolist(), state.racks, state.tags, strict=True)
    return [
        {"client": client, "threads": threads, "rack": rack, "tags": list(tags)}
        for client, threads, rack, tags in rows
    ]


def _known(number: int) -> int | None:
    return None if number == LAG_UNKNOWN else number


def _racks(
    racks: tuple[tuple[frozenset[str] | None, ...], ...] | None, index: int
) -> list[list[str] | None] | None:
    if racks is None:
        return None
    return [None if names is None else sorted(names) for names in racks[index]]
