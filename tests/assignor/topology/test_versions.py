"""Content of subtopologies, comparison of two topologies, and what a program carries."""

import pytest

from assignor import Topology
from assignor.errors import TopologyError
from assignor.topology import content_fingerprint, with_sinks
from assignor.topology.changes import Change, carried_topologies, compare_topologies
from probing.topologies import families


def counting(*, stores=("counts",), source="lines", topic="lines", version=1):
    topology = Topology(version=version).add_source(source, topics=[topic])
    topology.add_processor(f"{source}-count", parents=[source])
    for store in stores:
        topology.add_state_store(store, processors=[f"{source}-count"])
    return topology


def compared(old, new):
    return compare_topologies(old.subtopologies("app"), new.subtopologies("app"))


def kinds(old, new):
    return [change.kind for change in compared(old, new)]


def test_content_is_topics_and_stores_and_neither_numbers_nor_nodes():
    [first] = counting(source="a").subtopologies("app")
    second = counting(source="z").add_source("b", topics=["other"]).subtopologies("app")[1]
    assert (first.id, second.id) == (0, 1)
    assert content_fingerprint(first) == content_fingerprint(second)
    assert len(content_fingerprint(first)) == 8


@pytest.mark.parametrize(
    "other",
    [
        counting(stores=()),
        counting(stores=("totals",)),
        counting(topic="words"),
        counting(stores=("counts", "totals")),
    ],
)
def test_topics_and_stores_change_the_content(other):
    [first], [second] = counting().subtopologies("app"), other.subtopologies("app")
    assert content_fingerprint(first) != content_fingerprint(second)


def test_partitions_of_a_repartition_topic_are_content():
    def of(partitions):
        topology = Topology().add_repartition_topic("r", partitions=partitions)
        return topology.add_source("r", topics=["r"]).subtopologies("app")[0]

    assert content_fingerprint(of(4)) != content_fingerprint(of(8))


def test_a_subtopology_with_another_number_is_kept():
    new = counting().add_source("a-first", topics=["other"])
    assert [
        (c.kind, [p.id for p in c.old], [p.id for p in c.new]) for c in compared(counting(), new)
    ] == [(Change.ADDED, [], [0]), (Change.KEPT, [0], [1])]


def test_added_and_removed_ones_are_told_apart():
    larger = counting().add_source("z", topics=["other"])
    assert kinds(counting(), larger) == [Change.KEPT, Change.ADDED]
    assert kinds(larger, counting()) == [Change.KEPT, Change.REMOVED]


def test_a_second_store_is_a_change_that_keeps_the_first_store():
    [change] = compared(counting(), counting(stores=("counts", "totals")))
    assert change.kind is Change.CHANGED
    assert change.kept_changelogs == ("app-counts-changelog",)
    assert change.new_changelogs == ("app-totals-changelog",)
    assert change.orphaned_changelogs == ()


def test_a_renamed_store_orphans_its_state():
    [change] = compared(counting(), counting(stores=("totals",)))
    assert change.kind is Change.RENAMED
    assert change.orphaned_changelogs == ("app-counts-changelog",)


def test_a_renamed_repartition_topic_keeps_the_store_and_leaves_records():
    def of(name):
        topology = Topology().add_repartition_topic(name).add_source("s", topics=[name])
        topology.add_processor("p", parents=["s"]).add_state_store("counts", processors=["p"])
        return topology

    [change] = compared(of("old"), of("new"))
    assert change.kind is Change.RENAMED
    assert change.kept_changelogs == ("app-counts-changelog",)
    assert change.left_repartition_topics == ("app-old-repartition",)


def test_merged_subtopologies_are_a_change_of_all_of_them():
    apart = Topology().add_source("a", topics=["a"]).add_source("b", topics=["b"])
    merged = Topology().add_source("a", topics=["a"]).add_source("b", topics=["b"])
    merged.add_processor("join", parents=["a", "b"])
    [change] = compared(apart, merged)
    assert (change.kind, len(change.old), len(change.new)) == (Change.CHANGED, 2, 1)


def test_families_are_joined_through_others():
    topics = {1: frozenset("ab"), 2: frozenset("c"), 3: frozenset("bc"), 4: frozenset("d")}
    assert set(families(topics)) == {frozenset({1, 2, 3}), frozenset({4})}


def test_a_program_numbers_its_highest_version_first():
    carried = carried_topologies(
        [counting(), counting(stores=("totals",), version=2).add_source("a", topics=["o"])], "app"
    )
    assert [part.changelog_topics for part in carried.subtopologies] == [
        (),
        ("app-totals-changelog",),
        ("app-counts-changelog",),
    ]
    assert [part.id for part in carried.subtopologies] == [0, 1, 2]
    assert carried.versions == ((2,), (2,), (1,))
    assert carried.all_versions == (1, 2)


def test_what_two_versions_contain_is_carried_once():
    carried = carried_topologies([counting(version=2), counting()], "app")
    assert carried.versions == ((1, 2),)
    assert not carried.is_plain
    assert carried_topologies([counting()], "app").is_plain


def test_one_version_twice_and_no_topology_are_refused():
    with pytest.raises(TopologyError, match="two topologies have version 1"):
        carried_topologies([counting(), counting()], "app")
    with pytest.raises(TopologyError, match="at least one"):
        carried_topologies([], "app")


@pytest.mark.parametrize("version", [0, -1, True, "2", 2**31, 1.0])
def test_a_version_is_a_whole_number_from_one(version):
    with pytest.raises(TopologyError, match="of a topology is refused"):
        Topology(version=version)


def piped(version, topic):
    built = Topology(version=version).add_source("read", topics=["lines"])
    built.add_repartition_topic(topic).add_sink("write", topic=topic, parents=["read"])
    built.add_source("again", topics=[topic]).add_processor("count", parents=["again"])
    return built.add_state_store("counts", processors=["count"])


def test_a_program_carries_no_two_versions_of_which_one_task_writes_different_topics():
    assert len(carried_topologies([piped(1, "r")], "app").subtopologies) == 2
    why = (
        "versions 1 and 2 both have the subtopology that reads lines, and it writes"
        " app-r-repartition in the first one and app-s-repartition in the second one"
    )
    with pytest.raises(TopologyError, match=why):
        carried_topologies([piped(1, "r"), piped(2, "s")], "app")


def test_a_program_may_carry_a_version_with_another_branch():
    """The branch reads a topic of its own, which is read whenever it is written."""
    plain = Topology().add_source("read", topics=["lines"])
    branch = Topology(version=2).add_source("read", topics=["lines"]).add_repartition_topic("r")
    branch.add_sink("write", topic="r", parents=["read"]).add_source("again", topics=["r"])
    carried = carried_topologies([plain, branch], "app")
    assert sorted(carried.versions) == [(1, 2), (2,)]


def test_topics_that_a_subtopology_writes_can_be_added():
    [part] = Topology().add_source("read", topics=["lines"]).subtopologies("app")
    form = content_fingerprint(part)
    [more] = with_sinks([part], {form: {"out"}})
    assert more.sink_topics == ("out",)
    assert content_fingerprint(more) == form
    assert with_sinks([more], {form: {"out"}}) == (more,)
    assert with_sinks([part], {}) == (part,)
