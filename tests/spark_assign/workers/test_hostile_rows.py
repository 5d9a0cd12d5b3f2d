"""A row with any value in any field is placed or rejected, and affects no other group."""

import json
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_assign.tables import RESULT
from spark_assign.tables.convert import GROUP_ARROW
from spark_assign.workers import Options, placing, problem_reader, table_reader
from tests.spark_assign.workers.any_values import FLOATS, WORDS, anything, changed, paths

STRATEGIES = ("high_availability", "sticky", "kafka_high_availability")
PROBLEM = {
    "name": "middle",
    "config": {
        "num.standby.replicas": 1,
        "max.warmup.replicas": 2,
        "acceptable.recovery.lag": 10,
        "probing_rebalance_interval_ms": 60_000,
        "rack.aware.assignment.strategy": "min_traffic",
        "rack.aware.assignment.traffic_cost": 10,
        "rack.aware.assignment.non_overlap_cost": 1,
        "rack.aware.assignment.tags": ["zone"],
    },
    "topics": {"t": {"partitions": 3, "racks": {"0": ["r"], "1": ["r", "s"]}}},
    "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}, "1": {"sources": ["t"]}},
    "end_offset_sums": {"0_0": 500, "0_1": 90},
    "weights": {"0_0": 2.5},
    "clients": {
        "a": {
            "threads": 2,
            "rack": "r",
            "tags": {"zone": "x"},
            "active": ["0_0", "0_1"],
            "standby": ["0_2"],
            "lags": {"0_0": "running", "0_2": 7},
        },
        "b": {"rack": "s", "tags": {"zone": "y"}},
    },
    "events": [{"type": "bounce", "clients": ["a"], "lag": 5}],
    "stuck": {"b": 3},
}
ROW = {
    "name": "middle",
    "config": [("num.standby.replicas", "1"), ("rack.aware.assignment.strategy", "min_traffic")],
    "tasks": [
        {
            "subtopology": 0,
            "partition": number,
            "stateful": number != 2,
            "owner": "a",
            "copies": [{"client": "b", "lag": 7, "stalled": False}] * (number != 2),
            "end_offset_sum": 90,
            "weight": 1.5,
            "partition_racks": [["r"]],
            "changelog_racks": [["s"]],
        }
        for number in range(3)
    ],
    "clients": [
        {"client": "a", "threads": 2, "rack": "r", "tags": [("zone", "x")]},
        {"client": "b", "threads": 1, "rack": "s", "tags": [("zone", "y")]},
    ],
}


@st.composite
def problems(draw):
    problem = PROBLEM
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(paths(problem), key=repr)))
        problem = changed(problem, path, draw(anything))
    text = json.dumps(problem).encode()
    return draw(st.just(text) | st.just(text[: len(text) // 2]) | st.binary(max_size=9))


def placed(batch, read, options):
    out = pa.Table.from_batches(list(placing(options, read(options))([batch])))
    return [
        {name: row[name] for name in (*RESULT.names, "reject") if name != "millis"}
        for row in out.to_pylist()
    ]


def check(batch, alone, read, strategy):
    """Three groups, the second invalid: the others have the same answers as without it."""
    options = Options(strategy=strategy, stop_at_reject=False)
    first, middle, last = placed(batch, read, options)
    assert [first, last] == alone(strategy)
    if middle["reject"] is None:
        assert middle["clients"]
        return
    reject = middle["reject"]
    assert reject["reason"]
    assert reject["reason"].isprintable()
    assert len(reject["reason"]) < 1_100
    assert middle["clients"] is None or not middle["clients"]


def lines(*texts):
    column = pa.array([text.replace(b"\n", b" ") for text in texts], pa.binary())
    return pa.RecordBatch.from_arrays([column.view(pa.string())], names=["value"])


def line(name):
    return json.dumps(PROBLEM | {"name": name}).encode()


@cache
def lines_alone(strategy):
    options = Options(strategy=strategy)
    return placed(lines(line("first"), line("last")), problem_reader, options)


@example(text=b'{"name": "\\ud800", "clients": {"a": {}}}', strategy="sticky")
@example(text=json.dumps(PROBLEM | {"subtopologies": None}).encode(), strategy="sticky")
@given(text=problems(), strategy=st.sampled_from(STRATEGIES))
def test_any_value_in_any_field_of_a_problem(text, strategy):
    batch = lines(line("first"), text, line("last"))
    check(batch, lines_alone, problem_reader, strategy)


WHOLE = {"int32": 2**31, "int64": 2**63}
TEXTS = st.sampled_from([word for word in WORDS if word != "\ud800"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=4
)


def values(kind):
    """Any value of an Arrow type."""
    if pa.types.is_list(kind):
        return st.none() | st.lists(values(kind.value_type), max_size=2)
    if pa.types.is_map(kind):
        pairs = st.tuples(TEXTS, st.none() | TEXTS)
        return st.none() | st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    if pa.types.is_struct(kind):
        fields = {field.name: values(field.type) for field in kind}
        return st.none() | st.fixed_dictionaries(fields)
    if pa.types.is_integer(kind):
        most = WHOLE[str(kind)] - 1
        edges = (-most - 1, -2, -1, 0, 1, 2, 3, most - 1, most)
        return st.none() | st.sampled_from(edges)
    if pa.types.is_floating(kind):
        return st.none() | st.sampled_from(FLOATS)
    if pa.types.is_boolean(kind):
        return st.none() | st.booleans()
    return st.none() | TEXTS


def fields_of(kind, value, at=()):
    """Paths to all values of a row, with their Arrow types."""
    if at:
        yield at, kind
    if pa.types.is_list(kind):
        for number, element in enumerate(value or ()):
            yield from fields_of(kind.value_type, element, (*at, number))
    elif pa.types.is_struct(kind) and value is not None:
        for field in kind:
            yield from fields_of(field.type, value[field.name], (*at, field.name))


@st.composite
def rows(draw):
    row = ROW
    for _ in range(draw(st.integers(1, 3))):
        path, kind = draw(st.sampled_from(list(fields_of(pa.struct(GROUP_ARROW), row))))
        row = changed(row, path, draw(values(kind)))
    return row


def table(*given):
    return pa.RecordBatch.from_pylist(list(given), schema=GROUP_ARROW)


@cache
def rows_alone(strategy):
    groups = table(ROW | {"name": "first"}, ROW | {"name": "last"})
    return placed(groups, table_reader, Options(strategy=strategy))


@given(row=rows(), strategy=st.sampled_from(STRATEGIES))
def test_any_value_in_any_field_of_a_table(row, strategy):
    batch = table(ROW | {"name": "first"}, row, ROW | {"name": "last"})
    check(batch, rows_alone, table_reader, strategy)


@pytest.mark.parametrize("column", ["client", "rack"])
def test_bytes_that_are_not_text_in_a_nested_column(column):
    given = [ROW | {"name": name} for name in ("first", "middle", "last")]
    clients = [dict(client, **{column: "XYZ"}) for client in ROW["clients"][1:]]
    tasks = [task | {"owner": None, "copies": []} for task in ROW["tasks"]]
    batch = table(given[0], given[1] | {"clients": clients, "tasks": tasks}, given[2])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw = sink.getvalue().to_pybytes()
    assert raw.count(b"XYZ") == 1
    [broken] = pa.ipc.open_stream(
        raw.replace(b"XYZ", b"X\xffZ")
    ).iter_batches_with_custom_metadata()
    check(broken.batch, rows_alone, table_reader, "sticky")
