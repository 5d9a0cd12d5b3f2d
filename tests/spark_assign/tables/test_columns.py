"""Group states from rows are those of the problem reader; invalid rows are rejects."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from assignor import read_problem
from assignor.problems import parse_problem
from spark_assign.tables.convert import GROUP_ARROW, group_batch
from spark_assign.tables.rejects import Reject
from spark_assign.tables.states import states_of

SAMPLE = Path(__file__).parents[2] / "assignor" / "problems" / "open_sample.jsonl.gz"
FIELDS = [
    *("tasks", "stateful", "subtopology", "clients", "threads", "owner", "weights", "config"),
    *("copy_start", "copy_client", "copy_lag", "copy_stalled", "end_offset_sums"),
    *("racks", "tags", "partition_racks", "changelog_racks"),
]


def problems():
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as lines:
        return [read_problem(parse_problem(line)) for line in lines]


def differences(left, right):
    return [n for n in FIELDS if not same(getattr(left, n), getattr(right, n))]


def same(left, right):
    if isinstance(left, np.ndarray):
        return isinstance(right, np.ndarray) and np.array_equal(left, right)
    return left == right


def test_group_states_are_those_of_the_problem_reader():
    given = problems()
    batch = group_batch([(problem.name, problem.state) for problem in given])
    read = list(states_of(batch))
    assert [name for name, _ in read] == [problem.name for problem in given]
    for problem, (_, state) in zip(given, read, strict=True):
        assert differences(problem.state, state) == [], problem.name


def test_slices_of_a_batch_are_read_from_their_own_rows():
    given = problems()[:4]
    batch = group_batch([(problem.name, problem.state) for problem in given])
    [(name, state)] = states_of(batch.slice(2, 1))
    assert name == given[2].name
    assert differences(given[2].state, state) == []


def test_rows_in_any_order_give_the_same_state():
    given = group_batch([(p.name, p.state) for p in problems()[:1]]).to_pylist()[0]
    turned = given | {"tasks": given["tasks"][::-1], "clients": given["clients"][::-1]}
    for task in turned["tasks"]:
        task["copies"] = task["copies"][::-1]
    [(_, state)] = states_of(pa.RecordBatch.from_pylist([given], schema=GROUP_ARROW))
    [(_, reversed_state)] = states_of(pa.RecordBatch.from_pylist([turned], schema=GROUP_ARROW))
    assert differences(state, reversed_state) == []


def test_settings_override_those_of_the_rows():
    batch = group_batch([(p.name, p.state) for p in problems()[:1]])
    [(_, state)] = states_of(batch, settings=(("num.standby.replicas", 0),))
    assert state.config.num_standby_replicas == 0


def row(**changes):
    task = {"subtopology": 0, "partition": 0, "stateful": True, "owner": "a", "copies": []}
    return {
        "name": "orders",
        "config": [],
        "tasks": [task | {"copies": [{"client": "a", "lag": -1}]}, task | {"partition": 1}],
        "clients": [{"client": "a"}, {"client": "b"}],
    } | changes


def task(**changes):
    return row(tasks=[row()["tasks"][0] | changes])


INVALID = {
    "a name that is missing": (row(name=None), "name", "null"),
    "no clients": (row(clients=[]), "clients", "null"),
    "two copies and no clients": (
        task(owner=None, copies=[{"client": "a"}, {"client": "b"}]) | {"clients": []},
        "clients",
        "null",
    ),
    "clients that are null": (row(clients=None), "clients", "null"),
    "a null client": (row(clients=[{"client": "a"}, None]), "clients", "null"),
    "a client without an id": (row(clients=[{"client": "a"}, {}]), "clients.client", "null"),
    "a client twice": (row(clients=[{"client": "a"}] * 2), "clients.client", "a"),
    "negative threads": (row(clients=[{"client": "a", "threads": -1}]), "clients.threads", "-1"),
    "tasks that are null": (row(tasks=None), "tasks", "null"),
    "a weight above the maximum": (task(weight=1e300), "tasks.weight", "1e+300"),
    "replicas beyond an int": (
        row(config=[("num.standby.replicas", str(10**30))]),
        "config",
        "{'num.standby.replicas': '1000000000000000000000000000000'}",
    ),
    "a null task": (row(tasks=[None]), "tasks", "null"),
    "a task without a partition": (task(partition=None), "tasks.partition", "null"),
    "a task without a subtopology": (task(subtopology=None), "tasks.subtopology", "null"),
    "a negative partition": (task(partition=-1), "tasks.partition", "-1"),
    "a task without stateful": (task(stateful=None), "tasks.stateful", "null"),
    "a task twice": (row(tasks=[row()["tasks"][1]] * 2), "tasks", "0_1"),
    "an unknown owner": (task(owner="ghost"), "tasks.owner", "ghost"),
    "an unknown copy": (task(copies=[{"client": "z"}]), "tasks.copies.client", "z"),
    "a copy without a client": (task(copies=[{"lag": 1}]), "tasks.copies.client", "null"),
    "a copy twice": (task(copies=[{"client": "a"}] * 2), "tasks.copies.client", "a"),
    "a negative lag": (task(copies=[{"client": "a", "lag": -2}]), "tasks.copies.lag", "-2"),
    "a copy that runs beside the owner": (
        task(copies=[{"client": "a", "lag": -1}, {"client": "b", "lag": -1}]),
        "tasks.copies.lag",
        "-1 of b",
    ),
    "a copy that runs in place of the owner": (
        task(copies=[{"client": "b", "lag": -1}]),
        "tasks.copies.lag",
        "-1 of b",
    ),
    "two copies that run": (
        task(owner=None, copies=[{"client": "a", "lag": -1}, {"client": "b", "lag": -1}]),
        "tasks.copies.lag",
        "-1 of a",
    ),
    "an empty name": (row(name=""), "name", "an empty text"),
    "an end that means unknown": (
        task(end_offset_sum=2**63 - 1),
        "tasks.end_offset_sum",
        "9223372036854775807",
    ),
    "a negative end": (task(end_offset_sum=-1), "tasks.end_offset_sum", "-1"),
    "a weight of 0": (task(weight=0.0), "tasks.weight", "0.0"),
    "an unknown setting": (row(config=[("num.standby", "1")]), "config", "{'num.standby': '1'}"),
}


@pytest.mark.parametrize("what", INVALID)
def test_an_invalid_row_affects_its_own_group_only(what):
    invalid, column, value = INVALID[what]
    rows = [row(name="before"), invalid, row(name="after")]
    before, wrong, after = states_of(pa.RecordBatch.from_pylist(rows, schema=GROUP_ARROW))
    assert before[1].clients == after[1].clients == ("a", "b")
    assert isinstance(wrong[1], Reject)
    assert (wrong[1].column, wrong[1].value) == (column, value)
    assert wrong[1].reason


@pytest.mark.parametrize(
    "what",
    ["no clients", "two copies and no clients", "clients that are null", "tasks that are null"],
)
def test_a_batch_of_such_groups_only_is_rejected_with_the_same_reason(what):
    invalid, column, value = INVALID[what]
    batch = pa.RecordBatch.from_pylist([invalid, invalid], schema=GROUP_ARROW)
    for name, wrong in states_of(batch):
        assert (name, wrong.column, wrong.value) == ("orders", column, value)
        assert not wrong.reason.endswith("report it with the group")


def test_bytes_that_are_not_text_affect_their_own_group_only():
    rows = [row(name=name) for name in ("one", "two", "three")]
    batch = pa.RecordBatch.from_pylist(rows, schema=GROUP_ARROW)
    names = pa.array([b"one", b"t\xffo", b"three"], pa.binary()).view(pa.string())
    broken = batch.set_column(0, GROUP_ARROW.field("name"), names)
    first, second, third = states_of(broken)
    assert first[1].clients == third[1].clients == ("a", "b")
    assert second[0] == "t\ufffdo"
    assert "UnicodeDecodeError" in second[1].reason


def test_a_group_without_tasks_is_a_group():
    [(_, state)] = states_of(pa.RecordBatch.from_pylist([row(tasks=[])], schema=GROUP_ARROW))
    assert state.tasks == ()


def test_unknown_lags_are_null_and_copies_not_listed_do_not_exist():
    given = task(copies=[{"client": "b"}], end_offset_sum=None)
    [(_, state)] = states_of(pa.RecordBatch.from_pylist([given], schema=GROUP_ARROW))
    assert state.copies(0) == [(1, 2**63 - 1)]
    assert state.end_offset_sums.tolist() == [2**63 - 1]


def test_lag_above_the_end_is_warned_of():
    given = task(copies=[{"client": "a", "lag": 9}], end_offset_sum=5)
    [(_, state)] = states_of(pa.RecordBatch.from_pylist([given], schema=GROUP_ARROW))
    assert state.warnings == (
        "1 lags are above the end offset sum, the first on a; its state may be corrupted",
    )
