"""Hypothesis strategies for native blobs and trailers, generated from the native schema.

`native_row` draws a value for a row by its wire type. New rows of the schema are covered
automatically; a new type fails here with its name.
"""

from dataclasses import fields

from hypothesis import strategies as st

from encoding import (
    Assignment,
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    Subscription,
    TaskId,
    TaskOffsetSums,
)
from encoding.native import ReachedRow, SubtopologyRow
from encoding.native.schema import NATIVE_KINDS, native_rows_of

NATIVE_WRITTEN = (101, 102, 103)
native_versions = st.sampled_from(NATIVE_WRITTEN)

_letters = st.characters(exclude_categories=["Cs"])
_text = st.text(_letters, max_size=8)
_some_text = st.text(_letters, min_size=1, max_size=8)
_count = st.integers(0, 5) | st.integers(0, 2**31 - 1)
_int64 = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
_int32 = st.integers(-(2**31), 2**31 - 1)
_tasks = st.tuples(st.integers(0, 3), st.integers(0, 40), st.none())
_tasks |= st.tuples(_int32, _int32, st.none() | _some_text)
_tasks = _tasks.map(TaskId._make)
_sums = st.sampled_from((-2, -3, 0)) | _int64
_ranges = st.tuples(_text, st.integers(0, 2**31 - 1), st.integers(1, 2**31)).map(
    lambda row: PartitionRange(row[0], min(row[1], row[2] - 1), row[2])
)

_natural = st.integers(0, 9) | st.integers(0, 2**63 - 1)
_forms = st.binary(min_size=8, max_size=8)
_topics = st.lists(_text, max_size=3).map(tuple)
_pairs = st.lists(st.tuples(_text, _natural), max_size=2).map(tuple)
_subtopologies = st.builds(
    SubtopologyRow,
    st.lists(_natural, min_size=1, max_size=3).map(tuple),
    st.lists(_text, min_size=1, max_size=3).map(tuple),
    _topics,
    _pairs,
    _topics,
    st.lists(_topics, max_size=2).map(tuple),
    _pairs,
)

DRAWN = {
    "int32": _int32,
    "int64": _int64,
    "count": _count,
    "uint32": st.integers(0, 2**32 - 1),
    "bool": st.booleans(),
    "text": st.none() | _some_text,
    "bytes": st.none() | st.binary(max_size=40),
    "bytes8": st.just(b"") | st.binary(min_size=8, max_size=8),
    "int64_bytes": _int64,
    "uuid": st.uuids(),
    "sizes": st.lists(st.integers(0, 50), max_size=6).map(tuple),
    "numbers": st.none() | st.lists(st.integers(0, 2**14 - 1), max_size=50).map(tuple),
    "tasks": st.lists(_tasks, max_size=60).map(tuple),
    "offset_sums": st.dictionaries(_tasks, _sums, max_size=60).map(TaskOffsetSums.from_mapping),
    "texts": st.none() | _some_text,
    "texts_by_name": st.dictionaries(_text, _text, max_size=4),
    "counts_by_name": st.dictionaries(_text, _count, max_size=4),
    "ranges_by_name": st.dictionaries(_text, st.tuples(_count, _count), max_size=4),
    "partitions": st.lists(_ranges, max_size=6).map(tuple),
    "subtopology_rows": st.lists(_subtopologies, max_size=3).map(tuple),
    "reached_rows": st.dictionaries(_forms, st.tuples(_natural, _natural), max_size=3).map(
        lambda memory: tuple(ReachedRow(form, *memory[form]) for form in sorted(memory))
    ),
    "fingerprints": st.lists(_forms, max_size=4).map(tuple),
}
DRAWN |= {"task_rows": DRAWN["tasks"], "offset_rows": DRAWN["offset_sums"]}


def native_row(row):
    """A value of the row: its default, or anything that its type takes."""
    return DRAWN[row.type]


def native_rows(kind, version):
    rows = [row for row in native_rows_of(kind, version) if row.key]
    return st.fixed_dictionaries({}, optional={row.name: native_row(row) for row in rows})


def _split(kind, drawn):
    """Fields of the native value, and of the value around it."""
    extras = {"subscription": NativeSubscription, "assignment": NativeAssignment}[kind]
    names = {field.name for field in fields(extras)}
    inner = {name: value for name, value in drawn.items() if name in names}
    return inner, {name: value for name, value in drawn.items() if name not in names}


def _with_distinct_tasks(outer):
    if "active_tasks" in outer:
        tasks = set(outer["active_tasks"])
        key = lambda task: (*task[:2], task.topology_name or "")  # noqa: E731 used once
        outer["active_tasks"] = tuple(sorted(tasks, key=key))
    if "standby_tasks" in outer:
        outer["standby_tasks"] = dict.fromkeys(outer["standby_tasks"], ())
    return outer


@st.composite
def native_subscriptions(draw, version_of=native_versions):
    """Subscriptions without Kafka fields."""
    version = draw(version_of)
    inner, outer = _split("subscription", draw(native_rows("subscription", version)))
    outer.setdefault("process_id", draw(st.uuids()))
    supported = draw(st.integers(version, 2**31 - 1))
    return Subscription(
        version=version,
        latest_supported_version=supported,
        native=NativeSubscription(**inner),
        **outer,
    )


@st.composite
def native_assignments(draw, version_of=native_versions):
    """Assignments without Kafka fields."""
    version = draw(version_of)
    inner, outer = _split("assignment", draw(native_rows("assignment", version)))
    return Assignment(
        version=version,
        commonly_supported_version=draw(st.integers(version, 2**31 - 1)),
        native=NativeAssignment(**inner),
        **_with_distinct_tasks(outer),
    )


@st.composite
def native_parts(draw, kind, version_of=native_versions):
    """Native parts of trailers."""
    version = draw(version_of)
    inner, _ = _split(kind, draw(native_rows(kind, version)))
    if kind == "subscription":
        return NativeSubscription(version=version, latest_supported_version=version, **inner)
    return NativeAssignment(version=version, commonly_supported_version=version, **inner)


assert set(DRAWN) == {row.type for rows in NATIVE_KINDS.values() for row in rows}
