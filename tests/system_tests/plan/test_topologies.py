"""`rolling-bounce plan --topology`: what becomes of each subtopology and of its state."""

import json

import pytest
from click.testing import CliRunner

from assignor import Topology
from system_tests.cli.main import main
from system_tests.plan import PlannedTopology, topology_lines, topology_plan

PAGE = "assignor.examples.topologies"


def side(topology):
    return PlannedTopology(subtopologies=topology.subtopologies("app"), version=topology.version)


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
    made = topology_plan(side(old), side(new))
    assert [(p.kind, p.old_numbers, p.new_numbers) for p in made.subtopologies] == [
        ("added", (), (0,)),
        ("kept", (0,), (1,)),
    ]
    assert [p.kind for p in topology_plan(side(new), side(old)).subtopologies] == [
        "kept",
        "removed",
    ]


def test_the_same_version_is_an_obstacle():
    found = plan("--topology", f"{PAGE}:SECOND", f"{PAGE}:FIRST")
    assert found.exit_code == 1
    assert "give the new one a higher version, Topology(version=3)" in found.stdout


def piped(version, *, topic="r", partitions=None, source="lines", store="counts"):
    """Reads a source and, through a repartition topic, counts; without a topic directly."""
    built = Topology(version=version).add_source("read", topics=[source])
    if topic:
        built.add_repartition_topic(topic, partitions=partitions)
        built.add_sink("write", topic=topic, parents=["read"]).add_source("again", topics=[topic])
    built.add_processor("count", parents=["again" if topic else "read"])
    return built.add_state_store(store, processors=["count"])


def test_what_a_changed_repartition_topic_joins_changes_together():
    made = topology_plan(side(piped(1)), side(piped(2, topic="")))
    [part] = made.subtopologies
    assert part.together == ("app-r-repartition", "lines")
    [warning] = [w for w in made.warnings if "changes together" in w]
    assert "members with version 1 run all of it until more members have version 2" in warning
    assert made.steps


def test_a_kept_subtopology_that_writes_to_a_renamed_topic_goes_with_its_reader():
    made = topology_plan(side(piped(1)), side(piped(2, topic="s")))
    assert [(p.kind, p.together) for p in made.subtopologies] == [
        ("renamed", ("app-r-repartition", "app-s-repartition", "lines")),
        ("kept", ("app-r-repartition", "app-s-repartition", "lines")),
    ]
    assert "bounce back" in made.subtopologies[1].rollback
    assert not any("both versions run it" in line for line in topology_lines(made))


def test_a_source_of_one_version_is_named_before_it_waits():
    old, new = piped(1, topic=""), Topology(version=2)
    new.add_source("read", topics=["lines", "more"]).add_processor("count", parents=["read"])
    new.add_state_store("counts", processors=["count"])
    for sides, version in (((old, new), 2), ((new, piped(3, topic="")), 2)):
        made = topology_plan(*map(side, sides))
        assert [w for w in made.warnings if f"only version {version} reads more" in w]
        assert {*made.subtopologies[0].begins, *made.subtopologies[0].ends} == {"more"}


def test_a_repartition_topic_that_gets_other_records_is_a_warning():
    old = piped(1)
    new = piped(2, source="more", store="sums").add_source("lines", topics=["lines"])
    new.add_processor("direct", parents=["lines"]).add_state_store("counts", processors=["direct"])
    made = topology_plan(side(old), side(new))
    assert [w for w in made.warnings if "app-r-repartition has other readers and writers" in w]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (piped(2, partitions=8), "app-r-repartition has 4 partitions in the old topology and 8 in"),
        (piped(2, topic="", source="app-r-repartition"), "is a repartition topic in one of the"),
    ],
)
def test_a_repartition_topic_that_members_refuse_is_an_obstacle(new, why):
    made = topology_plan(side(piped(1, partitions=4)), side(new))
    [obstacle] = made.obstacles
    assert why in obstacle
    assert made.steps == ()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topology", PAGE, PAGE], "give MODULE:NAME"),
        (["--topology", f"{PAGE}:NONE", f"{PAGE}:FIRST"], "is not an assignor.Topology"),
        (["--topology", "no_module:X", "no_module:X"], "no_module"),
        (["--topology", f"{PAGE}:FIRST", f"{PAGE}:SECOND", "--to", "native"], "leave out --to"),
        (["--from", "native"], "--to RELEASE, or --topology OLD NEW"),
    ],
)
def test_wrong_usage_is_named(words, sentence):
    found = plan(*words)
    assert found.exit_code == 2
    assert sentence in found.stderr


def saved_group(**changes):
    """A file of `assignor inspect --save` of a group with the first topology of the page."""
    return {
        "name": "shop",
        "topics": {"words": {"partitions": 2}},
        "subtopologies": {"0": {"sources": ["words"], "changelogs": ["shop-counts-changelog"]}},
        "clients": {"a": {"active": ["0_0", "0_1"]}},
    } | changes


