"""Lines are placed in one pass; the output is that of groups that are distributed first."""

import json
import re
from dataclasses import replace

import pytest

from assignor.cli import make_problem
from spark_assign.batch import run_batch
from spark_assign.tables import BadTable, read_groups, staged
from spark_assign.workers import Options

LIMIT_MS = 300_000
PROBLEMS = [
    make_problem(clients=3, tasks=6, standbys=1, seed=seed) | {"name": f"group-{seed:03}"}
    for seed in range(100)
]
INVALID = [
    b"{broken",
    b"\xff\xfe",
    json.dumps(PROBLEMS[0] | {"name": "no-clients", "clients": {}}).encode(),
    json.dumps(PROBLEMS[0] | {"name": "bad-lag", "clients": {"a": {"lags": {"0_0": -1}}}}).encode(),
    json.dumps(PROBLEMS[0] | {"name": "long-invalid", "clients": 1, "note": " " * 9_000}).encode(),
    json.dumps(PROBLEMS[0] | {"name": "half\ud800"}).encode(),
    b'{"name": "deep", "note": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"name": "twice", "clients": {"a": {}, "a": {}}}',
]
BLANK = [b"", b" \t\r"]
REPEATED = [
    json.dumps(PROBLEMS[7]).encode(),
    json.dumps({"name": "group-011"}).encode(),
    json.dumps({"name": 5}).encode(),
    json.dumps({"name": 5}).encode(),
    json.dumps(PROBLEMS[0] | {"name": "5"}).encode(),
    b'{"name": "no text \xfe"}',
    b'{"name": "no text \xff"}',
]


@pytest.fixture
def parts(spark, monkeypatch):
    """Small parts of a file for each Spark task; the settings of the session as before."""
    monkeypatch.setattr("spark_assign.workers.balance._PART_LEAST", 40_000)
    before = dict(spark.conf.getAll)
    yield
    for key in set(spark.conf.getAll) - set(before):
        spark.conf.unset(key)


def write(path, more):
    """Valid groups with others between them."""
    lines = [json.dumps(problem).encode() for problem in PROBLEMS]
    # A byte order mark, and carriage returns, which are blanks in JSON.
    lines[0] = b"\xef\xbb\xbf" + lines[0].replace(b", ", b",\r")
    for number, line in enumerate(more):
        lines.insert(20 + 9 * number, line)
    path.write_bytes(b"\n".join(lines) + b"\n")


def output(spark, groups, out):
    """Plans and rejects of a run by name and place, and its summary."""
    with staged(spark, str(out)) as stage:
        options = Options(stop_at_reject=False)
        summary = run_batch(groups, stage, options)
    plans = spark.read.parquet(str(out)).drop("millis").orderBy("name").collect()
    rejects = []
    if summary.rejects:
        rejects = spark.read.parquet(f"{out}/_rejects").orderBy("name", "place").collect()
    return plans, rejects, replace(summary, seconds=0)


def lines_read(spark):
    """Lines that each stage of the session has read from files; stage number -> lines."""
    context, gateway = spark.sparkContext._jsc.sc(), spark.sparkContext._gateway
    context.listenerBus().waitUntilEmpty(LIMIT_MS)
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    statuses = gateway.jvm.java.util.ArrayList()
    stages = context.statusStore().stageList(None, *[False] * 2, quantiles, statuses)
    found = [stages.apply(number) for number in range(stages.size())]
    return {stage.stageId(): stage.inputRecords() for stage in found}


def test_the_output_is_that_of_groups_that_are_distributed_first(spark, tmp_path, parts):
    path = tmp_path / "groups.jsonl"
    write(path, [*INVALID, *BLANK, *REPEATED])
    groups = read_groups(spark, str(path))
    found = output(spark, groups, tmp_path / "one")
    expected = output(spark, replace(groups, sizes=None), tmp_path / "two")
    assert found == expected
    plans, rejects, summary = found
    repeated = sum("the name is given twice" in reject.reason for reject in rejects)
    assert (len(plans), len(rejects), repeated) == (99, 16, 4)
    assert summary.groups == 115
    reasons = {int(reject.place.rpartition(" ")[2]): reject.reason for reject in rejects}
    assert {21, 30, 39, 48, 57, 66, 75, 84} < set(reasons)
    assert reasons[66].startswith("the name has half a surrogate pair")
    assert reasons[75] == "broken JSON, nested too deeply"
    assert sum("name is 5; give text" in reject.reason for reject in rejects) == 2
    assert sum("is not UTF-8; write it as UTF-8" in reject.reason for reject in rejects) == 3
    assert reasons[84] == "key a is given twice in one object; give it once"
    first = [int(re.search(r", line (\d+)\)", text)[1]) for text in summary.first_rejects]
    assert first == sorted(reasons)[: len(first)]


def test_lines_are_read_once(spark, tmp_path, parts):
    path = tmp_path / "groups.jsonl"
    write(path, [])
    before = lines_read(spark)
    with staged(spark, f"{tmp_path}/plans") as stage:
        summary = run_batch(read_groups(spark, str(path)), stage, Options())
    assert summary.groups == len(PROBLEMS)
    read = {stage: lines for stage, lines in lines_read(spark).items() if stage not in before}
    # The other jobs read plans, to rank them.
    assert [lines for lines in read.values() if lines >= len(PROBLEMS)] == [len(PROBLEMS)]


def test_a_repeated_name_fails_the_job_before_other_rejects(spark, tmp_path, parts):
    path = tmp_path / "groups.jsonl"
    write(path, [INVALID[0], REPEATED[0]])
    sentence = f"the name is given twice, at {path}, line 30 and {path}, line 8"
    with (
        pytest.raises(BadTable, match=sentence) as caught,
        staged(spark, f"{tmp_path}/plans") as stage,
    ):
        run_batch(read_groups(spark, str(path)), stage, Options())
    assert "broken" not in str(caught.value)
    assert not (tmp_path / "plans").exists()
