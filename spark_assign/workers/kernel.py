"""The function that each worker runs: place the groups of Arrow batches, one row each."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from assignor import GroupState
from assignor.placement import Strategy, run_with_trace, strategy_name, strategy_of
from assignor.problems import measures_of
from spark_assign.tables import POSITION, Answer, Position, Reject, batch_of, guarded, states_of

# Rows of a result batch; with small groups it stays at some megabytes.
ROWS = 64
# Objects made before the garbage collector looks for cycles; a group makes thousands, and no cycle.
_GARBAGE = 50_000
Batches = Iterable[pa.RecordBatch]
Kernel = Callable[[Batches], Iterator[pa.RecordBatch]]
Read = Callable[[pa.RecordBatch], Iterator[tuple[str, GroupState | Reject]]]
ReadSome = Callable[[pa.RecordBatch], Iterator[tuple[str, GroupState | Reject | None]]]
"""As `Read`; None for a group that is not to be placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How groups are placed.

    Attributes:
        strategy: a name, MODULE:CALLABLE that every worker can import, or a function.
        settings: Kafka-style settings; override those of the groups.
        stop_at_reject: after the first reject, a worker only checks the other groups and places
            none, because the job fails anyway.
    """

    strategy: Strategy | str = "high_availability"
    settings: tuple[tuple[str, object], ...] = ()
    stop_at_reject: bool = True


def placing(
    options: Options,
    read: ReadSome,
    *,
    keep: Sequence[str] = (),
    note: Callable[[Sequence[Answer]], None] | None = None,
) -> Kernel:
    """The function for `mapInArrow`: groups in, batches in the schema `results.ANSWER` out.

    Any error while a group is read, placed or encoded is a reject of this group.

    Args:
        options: how groups are placed.
        read: reads the groups of a batch.
        keep: columns of the groups that precede those of `ANSWER`.
        note: called with the answers of each batch.
    """

    def place(batches: Batches) -> Iterator[pa.RecordBatch]:
        strategy, label = strategy_of(options.strategy), strategy_name(options.strategy)
        # Excludes loaded modules from garbage collection, which runs often here.
        gc.freeze()
        gc.set_threshold(_GARBAGE, *gc.get_threshold()[1:])
        is_bad = False
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                answers, rows = [], []
                read_rows = zip(read(part), _positions(part), strict=True)
                for row, ((name, state), position) in enumerate(read_rows):
                    if isinstance(state, Reject):
                        is_bad |= options.stop_at_reject
                    elif is_bad or state is None:
                        continue
                    answer = _answer(name, state, strategy, label)
                    is_bad |= options.stop_at_reject and answer.reject is not None
                    answers.append(replace(answer, position=position))
                    rows.append(row)
                if note is not None:
                    note(answers)
                yield _with_kept(part.select(keep).take(pa.array(rows, pa.int64())), answers)

    return place


def _with_kept(kept: pa.RecordBatch, answers: list[Answer]) -> pa.RecordBatch:
    """The columns to keep of some groups, and their answers."""
    answered = batch_of(answers)
    columns = [*kept.columns, *answered.columns]
    return pa.RecordBatch.from_arrays(columns, schema=_joined(kept.schema, answered.schema))


def _joined(*schemas: pa.Schema) -> pa.Schema:
    return pa.schema([field for schema in schemas for field in schema])


def _positions(batch: pa.RecordBatch) -> list[Position | None]:
    """Where each row was read; None where that is not known."""
    if POSITION not in batch.schema.names:
        return [None] * batch.num_rows
    positions = batch.column(POSITION).to_pylist()
    return [None if position is None else Position(**position) for position in positions]


def table_reader(options: Options) -> Read:
    """A reader of batches in the schema `schemas.GROUP`."""
    settings = options.settings

    def read(batch: pa.RecordBatch) -> Iterator[tuple[str, GroupState | Reject]]:
        return states_of(batch, settings=settings)

    return read


def _answer(name: str, state: GroupState | Reject, strategy: Strategy, label: str) -> Answer:
    """Place a group, or pass its reject on."""
    if isinstance(state, Reject):
        return Answer(name=name, assignor=label, reject=state)
    started = time.perf_counter()
    placed = guarded(name, lambda: run_with_trace(state, strategy))
    if isinstance(placed, Reject):
        return Answer(name=name, assignor=label, reject=placed)
    millis = (time.perf_counter() - started) * 1000
    return Answer(
        name=name,
        assignor=label,
        millis=millis,
        state=state,
        assignment=placed[0],
        measures=measures_of(state, *placed),
    )
