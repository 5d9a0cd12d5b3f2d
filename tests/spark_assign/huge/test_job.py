"""`spark-assign group` on Spark: plan, summary, and invalid input."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from assignor import sticky, validate
from assignor.problems import moves_of
from encoding import TaskId
from spark_assign.cli.group import group
from spark_assign.huge.job import plan_group
from spark_assign.tables.convert import client_rows, task_rows
from spark_assign.tables.errors import BadTable
from spark_assign.tables.schemas import BY_NAME, CLIENT, TASK, fitted
from tests.nightly import sample
from tests.spark_assign.huge import groups

pytestmark = pytest.mark.timeout(900)


def tables(spark, state, change=None):
    rows = task_rows(state)
    if change is not None:
        change(rows)
    clients = [{**row, "tags": dict(row["tags"])} for row in client_rows(state)]
    return (
        spark.createDataFrame(rows, TASK).coalesce(1),
        spark.createDataFrame(clients, CLIENT).coalesce(1),
    )


@pytest.fixture(scope="module")
def state():
    return groups.random_group(
        5, racks=3, strategy="min_traffic", kind="join", clients=8, size=24, standbys=1
    )


@pytest.fixture(scope="module")
def stored(spark, state, tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    tasks, clients = tables(spark, state)
    tasks.write.parquet(str(folder / "tasks"))
    clients.write.parquet(str(folder / "clients"))
    return folder


def run(*arguments):
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def test_command_writes_a_valid_plan_and_prints_its_costs(spark, state, stored, tmp_path):
    settings = ("num.standby.replicas=1", "rack.aware.assignment.strategy=min_traffic")
    given = [word for setting in settings for word in ("--config", setting)]
    out = tmp_path / "plan"
    result = run("--in", stored, "--out", out, "--strategy", "sticky", "--format", "json", *given)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert (out / "_SUCCESS").exists()
    on_disk = json.loads((out / "_summary.json").read_text(encoding="utf-8"))
    assert on_disk.items() <= summary.items()

    placed = [row.asDict() for row in spark.read.parquet(str(out)).collect()]
    assignment = as_assignment(state, placed)
    assert validate(state, assignment) == ()
    moves, core = moves_of(state, assignment), sticky(state)
    assert summary["moved"] == moves.handoffs + moves.stateless_moves
    assert (summary["restores"], summary["cold"]) == (moves.restores, moves.cold)
    assert summary["standbys"] == len(core.standbys)
    assert summary["rack_cost"] == summary["rack_bound"]
    # Spark's passes are those that the tests of the plans run without it.
    local, _ = groups.run_group(state, "sticky")
    assert assignment.active.tolist() == local.active.tolist()

    again = run("--in", stored, "--out", out, *given)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr


def as_assignment(state, rows):
    class Placed:
        @staticmethod
        def to_pylist():
            return rows

    class Decided:
        followup = False

    assert {TaskId(r["subtopology"], r["partition"]) for r in rows} == set(state.tasks)
    return groups.answer_of(state, Placed, Decided)


def null_partition(rows):
    rows[3]["partition"] = None


def unknown_owner(rows):
    rows[2]["owner"] = "client-77"


def unknown_holder(rows):
    rows[2]["copies"] = [{"client": "client-99", "lag": 3, "stalled": False}]


def bad_lag(rows):
    rows[1]["copies"] = [{"client": "client-0", "lag": -7, "stalled": False}]


def unknown_end(rows):
    rows[3]["end_offset_sum"] = 2**63 - 1


def weighed(rows):
    rows[4]["weight"] = 2.5


def twice(rows):
    rows.append(rows[6])


@pytest.mark.parametrize(
    ("change", "sentence"),
    sample(
        [
            (null_partition, "column partition of task"),
            (
                unknown_owner,
                "column owner of task 0_2 names client-77, which is not among the clients",
            ),
            (unknown_holder, "column copies of task 0_2 names client-99"),
            (bad_lag, "task 0_1 has a lag below -1"),
            (unknown_end, "task 0_3 is 2.63 - 1; leave it null"),
            (weighed, "column weight, which is 2.5, of task 0_4 is not 1"),
            (twice, "task 0_6 has 2 rows"),
        ],
        every=3,
        reason="four more jobs with an invalid row, 1 s each; every run rejects four together",
    ),
)
def test_invalid_rows_fail_the_job_and_are_named(spark, change, sentence):
    state = groups.random_group(3, kind="steady", clients=3, size=9, standbys=0)
    tasks, clients = tables(spark, state, change)
    with pytest.raises(BadTable, match=sentence):
        plan_group(tasks, clients)


def test_invalid_rows_are_rejected_and_the_others_placed(spark, tmp_path):
    state = groups.random_group(3, kind="steady", clients=3, size=9, standbys=0)

    def make_invalid(rows):
        for change in (unknown_owner, null_partition, weighed, twice):
            change(rows)

    tasks, clients = tables(spark, state, make_invalid)
    for name, frame in (("tasks", tasks), ("clients", clients)):
        frame.write.parquet(str(tmp_path / "state" / name))
    given = ("--in", tmp_path / "state", "--out", tmp_path / "plan", "--on-error", "reject")
    result = run(*given, "--strategy", "sticky", "--format", "json")
    assert result.exit_code == 1, result.stderr
    summary = json.loads(result.stdout)
    assert summary["rejects"] == 5
    assert summary["tasks"] == len(state.tasks) - 4
    placed = spark.read.parquet(str(tmp_path / "plan"))
    assert placed.where("role = 'active'").count() == len(state.tasks) - 4
    rejects = spark.read.parquet(str(tmp_path / "plan" / "_rejects")).collect()
    assert {(row.column, row.value, row.reason.split(" ")[1]) for row in rejects} == {
        ("partition", "null", "0_null"),
        ("owner", "client-77", "0_2"),
        ("weight", "2.5", "0_4"),
        ("partition", "6", "0_6"),
    }
    left = sorted(path.name for path in (tmp_path / "plan").iterdir() if path.name[0] == "_")
    assert left == ["_SUCCESS", "_rejects", "_summary.json"]
    refused = run(*given, "--store", tmp_path)
    assert refused.exit_code == 2
    assert "leaders accept complete plans only" in refused.stderr


def without_stalled(rows):
    kind = StructType([StructField("lag", IntegerType()), StructField("client", StringType())])
    fields = [StructField("copies", ArrayType(kind)) if f.name == "copies" else f for f in TASK]
    short = [
        row | {"copies": [{"lag": c["lag"], "client": c["client"]} for c in row["copies"]]}
        for row in rows
    ]
    return short, StructType(fields)


def test_lists_of_copies_are_read_as_they_are_stored_however_long(spark):
    state = groups.random_group(14, kind="mess", clients=9, size=40, standbys=1)
    assert np.diff(state.copy_start).max() > 3, "no list is longer than the columns of a worker"
    full, clients = tables(spark, state)
    stored = spark.createDataFrame(*without_stalled(task_rows(state))).coalesce(1)
    plans = [plan_group(tasks, clients, config=state.config) for tasks in (full, stored)]
    first, second = (sorted(map(tuple, plan.placements.collect())) for plan in plans)
    assert first == second
    assert len(first) > len(state.tasks)
    for plan in plans:
        assert plan.packed.storageLevel.useDisk
        plan.release()
        assert not plan.packed.storageLevel.useDisk


def test_a_stored_list_whose_fields_have_capitals_is_cast(spark):
    kind = "array<struct<client:string,lag:bigint,Stalled:boolean>>"
    plain = spark.createDataFrame([], TASK)
    stored = plain.withColumn("copies", plain["copies"].cast(kind))
    assert fitted(plain, TASK, what="the tasks", as_stored=BY_NAME).schema == TASK
    assert fitted(stored, TASK, what="the tasks", as_stored=BY_NAME).schema == TASK


@pytest.mark.parametrize(
    ("client", "sentence"),
    [("client-99", "names client-99, which is not among"), (None, "a copy without a client")],
)
def test_long_lists_of_copies_are_checked_like_short_ones(spark, client, sentence):
    state = groups.random_group(3, kind="steady", clients=3, size=9, standbys=0)

    def change(rows):
        names = ["client-0", "client-1", client, "client-2"]
        rows[5]["copies"] = [{"client": c, "lag": 3, "stalled": False} for c in names]

    tasks, clients = tables(spark, state, change)
    before = set(spark.sparkContext._jsc.getPersistentRDDs())
    with pytest.raises(BadTable, match=sentence):
        plan_group(tasks, clients)
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= before


def test_invalid_clients_fail_the_job_and_are_named(spark):
    state = groups.random_group(3, kind="fresh", clients=2, size=4)
    tasks, clients = tables(spark, state)
    with pytest.raises(BadTable, match="client-0 has two rows"):
        plan_group(tasks, clients.union(clients))
    with pytest.raises(BadTable, match="the table is empty"):
        plan_group(tasks, clients.limit(0))


def test_a_state_directory_of_several_groups_needs_a_name_that_it_has(spark, state, tmp_path):
    for part, frame in zip(("tasks", "clients"), tables(spark, state), strict=True):
        for where, names in (("several", ("a", "b")), ("alone", ("a",)), ("unnamed", (None,))):
            for name in names:
                rows = frame if name is None else frame.withColumn("name", sql.lit(name))
                rows.write.mode("append").parquet(f"{tmp_path}/{where}/{part}")

    def run(where, *name):
        words = ["--in", f"{tmp_path}/{where}", "--out", f"{tmp_path}/plan-{where}", *name]
        return CliRunner().invoke(group, [*words, "--format", "json"])

    for where, name, why in (
        ("several", (), "tasks holds several groups (a, b, ...); give one, by --name"),
        ("several", ("--name", "c"), "tasks has no group c; give the name of one that it has"),
        ("unnamed", ("--name", "a"), "tasks has no column name: it holds one group; leave out"),
    ):
        refused = run(where, *name)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert why in refused.stderr
    for where, name in (("several", ("--name", "b")), ("alone", ()), ("unnamed", ())):
        placed = run(where, *name)
        assert placed.exit_code == 0, placed.stderr
        assert json.loads(placed.stdout)["tasks"] == len(state.tasks)
