"""Answers as an Arrow batch in the schema `schemas.RESULT`, and what a job counts of them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from assignor import GroupState, TaskAssignment
from assignor.problems import moves_of
from encoding import shown
from spark_assign.tables.checks import Reject
from spark_assign.tables.guard import reason_of
from spark_assign.tables.places import PLACE
from spark_assign.tables.schemas import RESULT

# What is summed up for the job's summary, beside the result.
COUNTS = ("tasks", "moved", "restores", "warmups")
# A result or the reason why there is none, and behind it what is counted.
WRITTEN = StructType([*RESULT.fields, StructField("error", StringType())])
ANSWER = StructType([*WRITTEN.fields, *[StructField(f"_{name}", LongType()) for name in COUNTS]])
RESULT_ARROW = to_arrow_schema(ANSWER)
_TEXT = pa.string()
_REASON_MAX = 1_000
_CLIENTS = RESULT_ARROW.field("clients").type


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One group, placed or rejected, with its place in the input (`places.PLACE_TYPE`)."""

    name: str
    assignor: str
    millis: float = 0.0
    state: GroupState | None = None
    assignment: TaskAssignment | None = None
    reject: Reject | None = None
    place: Mapping[str, str | int | None] = field(default_factory=dict)


@dataclass(slots=True)
class _Placed:
    """The nested column of clients while it grows; tasks and clients are numbered on and on."""

    rows: list[int] = field(default_factory=lambda: [0])
    clients: list[str] = field(default_factory=list)
    tasks: int = 0
    subtopologies: list[Any] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    actives: list[Any] = field(default_factory=list)
    standbys: list[Any] = field(default_factory=list)
    warmups: list[Any] = field(default_factory=list)

    def add(self, state: GroupState, assignment: TaskAssignment) -> None:
        shift, first = np.array([self.tasks, len(self.clients)]), len(self.clients)
        self.subtopologies.append(state.subtopology)
        self.partitions += [task.partition for task in state.tasks]
        self.actives.append(assignment.active + first)
        standbys = assignment.standby_table()
        if assignment.warmups:
            warmups = set(assignment.warmups)
            is_warmup = np.array([pair in warmups for pair in assignment.standbys])
            self.warmups.append(standbys[is_warmup] + shift)
            standbys = standbys[~is_warmup]
        self.standbys.append(standbys + shift)
        self.tasks += len(state.tasks)
        self.clients += state.clients
        self.rows.append(len(self.clients))

    def skip(self) -> None:
        self.rows.append(len(self.clients))

    def array(self) -> pa.Array:
        numbers = [_joined(self.subtopologies, 0), np.array(self.partitions, dtype=np.int64)]
        texts = [pa.array(part).cast(_TEXT) for part in numbers]
        names = pc.binary_join_element_wise(*texts, "_")
        active = _joined(self.actives, 0)
        tables = [
            np.stack([np.arange(len(active)), active], axis=1),
            _joined(self.standbys, (0, 2)),
            _joined(self.warmups, (0, 2)),
        ]
        columns = [self._lists(names, table[:, 0], table[:, 1]) for table in tables]
        items = pa.StructArray.from_arrays(columns, fields=list(_CLIENTS.item_type))
        return pa.MapArray.from_arrays(
            pa.array(self.rows, pa.int32()), pa.array(self.clients, _TEXT), items, _CLIENTS
        )

    def _lists(self, names: pa.Array, task: Any, client: Any) -> pa.Array:
        """The tasks of each client; sorted, for those of each group are given in order."""
        counts = np.bincount(client, minlength=len(self.clients))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        order = np.argsort(client, kind="stable")
        return pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(task[order])))


def _joined(parts: list[Any], empty: int | tuple[int, int]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(empty, dtype=np.int64)


def batch_of(answers: list[Answer]) -> pa.RecordBatch:
    """Answers as a batch; a rejected group has its reason as JSON in `error` and no clients.

    An answer that cannot be encoded becomes a reject.
    """
    try:
        return _encoded(answers)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 found out below whose it is
        if len(answers) != 1:
            return pa.concat_batches([batch_of([one]) for one in answers])
        [one] = answers
        reject = Reject(name=one.name, column="", value="", reason=reason_of(error))
        return _encoded([_rejected(one, reject)])


def _rejected(one: Answer, reject: Reject) -> Answer:
    return Answer(name=text_of(one.name), assignor=one.assignor, reject=reject, place=one.place)


def text_of(name: str) -> str:
    """A name as it is, or escaped where it is no Unicode text (halves of surrogate pairs)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return shown(name, limit=None)
    return name


def _encoded(answers: list[Answer]) -> pa.RecordBatch:
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
        pa.array([_name(one) for one in answers], _TEXT),
        pa.array([one.assignor for one in answers], _TEXT),
        pa.array([round(one.millis, 3) for one in answers], pa.float64()),
        pa.array([one.assignment is not None and one.assignment.followup for one in answers]),
        placed.array(),
        pa.array([_warnings(one) for one in answers], pa.list_(_TEXT)),
        pa.array([error_of(one.reject, one.place) for one in answers], _TEXT),
        *[pa.array(counts[name], pa.int64()) for name in COUNTS],
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RESULT_ARROW)


def _name(one: Answer) -> str:
    return one.name if one.reject is None else text_of(one.name)


def _counts(state: GroupState, assignment: TaskAssignment) -> dict[str, int]:
    moves = moves_of(state, assignment)
    moved = moves.handoffs + moves.takeovers + moves.stateless_moves
    numbers = (len(state.tasks), moved, moves.restores, moves.warmups)
    return dict(zip(COUNTS, numbers, strict=True))


def _warnings(one: Answer) -> list[str] | None:
    if one.state is None or one.assignment is None:
        return None
    return [*one.state.warnings, *one.assignment.warnings] or None


def error_of(
    reject: Reject | None, place: Mapping[str, str | int | None] | None = None
) -> str | None:
    """A reject as JSON for the column `error`, with its place (`places.PLACE_TYPE`).

    Value and reason are put on one printable line each.
    """
    if reject is None:
        return None
    texts = {
        "name": text_of(reject.name),
        "value": shown(reject.value),
        "reason": shown(reject.reason, limit=_REASON_MAX),
    }
    return json.dumps(asdict(reject) | texts | {PLACE: place or None})
