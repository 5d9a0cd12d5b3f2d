"""`rolling-bounce simulate --world kraft`, as a user runs it."""

import json

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main
from system_tests.cluster.machines.replica import WriteSnapshot, replica_step
from system_tests.cluster.nodes import reading
from tests.versions import NEWEST_SERIES


def simulate(*arguments):
    return CliRunner().invoke(main, ["simulate", *arguments])


def test_one_cluster_prints_its_trace_and_a_verdict():
    done = simulate("--world", "kraft", "--seed", "3", "--scenario", "upgrade")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("     ms  gen   c0")
    assert lines[-1].startswith("good: upgrade, ")
    assert any("committed: metadata.version" in line for line in lines)


def test_one_cluster_as_json_has_every_request_with_its_levels_and_the_rule():
    done = simulate("--world", "kraft", "--seed", "3", "--format", "json")
    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert document["replay"] == "rolling-bounce simulate --world kraft --seed 3"
    assert document["requests"]
    assert all(request["levels"] and request["rule"] for request in document["requests"])


def test_many_clusters_are_summed_up():
    done = simulate("--world", "kraft", "--seeds", "3", "--workers", "1", "--format", "text")
    assert done.exit_code == 0
    assert done.stdout.startswith("3 clusters in ")
    assert done.stdout.endswith("0 of them broke a rule\n")


def test_a_broken_rule_ends_with_1_and_the_command_that_replays_it(monkeypatch):
    def without_snapshots(state, event):
        after, actions = replica_step(state, event)
        return after, tuple(action for action in actions if not isinstance(action, WriteSnapshot))

    monkeypatch.setattr(reading, "replica_step", without_snapshots)
    given = ("--world", "kraft", "--scenario", "upgrade", "--faults", "none")
    done = simulate(*given, "--seeds", "1", "--workers", "1")
    assert done.exit_code == 1
    (failure,) = json.loads(done.stdout)["failures"]
    assert failure["rule"] == "snapshot first"
    assert failure["replay"].endswith("--world kraft --seed 0 --scenario upgrade --faults none")
    again = simulate(*failure["replay"].split()[2:])
    assert again.exit_code == 1
    assert f"replay: {failure['replay']}" in again.stdout
    assert "broken at" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--world kraft --members 3", "--members is for --world group; leave it out"),
        ("--world kraft --report x.html", "--report is for --world group; leave it out"),
        ("--scenario upgrade --seed 1", "--scenario is for --world kraft; leave it out"),
        ("--world kraft --controllers 4", "4 controllers are not supported; take 1, 3 or 5"),
        ("--world kraft --from 3.9", "give both --from and --to, or neither"),
        ("--world kraft --from 4.0 --to 3.9", "3.9 is not after 4.0"),
        ("--world kraft --from 3.2 --to 4.0", "upgrade through a release in between, such as 3.9"),
        ("--world kraft --from 2.8 --to 4.0", f"choose from 3.0 to {NEWEST_SERIES}"),
        ("--world kraft --faults fire", "unknown fault 'fire'; choose from none, all, crash"),
        ("--world kraft --scenario minority --controllers 1", "a quorum of 1 has no minority"),
        ("--world kraft --scenario double-roll --from 3.8 --to 3.9", "has its own releases"),
        ("--world kraft --scenario preview --from 3.4 --to 3.9", "scenario preview starts from"),
        ("--world kraft --scenario upgrade --from 3.1 --to 3.9", "is a preview cluster"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(arguments, expected):
    done = simulate(*arguments.split())
    assert done.exit_code == 2
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_releases_that_are_given_are_the_ones_that_run():
    given = ("--from", "3.7.1", "--to", "3.9", "--controllers", "1", "--brokers", "2")
    done = simulate("--world", "kraft", "--seed", "2", *given, "--format", "json")
    document = json.loads(done.stdout)
    assert (document["from"], document["to"]) == ("3.7", "3.9")
    assert (document["controllers"], document["brokers"]) == (1, 2)
