"""Described groups: captured ones, constructed ones, and ones on a broker."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from struct import pack
from uuid import UUID

from assignor.inspection.values import ClusterFacts, DescribedGroup, DescribedMember, TopicFacts
from encoding import (
    Assignment,
    Subscription,
    TaskOffsetSums,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from system_tests.broker import BrokerConfig
from system_tests.coordinator import CoordinatorConfig, JoinGroup, Protocol, SyncGroup

CAPTURED = Path(__file__).parent / "described"
# Time for all members to join the first generation; no session may expire.
PLACING = BrokerConfig(
    coordinator=CoordinatorConfig(initial_rebalance_delay_ms=300, max_session_timeout_ms=3_600_000)
)
# For `group_of`: a topic of two partitions, with a lag of ten records.
FACTS = ClusterFacts(
    topics={"in": TopicFacts(partitions=2)},
    committed={TopicPartition("in", 0): 5, TopicPartition("in", 1): 7},
    end_offsets={TopicPartition("in", 0): 15, TopicPartition("in", 1): 7},
    record_limit=1_000_000,
)


def captured(name):
    """A captured group and the captured facts of its cluster."""
    data = json.loads((CAPTURED / f"{name}.json").read_text(encoding="utf-8"))
    members = [
        DescribedMember(
            **row | {blob: bytes.fromhex(row[blob]) for blob in ("metadata", "assignment")}
        )
        for row in data["members"]
    ]
    group = DescribedGroup(
        group_id=data["group"],
        state=data["state"],
        protocol_type=data["type"],
        protocol_name=data["protocol"],
        members=tuple(members),
    )
    facts = ClusterFacts(
        topics={name: TopicFacts(partitions=count) for name, count in data["topics"].items()},
        committed={partition(key): offset for key, offset in data["committed"].items()},
        end_offsets={partition(key): offset for key, offset in data["ends"].items()},
        record_limit=data["limit"],
    )
    return group, facts


def partition(key):
    topic, number = key.split("|")
    return TopicPartition(topic, int(number))


def text(value):
    if value is None:
        return pack(">h", -1)
    data = value.encode()
    return pack(">h", len(data)) + data


def partitions_bytes(partitions):
    by_topic = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return pack(">i", len(by_topic)) + b"".join(
        text(topic) + pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in by_topic.items()
    )


def metadata_bytes(user_data, *, version=3, topics=("in",), owned=(), generation=-1, rack=None):
    parts = [pack(">hi", version, len(topics)), *map(text, topics)]
    parts.append(pack(">i", len(user_data)) + user_data)
    if version >= 1:
        parts.append(partitions_bytes(owned))
    if version >= 2:
        parts.append(pack(">i", generation))
    if version >= 3:
        parts.append(text(rack))
    return b"".join(parts)


def assignment_bytes(user_data, partitions=(), *, version=3):
    head = pack(">h", version) + partitions_bytes(partitions)
    return head + pack(">i", len(user_data)) + user_data


def member(
    name,
    *,
    process=None,
    used=11,
    supported=11,
    consumer=3,
    active=(),
    standby=(),
    inputs="in",
    sums=(),
    rack=None,
    thread=1,
    host="10.0.0.1",
    group="app",
    topics=("in",),
    answer=None,
    native=None,
    **fields,
):
    """A member of a group `app` whose tasks read the topic `in`, task S_P its partition P."""
    number = process if process is not None else sum(name.encode())
    subscription = Subscription(
        version=used,
        latest_supported_version=supported,
        process_id=UUID(int=number),
        task_offset_sums=TaskOffsetSums.from_mapping(dict(sums)),
        native=native,
        **fields,
    )
    given = {"version": min(used, 11), "commonly_supported_version": max(supported, -1)}
    partitions = [TopicPartition(inputs, task.partition) for task in active]
    assigned = Assignment(
        active_tasks=tuple(active),
        standby_tasks={task: (TopicPartition(inputs, task.partition),) for task in standby},
        **given | (answer or {}),
    )
    return DescribedMember(
        member_id=f"{group}-{name}-StreamThread-{thread}-consumer-{number}",
        client_id=f"{group}-{name}-StreamThread-{thread}-consumer",
        client_host=host,
        metadata=metadata_bytes(
            encode_subscription(subscription), version=consumer, topics=topics, rack=rack
        ),
        assignment=assignment_bytes(encode_assignment(assigned), partitions, version=3),
    )


def group_of(*members, **changes):
    """A stable Streams group `app`."""
    group = DescribedGroup(
        group_id="app",
        state="Stable",
        protocol_type="consumer",
        protocol_name="stream",
        members=members,
    )
    return replace(group, **changes)


def place(broker, group):
    """Let the members of a group join a running broker (with `PLACING`) and sync."""
    return broker.run(_placed(broker._broker.cluster, group))


def knock(broker, group):
    """Let the first member of a group join without reading the response."""
    request, token = _join(group, group.members[0]), object()
    broker.call(
        lambda inner: inner.cluster.coordinator.handle(
            request, token=token, now_ms=inner.cluster.now_ms()
        )
    )


async def _placed(cluster, group):
    joined = await asyncio.gather(
        *(cluster.ask(_join(group, described)) for described in group.members)
    )
    blob_by_id = {
        answer.member_id: described.assignment
        for answer, described in zip(joined, group.members, strict=True)
    }
    await asyncio.gather(
        *(
            cluster.ask(
                SyncGroup(
                    group_id=group.group_id,
                    member_id=answer.member_id,
                    generation=answer.generation,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    assignments=blob_by_id if answer.leader_id == answer.member_id else {},
                )
            )
            for answer in joined
        )
    )
    return {answer.generation for answer in joined}


def _join(group, described):
    return JoinGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        protocols=(Protocol(group.protocol_name, described.metadata),),
        session_timeout_ms=3_600_000,
        rebalance_timeout_ms=3_600_000,
        member_id="",
        instance_id=described.instance_id,
        client_id=described.client_id,
        client_host=described.client_host,
        needs_known_member_id=False,
        may_skip_assignment=False,
        reason="",
    )
