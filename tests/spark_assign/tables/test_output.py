"""Output is complete, or does not exist."""

import json
import os
import socket
import subprocess
import sys

import pytest

from spark_assign.tables.errors import BadTable, OutputInTheWay
from spark_assign.tables.output import staged


def rows(spark, path):
    return sorted(row.id for row in spark.read.parquet(str(path)).collect())


def visible(directory):
    return sorted(path.name for path in directory.iterdir())


def test_rows_appear_with_the_success_file(spark, tmp_path):
    out = tmp_path / "plans"
    with staged(spark, f"{out}/") as stage:
        stage.write(spark.range(5))
        stage.write(spark.range(2), "_rejects")
        stage.write_text("_summary.json", "{}")
        assert not out.exists()
    assert rows(spark, out) == [0, 1, 2, 3, 4]
    assert rows(spark, out / "_rejects") == [0, 1]
    assert (out / "_SUCCESS").exists()
    assert (out / "_summary.json").read_text(encoding="utf-8") == "{}"
    assert visible(tmp_path) == ["plans"]
    assert not (out / "_owner.json").exists()


def test_job_that_fails_leaves_nothing(spark, tmp_path):
    def write():
        with staged(spark, str(tmp_path / "plans")) as stage:
            stage.write(spark.range(5))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert visible(tmp_path) == []


def test_existing_output_is_an_error_and_kept(spark, tmp_path):
    out = tmp_path / "plans"
    out.mkdir()
    (out / "notes.txt").write_text("old", encoding="utf-8")
    with pytest.raises(OutputInTheWay, match="--overwrite"), staged(spark, str(out)):
        pass
    assert (out / "notes.txt").read_text(encoding="utf-8") == "old"


def test_old_output_stays_until_the_new_one_is_complete(spark, tmp_path):
    out = tmp_path / "plans"
    with staged(spark, str(out)) as stage:
        stage.write(spark.range(1))
    with staged(spark, str(out), overwrite=True) as stage:
        stage.write(spark.range(3))
        assert rows(spark, out) == [0]
    assert rows(spark, out) == [0, 1, 2]
    assert visible(tmp_path) == ["plans"]


def test_a_directory_that_no_job_wrote_is_not_replaced(spark, tmp_path):
    out = tmp_path / "plans"
    out.mkdir()
    (out / "notes.txt").write_text("old", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    with staged(spark, str(tmp_path / "empty"), overwrite=True) as stage:
        stage.write(spark.range(1))
    assert rows(spark, tmp_path / "empty") == [0]
    with (
        pytest.raises(OutputInTheWay, match="no file _SUCCESS, so it is no output of a job"),
        staged(spark, str(out), overwrite=True),
    ):
        pass
    assert (out / "notes.txt").read_text(encoding="utf-8") == "old"


def test_an_output_with_an_input_in_it_is_not_replaced(spark, tmp_path):
    out = tmp_path / "plans"
    with staged(spark, str(out)) as stage:
        stage.write(spark.range(1))
    inside = [out, out / "part-0.parquet", f"{out}/*.parquet", f"file:{out}", f"{out}/../plans"]
    for path in map(str, inside):
        with (
            pytest.raises(OutputInTheWay, match=r"has the input .* in it"),
            staged(spark, str(out), overwrite=True, reads=[path]),
        ):
            pass
    assert rows(spark, out) == [0]
    others = [f"{out}-2", str(tmp_path), f"{tmp_path}/*.jsonl", f"{out}*.jsonl", "viewfs://x/plans"]
    spark.sparkContext._jsc.hadoopConfiguration().set(
        "fs.viewfs.mounttable.x.link./plans", f"file://{tmp_path}/other"
    )
    for path in others:
        with staged(spark, str(out), overwrite=True, reads=[path]) as stage:
            stage.write(spark.range(2))
    assert rows(spark, out) == [0, 1]


@pytest.mark.parametrize(
    "out", ["/", ".", "..", "plans/..", "file:/", "hdfs://", "hdfs://host:9000"]
)
def test_an_output_needs_a_name(spark, out):
    with pytest.raises(BadTable, match="is not the name of a directory"), staged(spark, out):
        pass


def test_what_a_killed_job_left_is_cleared_away(spark, tmp_path):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    partial = tmp_path / "_plans.partial"
    partial.mkdir()
    (partial / "part-0.parquet").write_text("half", encoding="utf-8")
    owner = {"host": socket.gethostname(), "pid": int(dead.stdout)}
    (partial / "_owner.json").write_text(json.dumps(owner), encoding="utf-8")
    with staged(spark, str(tmp_path / "plans")) as stage:
        stage.write(spark.range(2))
    assert rows(spark, tmp_path / "plans") == [0, 1]
    assert visible(tmp_path) == ["plans"]


def test_job_that_is_still_writing_is_not_disturbed(spark, tmp_path):
    partial = tmp_path / "_plans.partial"
    partial.mkdir()
    owner = {"host": socket.gethostname(), "pid": os.getppid()}
    (partial / "_owner.json").write_text(json.dumps(owner), encoding="utf-8")
    with (
        pytest.raises(OutputInTheWay, match=f"process {os.getppid()} "),
        staged(spark, str(tmp_path / "plans")),
    ):
        pass
    assert partial.exists()


def test_replacement_killed_between_its_renames_is_undone(spark, tmp_path):
    old = tmp_path / "_plans.old"
    with staged(spark, str(tmp_path / "plans")) as stage:
        stage.write(spark.range(4))
    (tmp_path / "plans").rename(old)
    with pytest.raises(OutputInTheWay), staged(spark, str(tmp_path / "plans")):
        pass
    assert rows(spark, tmp_path / "plans") == [0, 1, 2, 3]
    assert visible(tmp_path) == ["plans"]


def test_what_appears_at_the_output_during_the_job_is_not_replaced(spark, tmp_path):
    out = tmp_path / "plans"

    def write():
        with staged(spark, str(out)) as stage:
            stage.write_text("of-this-job", "new")
            out.mkdir()
            (out / "of-another-job").write_text("precious", encoding="utf-8")

    with pytest.raises(OutputInTheWay, match="move it to another place"):
        write()
    assert (out / "of-another-job").read_text(encoding="utf-8") == "precious"
    assert (tmp_path / "_plans.partial" / "of-this-job").read_text(encoding="utf-8") == "new"


def test_a_refused_job_changes_nothing(spark, tmp_path):
    for name in ("plans", "_plans.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").touch()
    with pytest.raises(OutputInTheWay), staged(spark, str(tmp_path / "plans")):
        pass
    assert (tmp_path / "plans" / "precious").exists()
    assert (tmp_path / "_plans.old" / "precious").exists()
