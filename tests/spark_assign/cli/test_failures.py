"""A full disk, or a worker that is killed: one sentence, exit status 3, and no output."""

import os
import resource
import signal
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from assignor.cli.main import main as assignor
from spark_assign.cli.main import main

LIMIT = 64 << 10


@contextmanager
def small_files(process):
    """Let a process write no file of more than `LIMIT` bytes, as if the disk were full."""
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


def killed(state):
    os.kill(os.getpid(), signal.SIGKILL)


def closed_early(state):
    raise GeneratorExit


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "groups.jsonl"
    words = ["sample", "--groups", "40", "--tasks", "200", "--clients", "20", "--out", str(path)]
    assert CliRunner().invoke(assignor, words).exit_code == 0
    return path


def run(groups, folder, *words):
    out = folder / "plans"
    given = ["batch", "--in", str(groups), "--out", str(out), *words]
    return CliRunner().invoke(main, given), sorted(folder.iterdir())


def test_a_full_disk_is_named_and_leaves_nothing(spark, groups, tmp_path):
    with small_files(spark.sparkContext._gateway.proc.pid):
        result, left = run(groups, tmp_path, "--out-format", "jsonl")
    assert "the disk of --out" in result.stderr
    assert result.exit_code == 3
    assert left == []


def test_a_killed_worker_is_named_and_leaves_nothing(spark, groups, tmp_path):
    result, left = run(groups, tmp_path, "--strategy", f"{__name__}:killed")
    assert "a Python worker was killed, or crashed in a strategy" in result.stderr
    assert result.exit_code == 3
    assert left == []


def test_a_strategy_that_raises_generator_exit_rejects_its_groups(spark, groups, tmp_path):
    words = ("--strategy", f"{__name__}:closed_early", "--on-error", "reject")
    result, _ = run(groups, tmp_path, *words)
    assert result.exit_code == 1
    assert "0 of 40 groups placed" in result.stdout


@pytest.mark.parametrize(
    ("option", "path", "ending"),
    [
        (
            "--out",
            "",
            (2, "'' is no path that Spark can open: Can not create a Path from an empty"),
        ),
        ("--out", "/", (2, "/ is not the name of a directory; give one that has a name")),
        ("--out", "a:b", (2, "'a:b' is no path that Spark can open: URISyntaxException: Relative")),
        ("--out", "foo://x/y", (2, "is no path that Spark can open: No FileSystem for scheme")),
        ("--out", "/dev/null/x", (3, "/dev/null/_x.partial: ParentNotDirectoryException: Parent")),
        ("--in", "", (2, "'' is no path that Spark can open: Can not create a Path from an empty")),
        ("--in", "foo://x/y", (2, "is no path that Spark can open: No FileSystem for scheme")),
        ("--in", "[", (2, "'[' is no path that Spark can open: error parsing regexp: Unclosed")),
    ],
)
def test_a_path_that_cannot_be_opened_is_named(spark, tmp_path, option, path, ending):
    status, why = ending
    given = {"--in": f"{tmp_path}/groups.jsonl", "--out": f"{tmp_path}/plans", option: path}
    (tmp_path / "groups.jsonl").write_text("{}\n", encoding="utf-8")
    words = [word for pair in given.items() for word in pair]
    result = CliRunner().invoke(main, ["batch", *words])
    assert (result.exit_code, result.stdout) == (status, "")
    assert why in result.stderr
    assert "o1" not in result.stderr  # the name of an object of the JVM
