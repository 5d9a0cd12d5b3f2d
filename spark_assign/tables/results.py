"""Answers as Arrow batches in the schema `ANSWER`: the result with its measures, or the reject."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from assignor import GroupState, TaskAssignment
from assignor.problems import Measures
from spark_assign.tables.guard import reason_of
from spark_assign.tables.rejects import REJECT, Position, Reject, printable_name
from spark_assign.tables.schemas import RESULT

# Totals of the summary of a job, and the measures that add up to each.
COUNTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tasks": ("tasks",),
        "moved": ("handoffs", "takeovers", "stateless_moves"),
        "restores": ("restores",),
        "warmups": ("warmups",),
    }
)
# A result, or the reject that says why there is none.
ANSWER = StructType([*RESULT.fields, StructField("reject", REJECT)])
RESULT_ARROW = to_arrow_schema(ANSWER)
_TEXT = pa.string()
_CLIENTS = RESULT_ARROW.field("clients").type
_MEASURES = RESULT_ARROW.field("measures").type
_REJECT = RESULT_ARROW.field("reject").type


def total(name: str) -> Column:
    """The sum of one of `COUNTS` over rows of results; 0 without rows."""
    return f.coalesce(sum((f.sum(f"measures.{part}") for part in COUNTS[name]), f.lit(0)), f.lit(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One group, placed and measured or rejected, and the position where it was read."""

    name: str
    assignor: str
    millis: float = 0.0
    state: GroupState | None = None
    assignment: TaskAssignment | None = None
    measures: Measures | None = None
    reject: Reject | None = None
    position: Position | None = None


@dataclass(slots=True)
class _Placed:
    """The nested column `clients` under construction; numbers tasks and clients of all groups."""

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
        """The tasks of each client, in the order of the arguments."""
        counts = np.bincount(client, minlength=len(self.clients))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        order = np.argsort(client, kind="stable")
        return pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(task[order])))


def _joined(parts: list[Any], empty: int | tuple[int, int]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(empty, dtype=np.int64)


def batch_of(answers: list[Answer]) -> pa.RecordBatch:
    """Answers as a batch in the schema `ANSWER`; a rejected group has no clients.

    An answer that cannot be encoded becomes a reject.
    """
    try:
        return _encoded(answers)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 answers are tried one by one, the failing ones rejected
        if len(answers) != 1:
            return pa.concat_batches([batch_of([answer]) for answer in answers])
        [answer] = answers
        reject = Reject(name=answer.name, reason=reason_of(error))
        empty = replace(answer, millis=0.0, state=None, assignment=None, measures=None)
        return _encoded([replace(empty, reject=reject)])


def _encoded(answers: list[Answer]) -> pa.RecordBatch:
    placed = _Placed()
    for answer in answers:
        if answer.state is None or answer.assignment is None:
            placed.skip()
        else:
            placed.add(answer.state, answer.assignment)
    measures = [None if answer.measures is None else asdict(answer.measures) for answer in answers]
    columns = [
        pa.array([_name(answer) for answer in answers], _TEXT),
        pa.array([answer.assignor for answer in answers], _TEXT),
        pa.array([round(answer.millis, 3) for answer in answers], pa.float64()),
        pa.array(
            [answer.assignment is not None and answer.assignment.followup for answer in answers]
        ),
        placed.array(),
        pa.array([_warnings(answer) for answer in answers], pa.list_(_TEXT)),
        pa.array(measures, _MEASURES),
        pa.array([_reject_row(answer) for answer in answers], _REJECT),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RESULT_ARROW)


def _name(answer: Answer) -> str:
    return answer.name if answer.reject is None else printable_name(answer.name)


def _reject_row(answer: Answer) -> dict[str, Any] | None:
    if answer.reject is None:
        return None
    return replace(answer.reject, position=answer.position).row()


def _warnings(answer: Answer) -> list[str] | None:
    if answer.state is None or answer.assignment is None:
        return None
    return [*answer.state.warnings, *answer.assignment.warnings] or None
