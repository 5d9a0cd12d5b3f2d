"""Rejects of a batch: typed columns beside the results, which are written once."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assignor import read_problem
from assignor.cli import make_problem
from spark_assign.batch import Output, run_batch
from spark_assign.tables import REJECT, Position, Reject, read_groups, staged
from spark_assign.tables.convert import GROUP_ARROW, group_batch
from spark_assign.workers import Options

GROUPS = 20
LIMIT_MS = 300_000


def write_groups(path, unknown_owners):
    """Write groups as Parquet; in the first few the owner of a task is not a client."""
    states = [
        (f"group-{seed:02}", read_problem(make_problem(clients=3, tasks=6, seed=seed)).state)
        for seed in range(GROUPS)
    ]
    rows = group_batch(states).to_pylist()
    for row in rows[:unknown_owners]:
        row["tasks"][0]["owner"] = "ghost"
    pq.write_table(pa.Table.from_pylist(rows, schema=GROUP_ARROW), path)


def records_written(spark):
    """Rows that each stage of the session has written to files; stage number -> rows."""
    context, gateway = spark.sparkContext._jsc.sc(), spark.sparkContext._gateway
    context.listenerBus().waitUntilEmpty(LIMIT_MS)
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    statuses = gateway.jvm.java.util.ArrayList()
    stages = context.statusStore().stageList(None, *[False] * 2, quantiles, statuses)
    found = [stages.apply(number) for number in range(stages.size())]
    return {stage.stageId(): stage.outputRecords() for stage in found}


@pytest.mark.nightly("3 s of Spark each; every run has a reject", but=("1-parquet",))
@pytest.mark.parametrize(("rejects", "form"), [(1, "parquet"), (1, "json"), (GROUPS, "parquet")])
def test_a_reject_does_not_cause_the_results_to_be_written_again(spark, tmp_path, rejects, form):
    write_groups(tmp_path / "groups.parquet", rejects)
    groups = read_groups(spark, f"{tmp_path}/groups.parquet")
    before = records_written(spark)
    with staged(spark, f"{tmp_path}/plans") as stage:
        options, output = Options(stop_at_reject=False), Output(form=form)
        summary = run_batch(groups, stage, options, output=output)
    assert (summary.groups, summary.rejects) == (GROUPS, rejects)
    written = [rows for stage, rows in records_written(spark).items() if stage not in before]
    # Each group once, and each reject again in the table of rejects, with its place.
    assert sum(written) == GROUPS + rejects
    results = spark.read.format(form).load(f"{tmp_path}/plans")
    assert results.count() == GROUPS - rejects
    names = {path.name for path in (tmp_path / "plans").iterdir() if path.name[0] == "_"}
    assert names == {"_SUCCESS", "_rejects", "_summary.json"}


def test_the_table_of_rejects_has_the_documented_columns(spark, tmp_path):
    path = tmp_path / "groups.parquet"
    write_groups(path, 1)
    with staged(spark, f"{tmp_path}/plans") as stage:
        options, output = Options(stop_at_reject=False), Output(form="json")
        summary = run_batch(read_groups(spark, str(path)), stage, options, output=output)
    [file] = (tmp_path / "plans" / "_rejects").glob("part-*")
    reject = {
        "name": "group-00",
        "column": "tasks.owner",
        "value": "ghost",
        "reason": "the group has no such client; add it, or leave owner null",
        "place": f"{path}, row 1",
    }
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == [reject]
    assert summary.first_rejects == (str(Reject(**reject)),)


def test_the_schema_of_a_reject_is_that_of_its_fields(spark):
    position = Position(file="a.jsonl", block=0, number=3)
    reject = Reject(name="a\ud800", value="x\ny", reason="is wrong", position=position)
    [row] = spark.createDataFrame([reject.row()], REJECT).collect()
    found = row.asDict() | {"position": Position(**row.position.asDict())}
    assert Reject(**found) == Reject(
        name="a\\ud800", value="x\\ny", reason="is wrong", position=position
    )
