"""Streams groups as a coordinator describes them, for tests."""

from assignor.inspection import (
    DescribedStreamsGroup,
    InternalTopic,
    StreamsFacts,
    StreamsGroupMember,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
)
from encoding import TopicPartition

ALL = "0_0 0_1 1_0 1_1"
PARTS = (
    StreamsSubtopology(
        subtopology_id="0", source_topics=("in",), repartition_sink_topics=("g-counts-repartition",)
    ),
    StreamsSubtopology(
        subtopology_id="1",
        repartition_source_topics=(InternalTopic(name="g-counts-repartition", partitions=2),),
        state_changelog_topics=(InternalTopic(name="g-counts-changelog", partitions=2),),
    ),
)
SIZES = {"in": 2, "g-counts-repartition": 2, "g-counts-changelog": 2}


def tasks(text):
    return tuple(StreamsTask(*_split(word)) for word in text.split())


def _split(word):
    subtopology, _, partition = word.rpartition("_")
    return subtopology, int(partition)


def member(name, current, target=None, **fields):
    return StreamsGroupMember(
        member_id=f"id-{name}",
        member_epoch=3,
        client_id=f"{name}-StreamThread-1-consumer",
        client_host="127.0.0.1",
        process_id=f"process-{name}",
        current=StreamsTasks(active=tasks(current)),
        target=StreamsTasks(active=tasks(current if target is None else target)),
        **fields,
    )


def group(*members, **fields):
    wanted = {
        "state": "Stable",
        "group_epoch": 3,
        "assignment_epoch": 3,
        "topology_epoch": 0,
        "subtopologies": PARTS,
        "coordinator": "localhost:9092 (1)",
    }
    return DescribedStreamsGroup(group_id="g", members=members, **(wanted | fields))


def facts(**fields):
    partitions = [TopicPartition(t, n) for t in ("in", "g-counts-repartition") for n in (0, 1)]
    wanted = {
        "partitions": SIZES,
        "committed": dict.fromkeys(partitions, (5, 0)),
        "starts": dict.fromkeys(partitions, 1),
        "ends": dict.fromkeys(partitions, 9),
    }
    return StreamsFacts(**(wanted | fields))
