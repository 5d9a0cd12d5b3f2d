"""What a worker does with a batch of groups: the core, once a row, Arrow in and Arrow out."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from assignor import GroupState, Strategy, named_strategy, read_problem, run_strategy
from assignor.problems import parse_problem
from spark_assign.tables import PLACE, Answer, Reject, batch_of, guarded, states_of

# Rows of a batch: many small groups at once, while results of a batch stay some megabytes.
ROWS = 64
_SHOWN = 80
Batches = Iterable[pa.RecordBatch]
Kernel = Callable[[Batches], Iterator[pa.RecordBatch]]
Read = Callable[[pa.RecordBatch], Iterator[tuple[str, GroupState | Reject]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How groups are placed.

    Attributes:
        strategy: a name, or MODULE:CALLABLE that every worker can import.
        settings: Kafka-style settings that win over the groups' own.
        stop_at_reject: after the first group that makes no sense, a worker checks the rest and
            places nothing more: the job fails anyway.
    """

    strategy: str = "high_availability"
    settings: tuple[tuple[str, object], ...] = ()
    stop_at_reject: bool = True


def placing(options: Options, read: Read, *, only_rejects: bool = False) -> Kernel:
    """The function for `mapInArrow`: groups in, `results.RESULT_ARROW` out.

    A group that cannot be read, placed or encoded is a reject, whatever went wrong with it.

    Args:
        options: how groups are placed.
        read: the reader of the rows.
        only_rejects: groups that can be read are left out.
    """

    def place(batches: Batches) -> Iterator[pa.RecordBatch]:
        strategy = named_strategy(options.strategy)
        # Groups come and go by their hundreds; what a worker has loaded need not be looked through.
        gc.freeze()
        is_bad = False
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                answers = []
                for row, (name, state) in enumerate(read(batch.slice(start, ROWS)), start):
                    if isinstance(state, Reject):
                        is_bad |= options.stop_at_reject
                    elif is_bad or only_rejects:
                        continue
                    one = _answer(name, state, strategy, options.strategy)
                    is_bad |= options.stop_at_reject and one.reject is not None
                    answers.append(replace(one, place=_place(batch, row)))
                yield batch_of(answers)

    return place


def _place(batch: pa.RecordBatch, row: int) -> Mapping[str, str | int | None]:
    """Where a row stands, as it was read; nothing where that is not known."""
    if PLACE not in batch.schema.names:
        return {}
    place: Mapping[str, str | int | None] = batch.column(PLACE)[row].as_py() or {}
    return place


def table_reader(options: Options) -> Read:
    """Groups of a batch in the schema `schemas.GROUP`."""
    settings = options.settings

    def read(batch: pa.RecordBatch) -> Iterator[tuple[str, GroupState | Reject]]:
        return states_of(batch, settings=settings)

    return read


def problem_reader(options: Options) -> Read:
    """Groups of a batch with a text column `value`, a problem a row, as `assignor assign` reads."""
    settings = dict(options.settings)

    def read(batch: pa.RecordBatch) -> Iterator[tuple[str, GroupState | Reject]]:
        # Bytes that are no UTF-8 are the line's own fault, and must not stop the others.
        for line in batch.column("value").cast(pa.binary()).to_pylist():
            yield _read_line((line or b"").decode("utf-8", errors="replace"), settings)

    return read


def _read_line(text: str, settings: Mapping[str, object]) -> tuple[str, GroupState | Reject]:
    """The group of a line."""
    value = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    data = guarded("", lambda: parse_problem(text), column="value", value=value)
    if isinstance(data, Reject):
        return "", _unnumbered(data)
    name = data["name"] if isinstance(data.get("name"), str) else ""
    column = "" if name else "value"
    return name, guarded(
        name,
        lambda: read_problem(data, settings=settings).state,
        column=column,
        value=value,
    )


def _unnumbered(reject: Reject) -> Reject:
    """A worker has no line numbers: a file is read in pieces (`places`)."""
    return replace(reject, reason=reject.reason.removeprefix("line 1, ").removeprefix("line 1 "))


def _answer(name: str, state: GroupState | Reject, strategy: Strategy, label: str) -> Answer:
    """The answer to a group, or its reject."""
    if isinstance(state, Reject):
        return Answer(name=name, assignor=label, reject=state)
    started = time.perf_counter()
    assignment = guarded(name, lambda: run_strategy(state, strategy))
    if isinstance(assignment, Reject):
        return Answer(name=name, assignor=label, reject=assignment)
    millis = (time.perf_counter() - started) * 1000
    return Answer(name=name, assignor=label, millis=millis, state=state, assignment=assignment)
