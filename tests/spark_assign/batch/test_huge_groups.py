"""Huge groups of a batch, partitions of equal work, and a job that is killed."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from assignor import TaskAssignment, read_problem, validate
from assignor.cli import make_problem
from spark_assign.cli.main import main
from spark_assign.tables.convert import group_batch
from spark_assign.workers.balance import SizeClass, partitions_of

ROOT = Path(__file__).resolve().parents[3]


def problem(tasks, seed, clients=5):
    made = make_problem(clients=clients, tasks=tasks, standbys=1, seed=seed)
    return made | {"name": f"group-{seed}"}


def write(path, problems):
    states = [(given["name"], read_problem(given).state) for given in problems]
    pq.write_table(pa.Table.from_batches([group_batch(states)]), path)


def placed(state, clients):
    """A row of plans as an assignment."""
    index = {str(task): number for number, task in enumerate(state.tasks)}
    active, standbys = state.owner.copy(), []
    active[:] = -1
    for number, name in enumerate(state.clients):
        for task in clients[name]["active"]:
            active[index[task]] = number
        copies = [*clients[name]["standby"], *clients[name]["warmup"]]
        standbys += [(index[task], number) for task in copies]
    return TaskAssignment(active=active, standbys=tuple(sorted(standbys)))


def stored_tables(spark):
    """Numbers of the tables that Spark keeps on disks or in memory."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_huge_groups_are_placed_by_all_workers_and_come_back_as_rows(spark, tmp_path):
    problems = [problem(12, 1), problem(60, 2), problem(12, 3)]
    lost = next(iter(problems[1]["clients"]))
    del problems[1]["clients"][lost]
    write(tmp_path / "groups.parquet", problems)
    arguments = ["--in", f"{tmp_path}/groups.parquet", "--out", f"{tmp_path}/plans"]
    before = stored_tables(spark)
    result = CliRunner().invoke(
        main, ["batch", *arguments, "--huge-tasks", "40", "--format", "json"]
    )
    assert result.exit_code == 0, result.stderr
    assert stored_tables(spark) <= before
    summary = json.loads(result.stdout)
    assert (summary["groups"], summary["huge"], summary["tasks"]) == (3, 1, 84)
    rows = {row.name: row for row in spark.read.parquet(f"{tmp_path}/plans").collect()}
    assert sorted(rows) == ["group-1", "group-2", "group-3"]
    for given in problems:
        state = read_problem(given).state
        clients = {name: held.asDict() for name, held in rows[given["name"]].clients.items()}
        assert sorted(clients) == list(state.clients)
        assert validate(state, placed(state, clients)) == ()


@pytest.mark.nightly("6 s of Spark; every run reads the same lines plain", but=("plain",))
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_invalid_huge_groups_are_rejected_and_the_others_placed(spark, tmp_path, packed):
    # Few bytes for each task, and many: only tasks count.
    short = {"name": "short", "topics": {"t": {"partitions": 41}}, "clients": {"a": {}, "b": {}}}
    short["subtopologies"] = {"0": {"sources": ["t"]}}
    long = problem(12, 4) | {"note": " " * 9_000}
    lines = [
        json.dumps(problem(60, 1)),
        "{broken" + " " * 9_000,
        json.dumps(problem(60, 2) | {"config": {"num.standby.replicas": 10**30}}),
        json.dumps(problem(60, 3) | {"clients": {}, "note": " " * 9_000}),
        json.dumps(short),
        json.dumps(long),
    ]
    path = tmp_path / f"groups.jsonl{'.gz' if packed else ''}"
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    arguments = ["--in", str(path), "--out", f"{tmp_path}/plans", "--on-error", "reject"]
    result = CliRunner().invoke(
        main, ["batch", *arguments, "--huge-tasks", "40", "--format", "json"]
    )
    assert result.exit_code == 1, (result.stderr, result.exception)
    summary = json.loads(result.stdout)
    assert (summary["groups"], summary["rejects"], summary["huge"]) == (6, 3, 2)
    rows = spark.read.parquet(f"{tmp_path}/plans").collect()
    # Huge groups have no time of their own.
    assert {row.name: (row.measures.tasks, row.millis is None) for row in rows} == {
        "group-1": (60, True),
        "group-4": (12, False),
        "short": (41, True),
    }
    rejects = spark.read.parquet(f"{tmp_path}/plans/_rejects").collect()
    assert sorted(row.place for row in rejects) == [f"{path}, line {n}" for n in (2, 3, 4)]


def test_partitions_share_the_work_and_the_largest_come_first():
    classes = (
        SizeClass(power=14, groups=2, work=40_000, tasks_max=30_000),
        SizeClass(power=8, groups=300, work=80_000, tasks_max=400),
        SizeClass(power=5, groups=100, work=3_000, tasks_max=40),
        SizeClass(power=4, groups=10, work=160, tasks_max=2),
    )
    places, total = partitions_of(classes, 12)
    assert places[14] == (0, 2)
    assert places[8] == (2, 8)
    # Small classes share one partition.
    assert places[5] == (10, 1)
    assert places[4] == (10, 1)
    assert total == 11


@pytest.mark.parametrize("wanted", [1, 7, 100])
def test_every_class_has_a_partition(wanted):
    classes = tuple(
        SizeClass(power=p, groups=3, work=3 * 2**p, tasks_max=2**p) for p in range(16, 3, -1)
    )
    places, total = partitions_of(classes, wanted)
    assert set(places) == {size.power for size in classes}
    assert all(start + count <= total for start, count in places.values())
    assert partitions_of((), wanted) == ({}, 1)


def hang(state):
    """A strategy that names its process and never answers."""
    Path(os.environ["STARTED"]).touch()
    time.sleep(3_600)


@pytest.mark.nightly("starts Spark anew, 20 s; every run clears away the files of a killed job")
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_job_that_is_killed_leaves_nothing_and_runs_again(spark, tmp_path):
    write(tmp_path / "groups.parquet", [problem(12, seed) for seed in range(4)])
    arguments = ["batch", "--in", f"{tmp_path}/groups.parquet", "--out", f"{tmp_path}/plans"]
    started, partial = tmp_path / "started", tmp_path / "_plans.partial" / "_all"
    command = [sys.executable, "-m", "spark_assign.entry", *arguments, "--cores", "1"]
    job = subprocess.Popen(
        [*command, "--strategy", f"{__name__}:hang"],
        env=os.environ | {"STARTED": str(started)},
        cwd=ROOT,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 600
        while not started.exists():
            assert job.poll() is None, job.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
    assert not (tmp_path / "plans").exists()
    assert partial.exists()
    started.unlink()
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 0, again.stderr
    assert spark.read.parquet(f"{tmp_path}/plans").count() == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.parquet", "plans"]
    assert sorted(p.name for p in (tmp_path / "plans").iterdir() if p.name[0] == "_") == [
        "_SUCCESS",
        "_summary.json",
    ]
