"""`rolling-bounce simulate`, as a user runs it."""

import json

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main


def run(arguments):
    return CliRunner().invoke(main, ["simulate", *arguments.split()])


def test_one_seed_prints_its_trace_twice_the_same():
    first, second = run("--seed 7"), run("--seed 7")
    assert first.exit_code == 0
    assert first.stdout == second.stdout
    assert first.stdout.startswith("* leads")
    assert "\ngood: " in first.stdout


def test_many_seeds_print_a_summary():
    done = run("--seeds 12 --workers 1")
    assert done.exit_code == 0
    summary = json.loads(done.stdout)
    assert summary["seconds"] > 0
    assert {key: summary[key] for key in ("seeds", "failed", "failures")} == {
        "seeds": 12,
        "failed": 0,
        "failures": [],
    }


def test_a_broken_path_ends_with_1_and_the_command_that_replays_it():
    done = run("--seeds 6 --workers 1 --from 1.1.1 --to 2.3.1 --force")
    assert done.exit_code == 1
    summary = json.loads(done.stdout)
    assert summary["failed"] == len(summary["failures"]) >= 3
    failure = summary["failures"][0]
    assert failure["rule"] == "nobody dies"
    assert "upgrade.from=1.1" in failure["sentence"]
    replayed = run(failure["replay"].removeprefix("rolling-bounce simulate "))
    assert replayed.exit_code == 1
    assert replayed.stdout.startswith("* leads")
    assert failure["sentence"] in replayed.stdout


def test_one_seed_as_json_has_the_verdict_and_the_cost():
    document = json.loads(run("--seed 3 --from 3.1 --to native --format json").stdout)
    assert document["ok"]
    assert (document["from"], document["to"]) == ("3.1.2", "native")
    assert document["cost"]["bytes"] > 0
    assert document["rebalances"]["version"] <= document["rebalances"]["version_bound"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--seed 1 --seeds 2", "give one of them"),
        ("--from 2.0.1 --to 2.3.0", "KAFKA-8649"),
        ("--from 9.9 --to 3.9", "unknown"),
        ("--faults flood", "unknown fault 'flood'"),
        (
            "--static --faults coordinator --seed 1",
            "every pair of releases has a known Kafka issue",
        ),
        ("--faults crash --offline", "leave --offline out"),
        ("--from 3.9.1 --to 3.4.1 --static --seeds 1 --members 1001", "1001"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_what_to_do(arguments, text):
    done = run(arguments)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.mark.slow
def test_all_cores_find_what_one_finds():
    def failures(workers):
        arguments = f"--seeds 6 --from 2.0.1 --to 2.3.0 --force --workers {workers}"
        return json.loads(run(arguments).stdout)["failures"]

    of_one = failures(1)
    assert failures(2) == of_one
    assert of_one


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_the_same_seed_gives_the_same_bytes_whatever_the_order_of_hashes():
    import os  # noqa: PLC0415 one test needs them
    import subprocess  # noqa: PLC0415 likewise
    import sys  # noqa: PLC0415 likewise

    command = [sys.executable, "-m", "system_tests.entry", "simulate", "--seed", "11"]
    expected = {
        subprocess.run(
            [*command, "--faults", "all"],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=False,
        ).stdout
        for seed in (1, 2)
    }
    assert len(expected) == 1
    assert expected != {b""}