def saved(folder, file="group.json", **changes):
    path = folder / file
    path.write_text(json.dumps(saved_group(**changes)), encoding="utf-8")
    return str(path)


def test_a_saved_group_is_the_old_side_and_gives_the_prefix(tmp_path):
    found = plan("--topology", saved(tmp_path), f"{PAGE}:SECOND", "--format", "json")
    assert found.exit_code == 0, found.stderr
    document = json.loads(found.stdout)
    [part] = document["subtopologies"]
    assert (part["kind"], part["kept"], part["empty"]) == (
        "changed",
        ["shop-counts-changelog"],
        ["shop-lengths-changelog"],
    )
    same = plan("--topology", saved(tmp_path), f"{PAGE}:FIRST", "--format", "json")
    assert [p["kind"] for p in json.loads(same.stdout)["subtopologies"]] == ["kept"]


def test_two_saved_groups_are_compared_and_repartition_topics_have_no_counts(tmp_path):
    topics = {"words": {"partitions": 2}, "shop-by-word-repartition": {"partitions": 2}}
    more = {
        "0": {"sources": ["words"], "changelogs": ["shop-counts-changelog"]},
        "1": {"sources": ["shop-by-word-repartition"], "changelogs": []},
    }
    new = saved(tmp_path, "new.json", topics=topics, subtopologies=more, topology_version=3)
    found = plan("--topology", saved(tmp_path), new, "--format", "json")
    document = json.loads(found.stdout)
    assert (document["old_version"], document["new_version"]) == (1, 3)
    assert [p["kind"] for p in document["subtopologies"]] == ["kept", "added"]


def test_a_store_that_goes_to_other_sources_is_a_warning(tmp_path):
    """Both subtopologies keep state, each that of the other one."""
    files = []
    for name, stores in (("old.json", ("a", "b")), ("new.json", ("b", "a"))):
        topics = {topic: {"partitions": 2} for topic in ("orders", "words")}
        parts = {
            str(number): {"sources": [source], "changelogs": [f"shop-{store}-changelog"]}
            for number, (source, store) in enumerate(zip(("orders", "words"), stores, strict=True))
        }
        version = {"topology_version": 2} if stores[0] == "b" else {}
        files.append(saved(tmp_path, name, topics=topics, subtopologies=parts, **version))
    warnings = json.loads(plan("--topology", *files, "--format", "json").stdout)["warnings"]
    assert [w for w in warnings if "state is of other input: shop-a-changelog was written by" in w]
    assert len(warnings) == 2


def test_a_saved_group_does_not_know_what_is_written(tmp_path, monkeypatch):
    (tmp_path / "with_sink.py").write_text(
        "from assignor.examples.topologies import counting\n"
        "TOPOLOGY = counting(1, 'counts').add_sink('out', topic='o', parents=['count'])\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = plan("--topology", saved(tmp_path), "with_sink:TOPOLOGY", "--format", "json")
    [part] = json.loads(found.stdout)["subtopologies"]
    assert (part["kind"], part["differs_in_sinks"]) == ("kept", False)


def test_names_that_the_saved_group_does_not_have_are_a_warning(tmp_path):
    parts = {"0": {"sources": ["words"], "changelogs": ["shop-subtopology-0-changelog"]}}
    found = plan("--topology", saved(tmp_path, subtopologies=parts), f"{PAGE}:FIRST")
    assert "does not have the real names of shop-subtopology-0-changelog" in found.stdout
    found = plan("--topology", saved(tmp_path, subtopologies=parts), f"{PAGE}:RENAMED")
    assert "changed: subtopology 0" in found.stdout
    assert "what becomes of their state is not known" in found.stdout
    assert not any(word in found.stdout for word in ("state is lost", "empty:", "orphaned:"))


@pytest.mark.parametrize(
    ("changes", "more", "sentence"),
    [
        ({"topology_version": 0}, (), "topology_version is 0; give a number from 1 to"),
        ({"topology_version": True}, (), "topology_version is True"),
        ({"topology_version": 2**31}, (), "give a number from 1 to 2147483647"),
        ({"name": ""}, (), "has no name"),
        (
            {"subtopologies": {"0": {"sources": ["words"], "changelogs": 1}}},
            (),
            "is int; give a list",
        ),
        (
            {"subtopologies": {"0": {"sources": ["words"]}, "1": {"sources": ["words"]}}},
            (),
            "words is a topic of subtopologies 0 and 1",
        ),
        ({}, ("--application-id", "other"), "these are ['other', 'shop']"),
        ({"clients": {}}, (), "no clients"),
    ],
)
def test_an_invalid_saved_group_is_refused(tmp_path, changes, more, sentence):
    found = plan("--topology", saved(tmp_path, **changes), f"{PAGE}:FIRST", *more)
    assert found.exit_code == 2
    assert sentence in found.stderr
