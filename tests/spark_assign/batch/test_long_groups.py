"""Groups whose lines are too long to be rows."""

import codecs
import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.errors import PythonException

from assignor import read_problem
from assignor.cli import make_problem
from spark_assign.batch.huge_groups import on_workers
from spark_assign.cli.main import main
from spark_assign.huge.lines.problem import read_long_problem
from spark_assign.huge.lines.rows import client_array, task_batches
from spark_assign.huge.long_groups import long_lines
from spark_assign.tables import Files, OutOfMemory
from spark_assign.tables.convert import client_rows, task_rows

LIMIT = 6_000
GROUP_2 = ("--name", "group-2")


def problem(number, tasks=6, **changes):
    made = make_problem(clients=4, tasks=tasks, standbys=1, seed=number)
    return made | {"name": f"group-{number}"} | changes


def line(given):
    return json.dumps(given).encode()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("last", [b"", b"x" * 2_000], ids=["no more", "one more line"])
def test_lines_of_the_limit_and_more_are_found_wherever_they_are(spark, tmp_path, end, last):
    sizes = [0, 1, 997, 998, 999, 1_000, 40, 2_500, 1_499, 500, 3_000, 3_000, 7, 998 - len(end)]
    for shift in (0, 1, 250, 499, 500):
        path = tmp_path / f"{shift}.txt"
        lines = [b"a" * size for size in (shift, *sizes)]
        path.write_bytes(end.join([*lines, last]))
        found = long_lines(Files(spark, str(path)), {str(path): path.stat().st_size}, 1_000)
        long = [len(text) + len(end) for text in lines if len(text) + len(end) >= 1_000]
        assert [line.size for line in found] == long + [len(last)] * (len(last) >= 1_000)


def test_a_long_problem_is_read_as_a_short_one():
    weights = {"0_1": 2.5}
    racks = {"partitions": 4, "racks": {"0": ["b", "a"], "3": []}}
    for given in [
        *(problem(number, tasks=40) for number in range(5)),
        problem(1) | {"topics": problem(1)["topics"] | {"more": racks}, "weights": weights},
    ]:
        state = read_problem(given).state
        read = read_long_problem(json.dumps(given, indent=1))
        tasks = [row for batch in task_batches(read) for row in batch.to_pylist()]
        assert tasks == task_rows(state)
        assert client_array(read).to_pylist() == client_rows(state)
        assert read.name == given["name"]


_TWO_RUN = '"a": {"lags": {"0_0": "running"}}, "b": {"lags": {"0_0": "running"}}'
BROKEN = {
    '{"topics": {"t": {"partitions": 1}}, "subtopologies": {"0": {"sources": ["t"]}}, "clients": {'
    f"{_TWO_RUN}}}}}": "task 0_0 runs on a, and b reports lag",
    '{"name": "a", "clients": {"b": {}},': "column 36: broken JSON",
    '{"clients": {"b": {"lags": {"0_0": -1}}}}': "client b reports lag -1",
    '{"clients": {}}': "no clients",
    '{"clients": 1}': "clients is int; give an object",
    '{"clients": {"b": {}}, "end_offset_sums": []}': "end_offset_sums is list",
    '{"clients": {"b": {}}} 1': "column 24: broken JSON, extra data",
    '{"clients": {"b": {}}, "topics": {"t": {"partitions": "x"}}}': "partitions 'x'",
    '{"clients": {"b": {}}, "config": {"num.standby.replicas": -1}}': "num.standby.replicas = -1",
    '{"clients": {"b": {}}, "end_offset_sums": {"0_0": 1}}': "task 0_0, which does not exist",
    '{"clients": {"b": {}}, "end_offset_sums": {"0_0": 1.5}}': "give a whole number",
}


@pytest.mark.parametrize("text", BROKEN)
def test_an_invalid_long_problem_is_named(text):
    with pytest.raises(Exception, match="^" + ".*".join(["", BROKEN[text], ""])):
        read_long_problem(text)


def test_a_task_that_runs_twice_in_a_long_problem_is_named():
    given = problem(1)
    first, second = sorted(given["clients"])[:2]
    for name, client in given["clients"].items():
        client["active"] = ["0_0"] if name in (first, second) else []
        client["standby"] = []
    with pytest.raises(Exception, match=f"task 0_0 is active on {first} and on {second}"):
        read_long_problem(json.dumps(given))


