"""The tasks and clients of a long problem as Arrow arrays."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from assignor.placement import LAG_UNKNOWN, NOBODY
from spark_assign.huge.lines.problem import LongProblem, Part
from spark_assign.tables import CLIENT, TASK

TASK_ARROW, CLIENT_ARROW = to_arrow_schema(TASK), to_arrow_schema(CLIENT)
# Tasks of an Arrow batch.
_ROWS = 1 << 16
_Ints = npt.NDArray[np.int64]


def task_batches(problem: LongProblem) -> Iterator[pa.StructArray]:
    """The tasks in order, as arrays in the schema `schemas.TASK`."""
    ids = pa.array([client.process_id for client in problem.clients], pa.string())
    for part in problem.parts:
        first = int(np.searchsorted(problem.codes, part.number << 32))
        for start in range(0, part.width, _ROWS):
            rows = slice(first + start, first + min(start + _ROWS, part.width))
            yield _task_array(problem, part, rows, ids)


def _task_array(
    problem: LongProblem, part: Part, rows: slice, ids: pa.StringArray
) -> pa.StructArray:
    codes, counts = problem.codes[rows], problem.topics
    number = codes & 0xFFFF_FFFF
    logged = max((counts.get(log, part.width) for log in part.logs), default=0)
    starts = problem.copy_start[rows.start : rows.stop + 1]
    held = slice(int(starts[0]), int(starts[-1]))
    copies = pa.StructArray.from_arrays(
        [
            ids.take(pa.array(problem.copy_client[held])),
            _known(problem.copy_lag[held]),
            pa.array(np.zeros(held.stop - held.start, dtype=np.bool_)),
        ],
        fields=list(TASK_ARROW.field("copies").type.value_type),
    )
    owner = problem.owner[rows]
    weights = (
        [problem.weights.get(code, 1.0) for code in codes.tolist()] if problem.weights else None
    )
    columns = [
        pa.array((codes >> 32).astype(np.int32)),
        pa.array(number.astype(np.int32)),
        pa.array(number < logged),
        ids.take(pa.array(owner, mask=owner == NOBODY)),
        pa.ListArray.from_arrays(pa.array((starts - starts[0]).astype(np.int32)), copies),
        _known(problem.ends[rows]),
        pa.nulls(len(codes), pa.float64()) if weights is None else pa.array(weights, pa.float64()),
        *(_racks(problem, topics, number) for topics in (part.sources, part.logs)),
    ]
    fields = list(TASK_ARROW)
    parts = [column.cast(kind.type) for column, kind in zip(columns, fields, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields)


def _known(numbers: _Ints) -> pa.Array:
    return pa.array(numbers, mask=numbers == LAG_UNKNOWN)


def _racks(problem: LongProblem, topics: Sequence[str], partitions: _Ints) -> pa.Array:
    """The racks of the replicas of each task; null when none are known."""
    kind = TASK_ARROW.field("partition_racks").type
    if not problem.racks:
        return pa.nulls(len(partitions), kind)
    counts, racks = problem.topics, problem.racks
    rows = []
    for partition in partitions.tolist():
        read = [racks.get(t, {}) for t in topics if partition < counts.get(t, partition + 1)]
        names = [topic.get(str(partition)) for topic in read]
        rows.append([sorted(set(known)) if known else None for known in names])
    return pa.array(rows, kind)


def client_array(problem: LongProblem) -> pa.StructArray:
    """The clients as an array in the schema `schemas.CLIENT`."""
    rows = [
        {
            "client": client.process_id,
            "threads": client.threads,
            "rack": client.rack,
            "tags": list(client.tags),
        }
        for client in problem.clients
    ]
    return pa.array(rows, pa.struct(list(CLIENT_ARROW)))
