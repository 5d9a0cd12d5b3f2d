"""Requests about groups to a live cluster; the results are values of `assignor.inspection`.

kafka-python's own methods decode user data as text, so this module sends the protocol requests
itself and keeps the bytes. If the user may not read offsets, topics or settings, that part is
unknown, and a sentence says so; the group is still shown.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import BrokerResponseError, IncompatibleBrokerVersion, for_code
from kafka.protocol.admin import DescribeConfigsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from assignor.adapters.admin.client import Admin, BrokerError, NotAuthorized
from assignor.inspection import (
    ClusterFacts,
    DescribedGroup,
    DescribedMember,
    TopicFacts,
    is_settling,
)
from encoding import TopicPartition

_GROUP_ID_NOT_FOUND: Final = 69
_LOOK_S: Final = 0.2
_OFFSETS_TOPIC: Final = "__consumer_offsets"
_TOPIC_RESOURCE: Final = 2
_LIMIT_NAME: Final = "max.message.bytes"
LATEST: Final = -1
"""In ListOffsets: the end offset."""
EARLIEST: Final = -2
"""In ListOffsets: the first offset."""
_MOVED: Final = (3, 5, 6, 9)
"""Error codes of a partition whose leader moves to another broker."""
_DIGITS_MOST: Final = 10
"""Most digits of max.message.bytes."""


def list_groups(admin: Admin) -> list[DescribedGroup]:
    """Return every group of the cluster, sorted, without members.

    Types and states are empty if the brokers do not report them.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> list[DescribedGroup]:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        found = {}
        for broker in manager.cluster.brokers():
            response = await manager.send(ListGroupsRequest(min_version=0), node_id=broker.node_id)
            raise_for(response.error_code)
            for row in response.groups:
                found[row.group_id] = DescribedGroup(
                    group_id=row.group_id,
                    state=str(row.group_state or ""),
                    protocol_type=str(row.protocol_type or ""),
                    group_type=str(row.group_type or "").lower(),
                )
        return [found[group_id] for group_id in sorted(found)]

    return admin.ask("list the groups", ask)


def describe_group(admin: Admin, group_id: str) -> DescribedGroup:
    """Return one group with its members' metadata bytes; an unknown group has state `Dead`.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> DescribedGroup:
        manager = client._manager  # noqa: SLF001 as above
        try:
            nodes = await client._find_coordinator_ids([group_id])  # noqa: SLF001 as above
            request = DescribeGroupsRequest(
                groups=[group_id], include_authorized_operations=False, max_version=5
            )
            row = (await manager.send(request, node_id=nodes[group_id])).groups[0]
            raise_for(row.error_code, fine=(_GROUP_ID_NOT_FOUND,))
        except BrokerResponseError:
            # The coordinator may have moved; look it up again at the next try.
            manager.cluster._coordinators.clear()  # noqa: SLF001 the client has no other way
            raise
        return _group(row)

    return admin.ask(f"describe group {group_id}", ask)


def describe_settled(admin: Admin, group_id: str) -> DescribedGroup:
    """Return one group as soon as it is in no rebalance, at the latest after half the time limit.

    A coordinator shows the bytes of members only while the group is stable.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """
    end = time.monotonic() + admin.target.timeout_ms / 2000
    group = describe_group(admin, group_id)
    while is_settling(group) and time.monotonic() < end:
        time.sleep(_LOOK_S)
        group = describe_group(admin, group_id)
    return group


def settled_members(admin: Admin, group_id: str) -> tuple[DescribedMember, ...]:
    """Return the members of a group with their bytes.

    Raises:
        BrokerError: a rebalance did not end within half the time limit, or as in `Admin.ask`.
        NotAuthorized: as in `Admin.ask`.
    """
    group = describe_settled(admin, group_id)
    if is_settling(group):
        raise BrokerError(
            f"group {group_id} is still in a rebalance ({group.state}) after"
            f" {admin.target.timeout_ms / 2000:g} s, so what its members have written is not"
            " known; try again, or raise --timeout"
        )
    return group.members


def cluster_facts(
    admin: Admin, group_id: str, topics_of: Callable[[Iterable[str]], set[str]]
) -> ClusterFacts:
    """Return a group's topics and offsets, and the size limit of the group's record.

    Args:
        admin: the connected admin client.
        group_id: the group id.
        topics_of: selects the group's topics from all topic names.

    Raises:
        BrokerError: the cluster does not answer.
    """
    unknown: list[str] = []
    described = if_authorized(unknown, None, lambda: topic_facts(admin, topics_of))
    topics = described or {}
    committed = if_authorized(unknown, {}, lambda: committed_offsets(admin, group_id))
    partitions = {
        TopicPartition(topic, number)
        for topic, facts in topics.items()
        for number in range(facts.partitions)
    }
    ends = if_authorized(unknown, {}, lambda: offsets_at(admin, partitions, LATEST))
    limit = if_authorized(unknown, None, lambda: _record_limit(admin))
    return ClusterFacts(
        topics=topics,
        has_topics=described is not None,
        committed=committed,
        end_offsets=ends,
        record_limit=limit,
        unknown=tuple(unknown),
    )


def if_authorized(unknown: list[str], otherwise: Any, ask: Callable[[], Any]) -> Any:
    """Return what `ask` returns; if it lacks rights, `otherwise`, and add why to `unknown`."""
    try:
        return ask()
    except NotAuthorized as error:
        unknown.append(str(error))
        return otherwise


def _group(row: Any) -> DescribedGroup:
    return DescribedGroup(
        group_id=str(row.group_id),
        state=str(row.group_state or "Dead"),
        protocol_type=str(row.protocol_type or ""),
        protocol_name=str(row.protocol_data or ""),
        members=tuple(
            DescribedMember(
                member_id=str(member.member_id),
                instance_id=member.group_instance_id,
                client_id=str(member.client_id),
                client_host=str(member.client_host).removeprefix("/"),
                metadata=bytes(member.member_metadata or b""),
                assignment=bytes(member.member_assignment or b""),
            )
            for member in row.members
        ),
    )


def topic_facts(
    admin: Admin, topics_of: Callable[[Iterable[str]], set[str]]
) -> dict[str, TopicFacts]:
    """Return the topics that `topics_of` selects from all names, as far as they may be described.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> dict[str, TopicFacts]:
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False, max_version=9)
        answer = await client._manager.send(request)  # noqa: SLF001 as above
        racks = {broker.node_id: broker.rack for broker in answer.brokers}
        rows = {row.name: row for row in answer.topics if not row.error_code}
        return {
            name: TopicFacts(
                partitions=len(rows[name].partitions), racks=_racks(rows[name].partitions, racks)
            )
            for name in sorted(topics_of(rows) & rows.keys())
        }

    return admin.ask("show the topics", ask)


