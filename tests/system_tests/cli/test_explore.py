"""`rolling-bounce explore`, as a user runs it."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from system_tests.cli import explore
from system_tests.cli.main import main

SMALL = "--members 2 --crashes 0"


def run(arguments, **options):
    return CliRunner().invoke(main, ["explore", *arguments.split()], **options)


@pytest.fixture(scope="module")
def found():
    """A search with one finding, which several tests read."""
    return run(f"--from 2.0.1 --to 2.3.0 {SMALL}")


@pytest.mark.slow
def test_a_finding_is_a_runbook_a_trace_and_status_1(found):
    assert found.exit_code == 1
    assert "sets what it speaks: b set its version to v4" in found.stdout
    assert "KAFKA-8649" in found.stdout
    assert "runbook: stop a; start a on 2.3.0" in found.stdout
    assert "join a:v4/4 b:v3/3" in found.stdout
    assert "!  .   stop" in found.stdout, "b runs: the trace begins in a settled group"
    assert found.stdout.endswith("bad, introduced by the upgrade: 2.0.1 -> 2.3.0\n")


@pytest.mark.slow
def test_json_has_stable_names():
    done = run(f"--from 2.0.1 --to 2.3.0 {SMALL} --format json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["states"] > 100
    assert document["transitions"] >= document["states"] - 1
    assert document["complete"] is True
    (finding,) = document["findings"]
    assert finding["rule"] == "sets what it speaks"
    assert finding["issue"] == "KAFKA-8649"
    assert finding["runbook"] == ["stop a", "start a on 2.3.0"]


def test_nothing_found_is_status_0():
    done = run(f"--from 3.9.1 --to native {SMALL}")
    assert done.exit_code == 0
    assert "search complete" in done.output
    assert done.stdout.endswith("\ngood: 3.9.1 -> native\n")


def test_an_incomplete_search_is_reported_as_incomplete():
    done = run(f"--from 3.9.1 --to native {SMALL} --max-states 5")
    assert done.exit_code == 0
    assert "search incomplete: stopped after 5 states (--max-states)" in done.output
    assert "nothing found so far" in done.output
    late = run("--from 3.9.1 --to native --timeout 0.000001 --format json")
    assert json.loads(late.stdout)["complete"] is False


@pytest.mark.slow
def test_a_search_that_found_something_names_what_it_did_not_search(found):
    assert "transitions: search complete, except states after a broken rule" in found.stdout
    asked = run(f"--from 2.0.1 --to 2.3.0 {SMALL} --issue KAFKA-8649")
    assert "transitions: search stopped as requested: KAFKA-8649 is found" in asked.stdout


def test_only_the_requested_issue_is_reported():
    done = run(f"--from 2.0.1 --to 2.3.0 {SMALL} --issue KAFKA-9821")
    assert done.exit_code == 0
    assert "KAFKA-8649" not in done.output
    assert "good: no KAFKA-9821" in done.output


def test_pins_are_part_of_the_runbook_and_an_impossible_path_is_explored_bare():
    pinned = run("--from 1.1.1 --to 2.4.1 --members 1 --crashes 0 --format json")
    assert pinned.exit_code == 0
    assert json.loads(pinned.stdout)["states"] > 5


@pytest.mark.parametrize("arguments", ["--from 9.9 --to native", "--from 3.9.1", "--members 99"])
def test_wrong_usage_is_status_2(arguments):
    assert run(arguments).exit_code == 2


def test_a_rule_that_neither_release_breaks_alone_was_introduced_by_the_upgrade(found):
    assert (
        "introduced by the upgrade: neither 2.0.1 nor 2.3.0 alone breaks the rule\n" in found.stdout
    )


def test_an_unfinished_search_of_one_release_is_reported():
    done = run(f"--from 2.0.1 --to 2.3.0 {SMALL} --max-states 60")
    assert done.exit_code == 1
    assert "alone breaks the rule (search incomplete)\n" in done.output


def test_a_terminal_on_stderr_sees_the_progress_and_stdout_does_not(monkeypatch):
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(explore, "sys", SimpleNamespace(stderr=terminal, exit=sys.exit))
    monkeypatch.setattr(explore, "_PROGRESS_S", 0.0)
    done = run(f"--from 3.9.1 --to native --workers 1 {SMALL}", color=True)
    assert done.exit_code == 0
    assert re.search(r"[\d,]+ states, [\d,]+ transitions, [\d,]+ waiting, \d+ s", done.stderr)
    assert done.stderr.endswith("\r\x1b[K")
    assert "waiting" not in done.stdout


def test_without_a_terminal_no_line_is_drawn_over(monkeypatch):
    monkeypatch.setattr(explore, "LINE_EVERY_S", 0.0)
    done = run(f"--from 3.9.1 --to native --workers 1 {SMALL}", color=True)
    assert done.stderr
    assert "\r" not in done.stderr
    assert all(
        re.match(r"rolling-bounce: [\d,]+ states", line) for line in done.stderr.splitlines()
    )
