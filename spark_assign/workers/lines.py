"""Read lines of text, one problem each; note what the driver must know of all lines."""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam, SparkContext

from assignor import GroupState, read_problem
from assignor.problems import parse_problem
from spark_assign.tables import Reject, guarded, printable_name
from spark_assign.workers.kernel import Options, Read, ReadSome
from spark_assign.workers.problem_columns import quick_state

_SHOWN = 80
_BYTES = 4  # of a character in UTF-8, at most
_NO_TEXT = "the name has half a surrogate pair, which UTF-8 cannot encode; give a valid text"
_HASH_BYTES = 8
_LINE_NUMBER = re.compile(r"^line 1(?:, |: | )")
Numbers = Any  # array("q"); the class takes no type argument when the program runs


class _Joined(AccumulatorParam[Numbers]):
    """Numbers from all workers, one behind the other."""

    def zero(self, value: Numbers) -> Numbers:  # noqa: ARG002 signature of Spark
        return array("q")

    def addInPlace(self, value1: Numbers, value2: Numbers) -> Numbers:  # noqa: N802 name of Spark
        value1.extend(value2)
        return value1


class _Together(AccumulatorParam[set[str]]):
    """Texts from all workers, each once."""

    def zero(self, value: set[str]) -> set[str]:  # noqa: ARG002 signature of Spark
        return set()

    def addInPlace(self, value1: set[str], value2: set[str]) -> set[str]:  # noqa: N802 as above
        value1 |= value2
        return value1


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What workers note of lines, known to the driver once a job has read them all.

    Spark counts each line once, also if a task runs twice.

    Attributes:
        names: a hash of the name of each group that has one; 8 bytes a group.
        huge: SHA-256 of the line of each huge group, in hexadecimal; these are not placed.
        huge_tasks: groups of more tasks are huge.
    """

    names: Accumulator[Numbers]
    huge: Accumulator[set[str]]
    huge_tasks: int

    @classmethod
    def of(cls, context: SparkContext, *, huge_tasks: int) -> "Notes":
        """Notes that are empty."""
        return cls(
            names=context.accumulator(array("q"), _Joined()),
            huge=context.accumulator(set(), _Together()),
            huge_tasks=huge_tasks,
        )

    def may_repeat(self, names: Iterable[str] = ()) -> bool:
        """Whether two groups may have the same name: their hashes are equal.

        Args:
            names: of groups that workers did not read.
        """
        hashes = np.sort(np.array([*self.names.value, *map(_hash, names)], dtype=np.int64))
        return bool((hashes[1:] == hashes[:-1]).any())


def problem_reader(options: Options) -> Read:
    """A reader of batches with a text column `value`, one problem in each row."""
    settings = dict(options.settings)

    def read(batch: pa.RecordBatch) -> Iterator[tuple[str, GroupState | Reject]]:
        for line in _lines(batch):
            name, state, _ = _read_line(line, settings)
            yield name, state

    return read


def noting_reader(options: Options, notes: Notes) -> ReadSome:
    """As `problem_reader`; notes all names, and leaves out blank lines and valid huge groups."""
    settings = dict(options.settings)

    def read(batch: pa.RecordBatch) -> Iterator[tuple[str, GroupState | Reject | None]]:
        names = array("q")
        for line in _lines(batch):
            if not line.strip():
                yield "", None
                continue
            name, state, key = _read_line(line, settings)
            if key is not None:
                names.append(_hash(key))
            if isinstance(state, Reject) or len(state.tasks) <= notes.huge_tasks:
                yield name, state
            else:
                notes.huge.add({sha256(line).hexdigest()})
                yield name, None
        notes.names.add(names)

    return read


def _lines(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The lines of a batch."""
    for line in batch.column("value").cast(pa.binary()).to_pylist():
        yield line or b""


def _read_line(
    line: bytes, settings: Mapping[str, object]
) -> tuple[str, GroupState | Reject, str | None]:
    """Name and state of the group of a line, and the text that must not be the name of another."""
    head = line[: _BYTES * (_SHOWN + 1)].decode("utf-8", errors="replace").rstrip("\r")
    value = head if len(head) <= _SHOWN else f"{head[:_SHOWN]}..."
    data = guarded("", lambda: parse_problem(line), column="value", value=value)
    if isinstance(data, Reject):
        return "", _unnumbered(data), None
    given = data.get("name")
    name = given if isinstance(given, str) else ""
    if printable_name(name) != name:
        shown_name = printable_name(name)
        return name, Reject(name=name, column="name", value=shown_name, reason=_NO_TEXT), None
    state = guarded(
        name,
        lambda: quick_state(data, settings) or read_problem(data, settings=settings).state,
        column="" if name else "value",
        value=value,
    )
    return name, state, given if isinstance(given, str) else None


def _hash(key: str) -> int:
    """A hash that is the same in every worker."""
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "little", signed=True)


def _unnumbered(reject: Reject) -> Reject:
    """The reject without the line number, which counts from 1 for every line here (`places`)."""
    return replace(reject, reason=_LINE_NUMBER.sub("", reject.reason))
