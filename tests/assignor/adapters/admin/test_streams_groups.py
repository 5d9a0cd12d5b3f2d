"""Descriptions of streams groups on the wire, and what is rejected at the boundary."""

from types import SimpleNamespace

import pytest

from assignor.adapters.admin import Refused, streams_groups
from assignor.adapters.admin.coordinators import answer_of
from assignor.adapters.admin.messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from assignor.adapters.admin.streams_groups import (
    PARTITIONS_MOST,
    InvalidDescription,
    read_streams_group,
)

Group = StreamsGroupDescribeResponse.DescribedGroup
Member = Group.Member
Assignment = Member.Assignment
TaskIds = Assignment.TaskIds
Topology = Group.Topology
Part = Topology.Subtopology


def assignment(*rows):
    ids = [TaskIds(subtopology_id=name, partitions=list(numbers)) for name, numbers in rows]
    return Assignment(active_tasks=ids, standby_tasks=[], warmup_tasks=[])


def member(member_id="m", *rows, **fields):
    wanted = {
        "member_id": member_id,
        "member_epoch": 2,
        "instance_id": None,
        "rack_id": None,
        "client_id": "a-StreamThread-1-consumer",
        "client_host": "/127.0.0.1",
        "topology_epoch": 0,
        "process_id": "p",
        "user_endpoint": Member.Endpoint(host="h", port=65_535),
        "client_tags": [Member.KeyValue(key="zone", value="z")],
        "task_offsets": [],
        "task_end_offsets": [],
        "assignment": assignment(*rows),
        "target_assignment": assignment(*rows),
        "is_classic": False,
    }
    return Member(**(wanted | fields))


def described(*members, parts=("0",), sizes=(4,), sources=("in",), **fields):
    wanted = {
        "error_code": 0,
        "error_message": None,
        "group_id": "g",
        "group_state": "Stable",
        "group_epoch": 2,
        "assignment_epoch": 2,
        "topology": Topology(
            epoch=0,
            subtopologies=[
                Part(
                    subtopology_id=name,
                    source_topics=list(sources),
                    repartition_sink_topics=[],
                    state_changelog_topics=[
                        Part.TopicInfo(
                            name="g-s-changelog",
                            partitions=size,
                            replication_factor=-1,
                            topic_configs=[],
                        )
                        for size in sizes
                    ],
                    repartition_source_topics=[],
                )
                for name in parts
            ],
        ),
        "members": list(members),
        "authorized_operations": 0,
    }
    return Group(**(wanted | fields))


def through_the_wire(group, version=0):
    """Encode a response and decode it, as a client does."""
    response = StreamsGroupDescribeResponse(throttle_time_ms=0, groups=[group])
    data = response.encode(version=version)
    return StreamsGroupDescribeResponse.decode(data, version=version).groups[0]


def test_a_description_comes_back_from_the_wire():
    request = StreamsGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)
    assert request.API_KEY == 89
    # Compact array of one compact string, a boolean, no tagged fields.
    assert request.encode(version=0) == b"\x02\x02g\x01\x00"
    row = through_the_wire(described(member("m", ("0", [3, 1]))))
    group = read_streams_group(row, "h:9092 (1)")
    [found] = group.members
    assert list(map(str, found.current.active)) == ["0_1", "0_3"]
    assert (found.endpoint, found.tags, found.client_host) == (
        "h:65535",
        {"zone": "z"},
        "127.0.0.1",
    )
    assert group.subtopologies[0].state_changelog_topics[0].partitions == 4
    assert (group.state, group.topology_epoch, group.coordinator) == ("Stable", 0, "h:9092 (1)")


def test_an_unknown_group_is_dead_and_a_topology_may_be_missing():
    dead = described(error_code=69, group_state="", topology=None)
    assert read_streams_group(through_the_wire(dead), "").state == "Dead"
    fresh = read_streams_group(through_the_wire(described(topology=None)), "")
    assert (fresh.topology_epoch, fresh.subtopologies) == (None, None)
    waiting = described(topology=Topology(epoch=1, subtopologies=None))
    assert read_streams_group(through_the_wire(waiting), "").subtopologies is None


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (described(group_state="\x1b[2J"), "state \\x1b[2J"),
        (described(member("m"), member("m")), "member m twice"),
        (described(member("m", ("0", [1, 1]))), "task 0_1 twice"),
        (described(member("m", ("0", [-1]))), "partition -1 of 0"),
        (described(member("m", ("0", [PARTITIONS_MOST]))), "partition 1000000 of 0"),
        (described(parts=("0", "0")), "subtopology 0 twice"),
        (
            described(
                member("m0", ("0", range(100))),
                member("m1", ("0", [100])),
                sources=[f"t{number}" for number in range(9_901)],
            ),
            "active tasks that read 1000001 partitions",
        ),
        (described(sizes=(-1,)), "-1 partitions of g-s-changelog"),
    ],
)
def test_what_no_coordinator_sends_is_rejected_with_a_sentence(group, sentence):
    with pytest.raises(InvalidDescription) as caught:
        read_streams_group(through_the_wire(group), "")
    assert sentence in str(caught.value)
    assert "check what listens at the bootstrap server" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def with_null(path):
    """A group in which one field is null, by its path."""
    group = described(member("m", ("0", [1])))
    *parents, last = path.split(".")
    row = group
    for name in parents:
        row = getattr(row, name)
        row = row[0] if isinstance(row, list) else row
    setattr(row, last, None)
    return group


NULLS = {
    "members": "members",
    "members.member_id": "member_id of a member",
    "members.process_id": "process_id of a member",
    "members.client_tags": "client_tags of a member",
    "members.task_offsets": "task_offsets of a member",
    "members.assignment": "assignment of a member",
    "members.target_assignment.standby_tasks": "standby tasks",
    "members.assignment.active_tasks.partitions": "partitions of active tasks",
    "topology.subtopologies.source_topics": "source_topics of subtopology 0",
    "topology.subtopologies.state_changelog_topics.topic_configs": "configs of g-s-changelog",
}


@pytest.mark.parametrize("path", NULLS)
def test_null_is_rejected_where_no_coordinator_sends_it(path):
    with pytest.raises(InvalidDescription, match=f"with null as {NULLS[path]}: not a"):
        read_streams_group(with_null(path), "")


def test_a_feature_that_is_not_finalized_is_named():
    row = SimpleNamespace(group_id="g", error_code=35)
    found = streams_groups._as_row("b:1", row, "", 1)
    with pytest.raises(Refused, match=r"group g: streams\.version is not finalized"):
        answer_of(found.content)
    twice = streams_groups._as_row("b:1", row, "", 2)
    with pytest.raises(InvalidDescription, match="describes g 2 times"):
        answer_of(twice.content)


def test_version_1_names_the_assignor_and_version_0_does_not():
    found = {}
    for version in (0, 1):
        row = described(assignor_name="sticky")
        group = through_the_wire(row, version)
        found[version] = read_streams_group(group, "broker:9092 (1)").assignor
    assert found == {0: None, 1: "sticky"}