def _racks(rows: Sequence[Any], racks: Mapping[int, str | None]) -> dict[int, frozenset[str]]:
    found = {}
    for row in rows:
        named = {racks.get(node) for node in row.replica_nodes}
        if None not in named and named:
            found[int(row.partition_index)] = frozenset(str(rack) for rack in named)
    return found


def committed_with_epochs(
    admin: Admin, group_id: str
) -> dict[TopicPartition, tuple[int, int | None]]:
    """Return a group's committed offsets, each with the leader epoch of the commit.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> dict[TopicPartition, tuple[int, int | None]]:
        found = await client._async_list_group_offsets({group_id: None})  # noqa: SLF001 as above
        return {
            TopicPartition(partition.topic, partition.partition): (
                int(row.offset),
                None if row.leader_epoch is None else int(row.leader_epoch),
            )
            for partition, row in found[group_id].items()
        }

    return admin.ask(f"show the offsets of group {group_id}", ask)


def committed_offsets(admin: Admin, group_id: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """
    found = committed_with_epochs(admin, group_id)
    return {partition: offset for partition, (offset, _) in found.items()}


def offsets_at(
    admin: Admin, partitions: set[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    """Return the end offsets (`LATEST`) or first offsets (`EARLIEST`) of partitions.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        wanted = [KafkaPartition(*partition) for partition in sorted(partitions)]
        leaders = await client._async_get_leader_for_partitions(wanted)  # noqa: SLF001 as above
        found: dict[TopicPartition, int] = {}
        for node, own in sorted(leaders.items()):
            response = await client._manager.send(_offsets_request(own, timestamp), node_id=node)  # noqa: SLF001 as above
            for topic in response.topics:
                for row in topic.partitions:
                    # The offset of a partition that moves stays unknown.
                    raise_for(row.error_code, fine=_MOVED)
                    if not row.error_code:
                        found[TopicPartition(topic.name, row.partition_index)] = int(row.offset)
        return found

    return admin.ask("show end offsets" if timestamp == LATEST else "show first offsets", ask)


def _offsets_request(partitions: Iterable[KafkaPartition], timestamp: int) -> ListOffsetsRequest:
    topic_row = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return ListOffsetsRequest(
        isolation_level=0,
        topics=[
            topic_row(
                name=topic,
                partitions=[
                    topic_row.ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic.items()
        ],
        min_version=1,
    )


def _record_limit(admin: Admin) -> int | None:
    """Return max.message.bytes of the offsets topic; None if it cannot be read."""

    async def ask(client: KafkaAdminClient) -> int | None:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=_OFFSETS_TOPIC,
                    configuration_keys=[_LIMIT_NAME],
                )
            ]
        )
        try:
            response = await client._manager.send(request)  # noqa: SLF001 as above
        except IncompatibleBrokerVersion:
            return None
        for row in response.results:
            raise_for(row.error_code, fine=_MOVED)
            for setting in row.configs or ():
                if setting.name == _LIMIT_NAME and _is_count(str(setting.value)):
                    return int(setting.value)
        return None

    return admin.ask("describe the settings of the offsets topic", ask)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST


def raise_for(error_code: int, fine: Sequence[int] = ()) -> None:
    """Raise the client's error for an error code; codes in `fine` are accepted."""
    if error_code and error_code not in fine:
        raise for_code(error_code)
