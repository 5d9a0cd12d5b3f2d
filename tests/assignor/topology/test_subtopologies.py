"""Topology: components, ids in Kafka's order, internal names, and what is refused."""

import pytest

from assignor import Topology, TopologyError


def word_count():
    return (
        Topology()
        .add_source("lines", topics=["lines"])
        .add_processor("split", parents=["lines"])
        .add_repartition_topic("words")
        .add_sink("to-words", topic="words", parents=["split"])
        .add_source("words-source", topics=["words"])
        .add_processor("count", parents=["words-source"])
        .add_state_store("counts", processors=["count"])
    )


def test_topics_do_not_connect_nodes_so_a_repartition_splits_the_topology():
    first, second = word_count().subtopologies("app")
    assert first.nodes == ("lines", "split", "to-words")
    assert first.sink_topics == ("app-words-repartition",)
    assert not first.is_stateful
    assert second.source_topics == ("app-words-repartition",)
    assert second.changelog_topics == ("app-counts-changelog",)
    assert [t.name for t in second.repartition_topics] == ["app-words-repartition"]


def test_subtopologies_are_numbered_by_their_smallest_source_name():
    topology = Topology()
    for name in ("c", "a", "b"):
        topology.add_source(name, topics=[f"topic-{name}"])
    assert [s.nodes for s in topology.subtopologies("app")] == [("a",), ("b",), ("c",)]
    assert [s.id for s in topology.subtopologies("app")] == [0, 1, 2]


def test_a_shared_store_joins_two_branches_into_one_subtopology():
    topology = (
        Topology()
        .add_source("left", topics=["l"])
        .add_source("right", topics=["r"])
        .add_processor("a", parents=["left"])
        .add_processor("b", parents=["right"])
        .add_state_store("joined", processors=["a", "b"])
    )
    (only,) = topology.subtopologies("app")
    assert only.source_topics == ("l", "r")


def test_an_unlogged_store_makes_nothing_stateful_and_an_optimised_one_uses_its_source():
    topology = (
        Topology()
        .add_source("table", topics=["table"])
        .add_processor("p", parents=["table"])
        .add_state_store("cache", processors=["p"], logged=False)
    )
    assert not topology.subtopologies("app")[0].is_stateful
    topology.add_state_store("t", processors=["p"], source_topic="table")
    (only,) = topology.subtopologies("app")
    assert only.changelog_topics == ("table",)
    assert only.source_changelogs == ("table",)


def test_a_store_can_have_a_changelog_that_another_program_named():
    topology = (
        Topology()
        .add_source("table", topics=["table"])
        .add_processor("p", parents=["table"])
        .add_state_store("t", processors=["p"], changelog_topic="other-t", retention_ms=5)
    )
    (only,) = topology.subtopologies("app")
    assert only.changelog_topics == ("other-t",)
    assert only.source_changelogs == ()
    assert only.changelog_retention_ms == (("other-t", 5),)


def test_members_subscribe_to_internal_source_topics_too():
    assert word_count().source_topics("app") == ("app-words-repartition", "lines")


REFUSED = {
    "give one of them": lambda: word_count().add_state_store(
        "s", processors=["count"], changelog_topic="other", source_topic="lines"
    ),
    "not a valid topic name": lambda: word_count().add_state_store(
        "s", processors=["count"], changelog_topic="a b"
    ),
    "already reads topic": lambda: (
        Topology().add_source("a", topics=["x"]).add_source("b", topics=["x"])
    ),
    "reads no topic": lambda: Topology().add_source("a", topics=[]),
    "added twice": lambda: (
        Topology().add_source("a", topics=["x"]).add_processor("a", parents=["a"])
    ),
    "is unknown; add it first": lambda: Topology().add_processor("p", parents=["nobody"]),
    "has no parent": lambda: Topology().add_processor("p", parents=[]),
    "is a sink": lambda: (
        Topology()
        .add_source("a", topics=["x"])
        .add_sink("s", topic="y", parents=["a"])
        .add_processor("p", parents=["s"])
    ),
    "which is not a processor": lambda: (
        Topology().add_source("a", topics=["x"]).add_state_store("s", processors=["a"])
    ),
    "state store 5 has no name; give a text": lambda: Topology().add_state_store(
        5, processors=["a"]
    ),
    "has no processor": lambda: Topology().add_state_store("s", processors=[]),
    "is not a valid topic name": lambda: Topology().add_source("a", topics=["no spaces"]),
    "declared twice": lambda: Topology().add_repartition_topic("r").add_repartition_topic("r"),
    "0 partitions; give 1 or more": lambda: Topology().add_repartition_topic("r", partitions=0),
    "at least two topics": lambda: Topology().copartition("one"),
    "no source": lambda: Topology().subtopologies("app"),
    "no source reads": lambda: (
        Topology().add_source("a", topics=["x"]).copartition("x", "y").subtopologies("app")
    ),
    "read by different subtopologies": lambda: (
        Topology()
        .add_source("a", topics=["x"])
        .add_source("b", topics=["y"])
        .copartition("x", "y")
        .subtopologies("app")
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_topology_that_cannot_be_is_refused_with_a_sentence(sentence):
    with pytest.raises(TopologyError, match=sentence.replace("?", r"\?")):
        REFUSED[sentence]()


def test_a_store_knows_the_topics_that_its_keys_come_from():
    topology = (
        Topology()
        .add_source("a", topics=["left", "right"])
        .add_processor("join", parents=["a"])
        .add_state_store("joined", processors=["join"])
        .add_source("other", topics=["other"])
    )
    assert topology.store_topics("joined", "app") == ("left", "right")
    with pytest.raises(TopologyError, match="no state store 'join'; choose from joined"):
        topology.store_topics("join", "app")


def test_a_retention_below_a_millisecond_is_refused():
    topology = Topology().add_source("a", topics=["a"]).add_processor("p", parents=["a"])
    with pytest.raises(TopologyError, match="retention of 0 ms"):
        topology.add_state_store("s", processors=["p"], retention_ms=0)


def test_a_string_in_place_of_a_list_is_refused():
    with pytest.raises(TopologyError, match=r"one string; give a list: \['words'\]"):
        Topology().add_source("read", topics="words")
    with pytest.raises(TopologyError, match=r"give a list: \['read'\]"):
        Topology().add_source("read", topics=["words"]).add_processor("p", parents="read")
