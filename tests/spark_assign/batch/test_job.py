"""`spark-assign batch`: answers as of `assignor assign`, and messages for invalid input."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assignor import read_problem
from assignor.placement import find_strategy
from assignor.problems import parse_problem, result_of
from spark_assign.tables.convert import GROUP_ARROW, group_batch

SAMPLE = Path(__file__).parents[2] / "assignor" / "problems" / "open_sample.jsonl.gz"


@pytest.fixture(scope="module")
def lines():
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as sample:
        return sample.read().splitlines()


@pytest.fixture(scope="module")
def problems(lines):
    return [read_problem(parse_problem(line)) for line in lines]


@pytest.fixture
def rows(problems):
    return group_batch([(p.name, p.state) for p in problems[:4]]).to_pylist()


@pytest.fixture
def table(tmp_path):
    """Write rows as a Parquet file in the schema of groups."""

    def write(rows, name="groups.parquet", schema=GROUP_ARROW):
        given = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(given, tmp_path / name)
        return given

    return write


def expected(problem, strategy="high_availability"):
    assignment = find_strategy(strategy)(problem.state)
    answer = result_of(problem, assignment, assignor=strategy, millis=0)
    return {key: answer[key] for key in ("name", "assignor", "probing", "clients")}


def plans(spark, path):
    rows = spark.read.parquet(str(path)).collect()
    return {
        row.name: {
            "name": row.name,
            "assignor": row.assignor,
            "probing": row.probing,
            "clients": {client: placed.asDict() for client, placed in row.clients.items()},
        }
        for row in rows
    }


def test_problem_files_are_answered_as_the_core_answers_them(
    call, spark, tmp_path, lines, problems
):
    (tmp_path / "groups.jsonl").write_text("\n".join(lines), encoding="utf-8")
    result = call("batch", "--in", "@groups.jsonl", "--out", "@plans", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert plans(spark, tmp_path / "plans") == {p.name: expected(p) for p in problems}
    summary = json.loads(result.stdout)
    assert summary["groups"] == len(problems)
    assert summary["rejects"] == 0
    assert summary["tasks"] == sum(len(p.state.tasks) for p in problems)
    written = json.loads((tmp_path / "plans" / "_summary.json").read_text(encoding="utf-8"))
    assert written["moved"] == summary["moved"] > 0


def test_tables_are_answered_as_the_core_answers_them(call, spark, tmp_path, problems):
    (tmp_path / "groups").mkdir()
    batches = [
        group_batch([(p.name, p.state) for p in part]) for part in (problems[:9], problems[9:])
    ]
    for number, batch in enumerate(batches):
        pq.write_table(pa.Table.from_batches([batch]), tmp_path / "groups" / f"{number}.parquet")
    result = call("batch", "--in", "@groups", "--out", "@plans", "--strategy", "sticky")
    assert result.exit_code == 0, result.stderr
    assert plans(spark, tmp_path / "plans") == {p.name: expected(p, "sticky") for p in problems}
    assert result.stdout.startswith(f"{len(problems)} of {len(problems)} groups placed in ")


def test_lines_out_are_in_the_result_format_and_compare_finds_them_equal(
    call, tmp_path, lines, problems
):
    (tmp_path / "groups.jsonl").write_text("\n".join(lines[:5]), encoding="utf-8")
    call("batch", "--in", "@groups.jsonl", "--out", "@plans", "--out-format", "jsonl")
    found = {}
    for path in sorted((tmp_path / "plans").glob("part-*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            answer = json.loads(line)
            found[answer["name"]] = {key: answer[key] for key in expected(problems[0])}
    assert found == {p.name: expected(p) for p in problems[:5]}
    answers = [expected(p) for p in problems[:5]]
    (tmp_path / "core.jsonl").write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
    assert call("compare", "@plans", "@core.jsonl").stdout == "5 / 5 equal\n"
    first = next(iter(answers[0]["clients"].values()))
    first["active"] = first["active"][1:]
    (tmp_path / "core.jsonl").write_text("\n".join(map(json.dumps, answers[:4])), encoding="utf-8")
    differs = call("compare", "@plans", "@core.jsonl", "--format", "json")
    assert differs.exit_code == 1
    assert json.loads(differs.stdout) == {
        "total": 5,
        "equal": 3,
        "different": sorted([answers[0]["name"], answers[4]["name"]]),
    }


def test_settings_override_those_of_the_groups(call, spark, tmp_path, table, rows):
    table(rows)
    call(
        *("batch", "--in", "@groups.parquet", "--out", "@plans"),
        *("--config", "num.standby.replicas=0", "--config", "max.warmup.replicas=1"),
    )
    for plan in plans(spark, tmp_path / "plans").values():
        assert sum(len(client["standby"]) for client in plan["clients"].values()) == 0


def test_one_row_per_task_is_the_same_group(call, spark, tmp_path, rows):
    expected_plans = tmp_path / "nested.parquet"
    given = [row | {"config": []} for row in rows]
    pq.write_table(pa.Table.from_pylist(given, schema=GROUP_ARROW), expected_plans)
    nested = spark.read.parquet(str(expected_plans))
    for part in ("tasks", "clients"):
        nested.selectExpr("name", f"inline({part})").write.parquet(str(tmp_path / "state" / part))
    assert call("batch", "--in", "@nested.parquet", "--out", "@one").exit_code == 0
    result = call("batch", "--in", "@state", "--out", "@two")
    assert result.exit_code == 0, result.stderr
    assert plans(spark, tmp_path / "one") == plans(spark, tmp_path / "two")


def without(name):
    return pa.schema([column for column in GROUP_ARROW if column.name != name])


TEXT_TASKS = GROUP_ARROW.set(2, pa.field("tasks", pa.string()))


def task(row, **changes):
    return row | {"tasks": [row["tasks"][0] | changes, *row["tasks"][1:]]}


INVALID_ROWS = {
    "null task": (lambda r: r | {"tasks": [None, *r["tasks"]]}, "tasks is null: a task is null"),
    "unknown client": (lambda r: task(r, owner="ghost"), "tasks.owner is ghost: the group has no"),
    "duplicate task": (
        lambda r: r | {"tasks": [*r["tasks"], r["tasks"][0]]},
        "tasks is 0_0: the task is given twice",
    ),
    "bad setting": (
        lambda r: r | {"config": [("num.standby.replicas", "-1")]},
        "num.standby.replicas = -1 is not allowed",
    ),
}


@pytest.mark.nightly("each ends a job, 1.5 s; every run rejects all four", but=("unknown client",))
@pytest.mark.parametrize("what", INVALID_ROWS)
def test_invalid_group_fails_the_job_with_its_name_column_and_value(
    call, tmp_path, table, rows, what
):
    change, sentence = INVALID_ROWS[what]
    table([rows[0], change(rows[1]), rows[2]])
    result = call("batch", "--in", "@groups.parquet", "--out", "@plans")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert rows[1]["name"] in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.parquet"]


def test_invalid_groups_are_rejected_and_the_others_placed(call, spark, tmp_path, table, rows):
    changes = [change for change, _ in INVALID_ROWS.values()]
    invalid = [
        change(row) | {"name": f"bad-{n}"}
        for n, (change, row) in enumerate(zip(changes, rows, strict=True))
    ]
    table([*invalid, rows[0]])
    result = call("batch", "--in", "@groups.parquet", "--out", "@plans", "--on-error", "reject")
    assert result.exit_code == 1, result.stderr
    assert list(plans(spark, tmp_path / "plans")) == [rows[0]["name"]]
    rejects = spark.read.parquet(str(tmp_path / "plans" / "_rejects")).orderBy("name").collect()
    assert [row.name for row in rejects] == ["bad-0", "bad-1", "bad-2", "bad-3"]
    assert [row.column for row in rejects] == ["tasks", "tasks.owner", "tasks", "config"]
    assert [row.value for row in rejects][:3] == ["null", "ghost", "0_0"]
    assert "4 rejected" in result.stdout


def test_invalid_lines_are_rejected_like_rows(call, spark, tmp_path, lines):
    wrong = {"name": "g", "topics": {"a": {"partitions": "three"}}, "clients": {"c": {}}}
    (tmp_path / "groups.jsonl").write_bytes(
        "\n".join([lines[0], "{broken", json.dumps(wrong | {"subtopologies": {}})]).encode()
        + b"\n\xff\xfe"
    )
    result = call("batch", "--in", "@groups.jsonl", "--out", "@plans", "--on-error", "reject")
    assert result.exit_code == 1, result.stderr
    rejects = spark.read.parquet(str(tmp_path / "plans" / "_rejects")).orderBy("value").collect()
    assert [row.column for row in rejects].count("value") == 2
    assert any("partitions 'three'" in row.reason for row in rejects)
    assert any("broken JSON" in row.reason and row.value == "{broken" for row in rejects)
    places = {row.place for row in rejects}
    assert places == {f"{tmp_path}/groups.jsonl, line {number}" for number in (2, 3, 4)}


def test_repeated_name_is_an_error_with_both_rows(call, spark, tmp_path, table, rows):
    table([*rows, rows[2]])
    path = tmp_path / "groups.parquet"
    result = call("batch", "--in", "@groups.parquet", "--out", "@plans")
    assert result.exit_code == 2
    assert f"the name is given twice, at {path}, row 3 and {path}, row 5; give" in result.stderr
    assert not (tmp_path / "plans").exists()


@pytest.mark.nightly("5 s of Spark; every run repeats names of lines in test_line_pass.py")
def test_lines_with_the_same_name_are_rejected_and_the_others_placed(call, spark, tmp_path, lines):
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join([*lines[:3], "{broken", lines[1]]), encoding="utf-8")
    result = call(
        *("batch", "--in", "@groups.jsonl", "--out", "@plans", "--on-error", "reject"),
        *("--format", "json"),
    )
    assert result.exit_code == 1, result.stderr
    summary = json.loads(result.stdout)
    assert (summary["groups"], summary["rejects"]) == (5, 3)
    name = json.loads(lines[1])["name"]
    assert sorted(plans(spark, tmp_path / "plans")) == sorted(
        json.loads(line)["name"] for line in (lines[0], lines[2])
    )
    rejects = spark.read.parquet(str(tmp_path / "plans" / "_rejects")).collect()
    twice = [row for row in rejects if row.name == name]
    assert sorted(row.place for row in twice) == [f"{path}, line 2", f"{path}, line 5"]
    assert {row.reason for row in twice} == {
        f"the name is given twice, at {path}, line 2 and {path}, line 5; give every group its own"
    }


def test_missing_columns_and_other_types_are_found_before_work(call, table, rows):
    table(
        [{k: v for k, v in row.items() if k != "clients"} for row in rows],
        schema=without("clients"),
    )
    missing = call("batch", "--in", "@groups.parquet", "--out", "@plans")
    assert missing.exit_code == 2
    assert "column clients (array<" in missing.stderr
    assert "is missing (its columns: name, config, tasks)" in missing.stderr
    table([row | {"tasks": "0_0,0_1"} for row in rows], schema=TEXT_TASKS)
    other = call("batch", "--in", "@groups.parquet", "--out", "@plans")
    assert other.exit_code == 2
    assert "column tasks is string, it must be array<" in other.stderr


def test_truncated_parquet_is_named(call, tmp_path, table, rows):
    table(rows)
    path = tmp_path / "groups.parquet"
    path.write_bytes(path.read_bytes()[:2000])
    result = call("batch", "--in", "@groups.parquet", "--out", "@plans")
    assert result.exit_code == 2
    assert result.stderr == (
        f"spark-assign: {path} is not a complete Parquet file (truncated?); write it again.\n"
    )
    assert sorted(found.name for found in tmp_path.iterdir()) == ["groups.parquet"]


def test_wrong_usage_is_one_sentence(call, tmp_path, table, rows):
    table(rows)
    (tmp_path / "empty").mkdir()
    usage = ("batch", "--out", "@plans", "--in")
    assert "no file with rows under" in call(*usage, "@empty").stderr
    assert "no file with rows under" in call(*usage, "@nothing").stderr
    assert "did you mean sticky" in call(*usage, "@groups.parquet", "--strategy", "stiky").stderr
    assert (
        "unknown setting no.such" in call(*usage, "@groups.parquet", "--config", "no.such=1").stderr
    )
    assert "write KEY=VALUE" in call(*usage, "@groups.parquet", "--config", "x").stderr
    (tmp_path / "plans").mkdir()
    assert "--overwrite" in call(*usage, "@groups.parquet").stderr
