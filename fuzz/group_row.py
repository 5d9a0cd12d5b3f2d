"""Promises for any input line of a Spark job: its group is placed, or the line is rejected.

The line stands between two valid ones and must not change their answers. No line raises an error; a
reject has a reason on one printable line.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa

from fuzz.promises import expect
from spark_assign.workers import Options, placing, problem_reader

_OPTIONS = Options(strategy="sticky", stop_at_reject=False)
_REASON_MAX = 1_100
_PARTITIONS_MAX = 200  # a few digits can demand a group of many tasks
_GOOD: dict[str, Any] = {
    "config": {"num.standby.replicas": 1},
    "topics": {"t": {"partitions": 3, "racks": {"0": ["r"]}}},
    "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
    "end_offset_sums": {"0_0": 9},
    "weights": {"0_0": 2.5},
    "clients": {
        "a": {"active": ["0_0"], "lags": {"0_0": "running", "0_1": 7}, "tags": {"zone": "x"}},
        "b": {"threads": 2, "rack": "r"},
    },
    "events": [{"type": "leave", "clients": ["a"]}],
    "stuck": {"b": 3},
}
_CHANGES: dict[str, dict[str, Any]] = {
    "good": {},
    "no clients": {"clients": {}},
    "replicas": {"config": {"num.standby.replicas": 10**30}},
    "half a surrogate pair": {"clients": {"\ud800": {}}},
    "an infinite weight": {"weights": {"0_0": 1e999}},
    "events": {"events": [{"type": "leave", "clients": [[[1]]]}]},
    "null": {"subtopologies": None},
}


def seeds() -> Iterator[tuple[str, bytes]]:
    """Names and lines of the seeds."""
    for name, changes in _CHANGES.items():
        yield name, _line("x", **changes)


def group_row(data: bytes) -> None:
    """Place three groups, the second of which is the input."""
    line = data.replace(b"\n", b" ")
    if _tasks_of(line) > _PARTITIONS_MAX:
        return
    first, middle, last = _placed(_line("first"), line, _line("last"))
    expect([first, last] == _alone(), "a line does not change the answers to others")
    if middle["reject"] is None:
        expect(bool(middle["clients"]), "a group that is placed has clients")
        return
    reason = middle["reject"]["reason"]
    expect(0 < len(reason) <= _REASON_MAX, "a reject has a reason of bounded length")
    expect(reason.isprintable(), "a reason is one printable line")


def _line(name: str, **changes: object) -> bytes:
    return json.dumps(_GOOD | {"name": name} | changes).encode()


def _placed(*lines: bytes) -> list[dict[str, Any]]:
    column = pa.array(lines, pa.binary()).view(pa.string())
    batch = pa.RecordBatch.from_arrays([column], names=["value"])
    answers = pa.Table.from_batches(list(placing(_OPTIONS, problem_reader(_OPTIONS))([batch])))
    return [row | {"millis": None} for row in answers.to_pylist()]


@cache
def _alone() -> list[dict[str, Any]]:
    return _placed(_line("first"), _line("last"))


def _tasks_of(line: bytes) -> int:
    """Upper bound of the number of tasks in the line; 0 if it cannot be read."""
    try:
        data = json.loads(line.decode("utf-8", errors="replace"))
        counts = [topic["partitions"] for topic in data["topics"].values()]
        return max(map(int, counts), default=0) * len(data["subtopologies"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return 0