def test_one_group_is_read_from_a_long_line(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_assign.huge.source.LINE_LIMIT", LIMIT)
    path = tmp_path / "groups.jsonl"

    def group(*lines, name=()):
        path.write_bytes(b"\n".join(lines) + b"\n")
        arguments = ("group", "--in", path, "--out", f"{tmp_path}/plan", "--overwrite", *name)
        return CliRunner().invoke(main, [*map(str, arguments), "--format", "json"])

    short, long = line(problem(1)), line(problem(2, tasks=80))
    assert len(short) < LIMIT < len(long)
    many = [short, b"{broken", long, line(problem(3, tasks=80))]
    for lines, name in [([long], ()), (many, GROUP_2)]:
        placed = group(*lines, name=name)
        assert placed.exit_code == 0, (placed.stderr, placed.exception)
        assert json.loads(placed.stdout)["tasks"] == 80
        assert pq.read_table(tmp_path / "plan").num_rows == 160
    for lines, name, why in [
        ([short, long], (), "several groups (group-2, group-1, ...)"),
        ([long, long], GROUP_2, "several groups (group-2, group-2, ...)"),
        ([short, long], ("--name", "group-3"), "has no group group-3"),
        ([short, line(problem(3, tasks=80, clients=1))], ("--name", "group-3"), "clients is int"),
        ([short, b"{broken"], (), "the line that begins {broken: column 2: broken JSON"),
    ]:
        refused = group(*lines, name=name)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert why in refused.stderr


@pytest.mark.nightly("11 s of Spark; every run finds and places long lines of two plain files")
def test_long_lines_are_found_in_files_of_any_name_and_form(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_assign.cli.batch.LINE_LIMIT", LIMIT)
    long = line(problem(2, tasks=80, note="x" * LIMIT))
    folder = tmp_path / "groups" / "team=a b+c"
    folder.mkdir(parents=True)
    files = {
        # With a byte order mark, of which neither line limit nor size know.
        "mark": codecs.BOM_UTF8 + b"%s\n%s\n" % (padded(3, LIMIT - 2), padded(4, LIMIT - 1)),
        "a [1]{*}+ b%20": b"%s\n%s\n{broken\n" % (line(problem(1)), long),
        # Broken JSON: Spark's reader leaves a separator out that ends a file.
        "comma": padded(5, LIMIT - 1) + b",",
        "half": line(problem(6, name="half \ud800", note="x" * LIMIT)) + b"\n",
    }
    for name, text in files.items():
        (folder / f"{name}.jsonl").write_bytes(text)
    options = ("--on-error", "reject", "--partition-by", "team", "--format", "json")
    arguments = ("batch", "--in", f"{tmp_path}/groups", "--out", f"{tmp_path}/plans")
    result = CliRunner().invoke(main, [*arguments, *options])
    assert result.exit_code == 1, (result.stderr, result.exception)
    rejects = pq.read_table(tmp_path / "plans" / "_rejects").to_pylist()
    places = {row["place"].rpartition("/")[2]: row["reason"] for row in rejects}
    assert {place: reason[:12] for place, reason in places.items()} == {
        "a [1]{*}+ b%20.jsonl, line 3": "column 2: br",
        "comma.jsonl, line 1": f"column {LIMIT}:",
        "half.jsonl, line 1": "half \\ud800 ",
    }
    plans = pq.read_table(tmp_path / "plans").to_pylist()
    assert {row["name"]: row["team"] for row in plans} == {
        f"group-{number}": "a b+c" for number in (1, 2, 3, 4)
    }


def padded(number, size):
    """A problem of so many bytes."""
    short = line(problem(number, note=""))
    return line(problem(number, note="x" * (size - len(short))))


def test_of_too_many_files_to_look_through_each_line_is_a_row(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_assign.cli.batch.LINE_LIMIT", LIMIT)
    monkeypatch.setattr("spark_assign.tables.files._SIZED", 2)
    folder = tmp_path / "groups"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.jsonl").write_bytes(padded(number, LIMIT + number) + b"\n")
    result = CliRunner().invoke(main, ["batch", "--in", str(folder), "--out", f"{tmp_path}/plans"])
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert sorted(pq.read_table(tmp_path / "plans").column("name").to_pylist()) == [
        "group-0",
        "group-1",
        "group-2",
    ]


def test_long_lines_are_placed_and_rejected_among_the_others(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_assign.cli.batch.LINE_LIMIT", LIMIT)
    note = {"note": ", " * LIMIT}
    files = {
        "a": [
            line(problem(1)),
            b"{broken",
            line(problem(3, clients=1, **note)),
            line(problem(4)),
            line({"name": "invalid"}),
        ],
        "b": [line(problem(2, tasks=80, **note)), line(problem(1))],
    }
    for name, lines in files.items():
        folder = tmp_path / "groups" / f"team={name}"
        folder.mkdir(parents=True)
        (folder / "groups.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    options = ("--on-error", "reject", "--keep", "team", "--format", "json")
    arguments = ("batch", "--in", f"{tmp_path}/groups", "--out", f"{tmp_path}/plans")
    result = CliRunner().invoke(main, [*arguments, *options])
    assert result.exit_code == 1, (result.stderr, result.exception)
    summary = json.loads(result.stdout)
    assert (summary["groups"], summary["rejects"], summary["huge"]) == (7, 5, 1)
    rejects = pq.read_table(tmp_path / "plans" / "_rejects").to_pylist()
    places = {row["place"].removeprefix(f"{tmp_path}/groups/"): row["reason"] for row in rejects}
    twice = "the name is given twice, at "
    assert {place: reason[: len(twice)] for place, reason in places.items()} == {
        "team=a/groups.jsonl, line 1": twice,
        "team=a/groups.jsonl, line 2": "column 2: broken JSON, Expec",
        "team=a/groups.jsonl, line 3": "clients is int; give an obje",
        "team=a/groups.jsonl, line 5": "no clients: a group without ",
        "team=b/groups.jsonl, line 2": twice,
    }
    plans = {row["name"]: row for row in pq.read_table(tmp_path / "plans").to_pylist()}
    assert {name: row["team"] for name, row in plans.items()} == {
        "group-2": "b",
        "group-4": "a",
    }
    state = read_problem(problem(2, tasks=80)).state
    placed = dict(plans["group-2"]["clients"])
    assert sorted(placed) == list(state.clients)
    active = [task for client in placed.values() for task in client["active"]]
    assert sorted(active) == sorted(map(str, state.tasks))


def test_a_group_without_enough_memory_is_named_with_an_option():
    def fail():
        raise PythonException(message="Traceback\nMemoryError: no more")

    with pytest.raises(OutOfMemory, match=r"^group orders needs more memory.*--driver-memory 4g"):
        on_workers("orders", None, fail)
