"""Answers as an Arrow batch in the schema `schemas.RESULT`, and what a job counts of them."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from assignor import GroupState, TaskAssignment, moves_of
from spark_assign.checks import Reject

_TEXT = pa.string()
_PLACED = pa.struct([pa.field(name, pa.list_(_TEXT)) for name in ("active", "standby", "warmup")])
_CLIENTS = pa.map_(_TEXT, _PLACED)
# What is summed up for the job's summary, beside the result.
COUNTS = ("tasks", "moved", "restores", "warmups")
RESULT_ARROW = pa.schema(
    [
        pa.field("name", _TEXT),
        pa.field("assignor", _TEXT),
        pa.field("millis", pa.float64()),
        pa.field("probing", pa.bool_()),
        pa.field("clients", _CLIENTS),
        pa.field("warnings", pa.list_(_TEXT)),
        pa.field("error", _TEXT),
        *[pa.field(f"_{name}", pa.int64()) for name in COUNTS],
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One group, placed or rejected."""

    name: str
    assignor: str
    millis: float = 0.0
    state: GroupState | None = None
    assignment: TaskAssignment | None = None
    reject: Reject | None = None


@dataclass(slots=True)
class _Placed:
    """The nested column of clients, flat, while it grows."""

    rows: list[int] = field(default_factory=lambda: [0])
    clients: list[str] = field(default_factory=list)
    tasks: dict[str, list[Any]] = field(
        default_factory=lambda: {"active": [], "standby": [], "warmup": []}
    )
    counts: dict[str, list[Any]] = field(
        default_factory=lambda: {"active": [], "standby": [], "warmup": []}
    )

    def add(self, state: GroupState, assignment: TaskAssignment) -> None:
        names = np.array([f"{task.subtopology}_{task.partition}" for task in state.tasks])
        everything = np.arange(len(names))
        self._part("active", names, everything, assignment.active, len(state.clients))
        warmups = set(assignment.warmups)
        standbys = [pair for pair in assignment.standbys if pair not in warmups]
        for kind, pairs in (("standby", standbys), ("warmup", sorted(warmups))):
            table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            self._part(kind, names, table[:, 0], table[:, 1], len(state.clients))
        self.clients += state.clients
        self.rows.append(len(self.clients))

    def skip(self) -> None:
        self.rows.append(len(self.clients))

    def _part(self, kind: str, names: Any, task: Any, client: Any, clients: int) -> None:
        order = np.argsort(client, kind="stable")
        self.tasks[kind].append(names[task[order]])
        self.counts[kind].append(np.bincount(client, minlength=clients))

    def array(self) -> pa.Array:
        columns = []
        for kind in ("active", "standby", "warmup"):
            counts = np.concatenate(self.counts[kind] or [np.zeros(0, np.int64)])
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            parts = [pa.array(part, _TEXT) for part in self.tasks[kind]]
            values = pa.concat_arrays(parts) if parts else pa.array([], _TEXT)
            columns.append(pa.ListArray.from_arrays(pa.array(offsets), values))
        items = pa.StructArray.from_arrays(columns, fields=list(_PLACED))
        return pa.MapArray.from_arrays(
            pa.array(self.rows, pa.int32()), pa.array(self.clients, _TEXT), items, _CLIENTS
        )


def batch_of(answers: list[Answer]) -> pa.RecordBatch:
    """Answers as a batch; a rejected group has its reason as JSON in `error` and no clients."""
    placed = _Placed()
    counts: dict[str, list[int]] = {name: [] for name in COUNTS}
    for one in answers:
        if one.state is None or one.assignment is None:
            placed.skip()
            numbers = dict.fromkeys(COUNTS, 0)
        else:
            placed.add(one.state, one.assignment)
            numbers = _counts(one.state, one.assignment)
        for name, value in numbers.items():
            counts[name].append(value)
    columns = [
        pa.array([one.name for one in answers], _TEXT),
        pa.array([one.assignor for one in answers], _TEXT),
        pa.array([round(one.millis, 3) for one in answers], pa.float64()),
        pa.array([one.assignment is not None and one.assignment.followup for one in answers]),
        placed.array(),
        pa.array([_warnings(one) for one in answers], pa.list_(_TEXT)),
        pa.array([_error(one.reject) for one in answers], _TEXT),
        *[pa.array(counts[name], pa.int64()) for name in COUNTS],
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RESULT_ARROW)


def _counts(state: GroupState, assignment: TaskAssignment) -> dict[str, int]:
    moves = moves_of(state, assignment)
    moved = moves.handoffs + moves.takeovers + moves.stateless_moves
    numbers = (len(state.tasks), moved, moves.restores, moves.warmups)
    return dict(zip(COUNTS, numbers, strict=True))


def _warnings(one: Answer) -> list[str] | None:
    if one.state is None or one.assignment is None:
        return None
    return [*one.state.warnings, *one.assignment.warnings] or None


def _error(reject: Reject | None) -> str | None:
    return None if reject is None else json.dumps(asdict(reject))
