"""`rolling-bounce plan --topology`: what becomes of each subtopology and of its state."""

import json

import pytest
from click.testing import CliRunner

from assignor import Topology
from system_tests.cli.main import main
from system_tests.plan import topology_plan

PAGE = "examples.topologies"


def plan(*words):
    return CliRunner().invoke(main, ["plan", *words])


def test_a_second_store_keeps_the_first_ones_state():
    found = plan("--topology", f"{PAGE}:FIRST", f"{PAGE}:SECOND", "--format", "json")
    assert found.exit_code == 0
    document = json.loads(found.stdout)
    [part] = document["subtopologies"]
    assert (part["kind"], part["kept"], part["empty"]) == (
        "changed",
        ["app-counts-changelog"],
        ["app-lengths-changelog"],
    )
    assert document["warnings"] == []
    # The release comes first, then the topology.
    assert "with the topology as it is" in document["steps"][0]
    assert "version 2" in document["steps"][1]


def test_a_rename_that_orphans_state_is_named_before_it_happens():
    found = plan("--topology", f"{PAGE}:FIRST", f"{PAGE}:RENAMED")
    assert "state is lost: app-counts-changelog is renamed to app-word-counts-changelog" in (
        found.stdout
    )


def test_added_and_removed_ones_can_go_back_and_numbers_may_change():
    old = Topology().add_source("m", topics=["words"])
    new = Topology(version=2).add_source("m", topics=["words"]).add_source("a", topics=["more"])
    made = topology_plan(old, new, "app")
    assert [(p.kind, p.old_numbers, p.new_numbers) for p in made.subtopologies] == [
        ("added", (), (0,)),
        ("kept", (0,), (1,)),
    ]
    assert [p.kind for p in topology_plan(new, old, "app").subtopologies] == ["kept", "removed"]


def test_the_same_version_is_an_obstacle():
    found = plan("--topology", f"{PAGE}:SECOND", f"{PAGE}:FIRST")
    assert found.exit_code == 1
    assert "give the new one a higher version, Topology(version=3)" in found.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topology", PAGE, PAGE], "give MODULE:NAME"),
        (["--topology", f"{PAGE}:NONE", f"{PAGE}:FIRST"], "is not an assignor.Topology"),
        (["--topology", "no_module:X", "no_module:X"], "no_module"),
        (["--topology", f"{PAGE}:FIRST", f"{PAGE}:SECOND", "--to", "native"], "leave out --from"),
        (["--from", "native"], "--to RELEASE, or --topology OLD NEW"),
    ],
)
def test_wrong_usage_is_named(words, sentence):
    found = plan(*words)
    assert found.exit_code == 2
    assert sentence in found.stderr
