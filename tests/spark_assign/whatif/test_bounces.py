"""Bounces simulated on workers equal those simulated on one machine."""

import json
import shlex

import pytest
from click.testing import CliRunner

from spark_assign.cli.main import main
from system_tests.cli.main import main as rolling_bounce


def call(*arguments):
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


@pytest.mark.parametrize("drawn", ["releases", "all"])
def test_seeds_on_workers_give_the_outcomes_of_one_machine(spark, tmp_path, drawn):
    options = ("--members", 3, "--faults", "crash,drop", "--draw", drawn)
    result = call("--seeds", 6, *options, "--out", tmp_path / "rows", "--format", "json")
    assert result.exit_code == 0, result.stderr
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted(row.seed for row in rows) == list(range(6))
    for row in rows:
        local = CliRunner().invoke(
            rolling_bounce,
            [*map(str, ("simulate", "--seed", row.seed, "--format", "json", *options))],
        )
        assert json.loads(row.document) == json.loads(local.stdout)
        assert row.rebalances_total == json.loads(local.stdout)["rebalances"]["total"]
    assert json.loads(result.stdout)["seeds"] == 6


def test_failures_come_back_with_a_command_that_shows_them_again(spark, tmp_path):
    broken = ("--from", "2.0.1", "--to", "2.3.0", "--force")
    result = call("--seeds", 3, "--first-seed", 2, *broken, "--out", tmp_path / "rows")
    assert result.exit_code == 1
    assert result.stdout.startswith("3 bounces in ")
    replay = next(line for line in result.stdout.splitlines() if line.startswith("  rolling"))
    again = CliRunner().invoke(rolling_bounce, shlex.split(replay)[1:])
    assert again.exit_code == 1
    assert "--seed 2" in replay


def test_impossible_paths_are_errors_before_spark_starts(tmp_path):
    result = call("--seeds", 3, "--from", "0.0", "--out", tmp_path / "rows")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert call("--seeds", 3, "--faults", "flood", "--out", tmp_path / "rows").exit_code == 2
    assert not (tmp_path / "rows").exists()
