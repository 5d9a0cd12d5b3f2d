"""Partition counts and tasks: derivation, copartitioning, unknown topics."""

import pytest

from assignor import Topology
from assignor.errors import CopartitionMismatch, PartitionCountUnknown
from assignor.topology import plan_tasks
from encoding import TaskId, TopicPartition


def chain(*, partitions=None):
    """In -> (repartition a) -> (repartition b) -> count, wired back to front."""
    return (
        Topology()
        .add_repartition_topic("a", partitions=partitions)
        .add_repartition_topic("b")
        .add_source("z-in", topics=["in"])
        .add_sink("to-a", topic="a", parents=["z-in"])
        .add_source("y-a", topics=["a"])
        .add_sink("to-b", topic="b", parents=["y-a"])
        .add_source("x-b", topics=["b"])
        .add_processor("count", parents=["x-b"])
        .add_state_store("counts", processors=["count"])
        .subtopologies("app")
    )


def test_chained_repartition_topics_take_the_count_of_what_feeds_them():
    plan = plan_tasks(chain(), {"in": 3})
    assert plan.partition_counts == {
        "in": 3,
        "app-a-repartition": 3,
        "app-b-repartition": 3,
        "app-counts-changelog": 3,
    }
    assert plan.stateful_tasks == {TaskId(0, p) for p in range(3)}


def test_a_count_that_was_asked_for_wins_and_flows_on():
    counts = plan_tasks(chain(partitions=7), {"in": 3}).partition_counts
    assert counts["app-a-repartition"] == counts["app-b-repartition"] == 7


def test_a_task_reads_its_partition_of_every_topic_that_has_one():
    topology = Topology().add_source("s", topics=["wide", "narrow"]).subtopologies("app")
    plan = plan_tasks(topology, {"wide": 3, "narrow": 1})
    assert plan.partitions_by_task == {
        TaskId(0, 0): (TopicPartition("narrow", 0), TopicPartition("wide", 0)),
        TaskId(0, 1): (TopicPartition("wide", 1),),
        TaskId(0, 2): (TopicPartition("wide", 2),),
    }
    assert plan.task_by_partition[TopicPartition("wide", 2)] == TaskId(0, 2)


def test_an_unknown_topic_is_a_normal_state_and_stops_only_what_it_feeds():
    topology = (
        Topology()
        .add_source("known", topics=["known"])
        .add_source("unknown", topics=["unknown"])
        .add_repartition_topic("r")
        .add_sink("to-r", topic="r", parents=["unknown"])
        .add_source("v-r", topics=["r"])
        .subtopologies("app")
    )
    plan = plan_tasks(topology, {"known": 1, "unknown": 0})
    assert plan.unknown_topics == ("unknown",)
    assert list(plan.partitions_by_task) == [TaskId(0, 0)]


def test_repartition_topics_that_only_feed_each_other_end_in_an_error_not_in_a_loop():
    topology = (
        Topology()
        .add_repartition_topic("a")
        .add_repartition_topic("b")
        .add_source("a", topics=["a"])
        .add_sink("to-b", topic="b", parents=["a"])
        .add_source("b", topics=["b"])
        .add_sink("to-a", topic="a", parents=["b"])
        .subtopologies("app")
    )
    with pytest.raises(PartitionCountUnknown, match="app-a-repartition, app-b-repartition"):
        plan_tasks(topology, {})


def joined(*topics, repartition=()):
    topology = Topology()
    for name, partitions in repartition:
        topology.add_repartition_topic(name, partitions=partitions)
    for topic in topics:
        topology.add_source(f"s-{topic}", topics=[topic])
    topology.add_processor("join", parents=[f"s-{topic}" for topic in topics])
    return topology.copartition(*topics)


def test_external_topics_that_are_joined_must_agree():
    with pytest.raises(CopartitionMismatch) as caught:
        plan_tasks(joined("a", "b").subtopologies("app"), {"a": 2, "b": 3})
    assert caught.value.partition_counts == {"a": 2, "b": 3}
    assert "a has 2, b has 3" in str(caught.value)


def test_a_repartition_topic_follows_the_external_topic_it_is_joined_with():
    topology = joined("a", "r", repartition=[("r", None)])
    topology.add_source("in", topics=["in"]).add_sink("to-r", topic="r", parents=["in"])
    counts = plan_tasks(topology.subtopologies("app"), {"a": 5, "in": 2}).partition_counts
    assert counts["app-r-repartition"] == 5


def test_a_repartition_topic_with_a_fixed_count_must_agree():
    topology = joined("a", "r", repartition=[("r", 4)])
    with pytest.raises(CopartitionMismatch):
        plan_tasks(topology.subtopologies("app"), {"a": 5})


def test_joined_repartition_topics_take_the_largest_count():
    topology = joined("q", "r", repartition=[("q", None), ("r", None)])
    topology.add_source("i", topics=["i"]).add_sink("to-q", topic="q", parents=["i"])
    topology.add_source("j", topics=["j"]).add_sink("to-r", topic="r", parents=["j"])
    counts = plan_tasks(topology.subtopologies("app"), {"i": 2, "j": 6}).partition_counts
    assert counts["app-q-repartition"] == counts["app-r-repartition"] == 6
