"""Descriptions of groups of a live cluster; the results are values of `assignor.inspection`.

kafka-python's own methods decode user data as text, so this module sends the protocol requests
itself and keeps the bytes.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from assignor.adapters.admin.client import Admin, BrokerError
from assignor.adapters.admin.coordinators import (
    GROUP_ID_NOT_FOUND,
    Row,
    answer_of,
    ask_coordinators,
    error_of,
)
from assignor.inspection import DescribedGroup, DescribedMember, is_settling

_LOOK_S: Final = 0.2


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
            if error := error_of(response.error_code):
                raise error
            for row in response.groups:
                found[row.group_id] = DescribedGroup(
                    group_id=row.group_id,
                    state=str(row.group_state or ""),
                    protocol_type=str(row.protocol_type or ""),
                    group_type=str(row.group_type or "").lower(),
                )
        return [found[group_id] for group_id in sorted(found)]

    return admin.ask("list the groups", ask)


def describe_groups(admin: Admin, group_ids: Sequence[str]) -> dict[str, Any]:
    """Return each group with its members' metadata bytes; an unknown group has state `Dead`.

    A group that may not be described has its `BrokerError` instead.

    Raises:
        BrokerError: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient, node: int, own: Sequence[str]) -> Iterator[Row]:
        request = DescribeGroupsRequest(
            groups=list(own), include_authorized_operations=False, max_version=5
        )
        response = await client._manager.send(request, node_id=node)  # noqa: SLF001 as above
        is_fine = (0, GROUP_ID_NOT_FOUND)
        return (
            Row(row.group_id, 0 if row.error_code in is_fine else row.error_code, _group(row))
            for row in response.groups
        )

    return ask_coordinators(admin, "describe group {}", group_ids, ask)


def describe_group(admin: Admin, group_id: str) -> DescribedGroup:
    """Return one group with its members' metadata bytes; an unknown group has state `Dead`.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """
    group: DescribedGroup = answer_of(describe_groups(admin, [group_id])[group_id])
    return group


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
