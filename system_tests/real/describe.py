"""What a real broker says about a group: the raw blobs of its members, decoded by us.

An observer's view: it works for groups without any member of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from encoding import (
    Assignment,
    FutureSubscription,
    Subscription,
    decode_assignment,
    decode_subscription,
)

_THREAD_SUFFIX = "-StreamThread-"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """One member: what it wrote when it last joined, and what it was answered.

    Attributes:
        client: its client id, without what Kafka Streams appends for a thread.
    """

    client: str
    member_id: str
    subscription: Subscription | FutureSubscription
    assignment: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """The group's state as the coordinator spells it, and its members if it is `Stable`."""

    state: str
    members: tuple[DescribedMember, ...]

    @property
    def used_versions(self) -> Mapping[str, int]:
        """Client -> the version that its subscription is written in."""
        return {member.client: member.subscription.version for member in self.members}

    @property
    def answered_versions(self) -> Mapping[str, int]:
        """Client -> the version that it was answered in."""
        return {member.client: member.assignment.version for member in self.members}


def describe_group(bootstrap_servers: str, group_id: str) -> DescribedGroup:
    """Ask the coordinator.

    Raises:
        KafkaError: no broker answers.
        DecodeError: a member of the group does not speak our protocol.
    """
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        # The client's own method returns the blobs as escaped text.
        group = admin._manager.run(_ask, admin, group_id)  # noqa: SLF001 no public way to the bytes
    finally:
        admin.close()
    members = group.members if group.group_state == "Stable" else ()
    return DescribedGroup(
        state=group.group_state,
        members=tuple(
            sorted((_member(member) for member in members), key=lambda member: member.client)
        ),
    )


async def _ask(admin: Any, group_id: str) -> Any:
    coordinators = await admin._find_coordinator_ids([group_id])  # noqa: SLF001 as above
    request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=False)
    response = await admin._manager.send(request, node_id=coordinators[group_id])  # noqa: SLF001 as above
    return response.groups[0]


def _member(member: Any) -> DescribedMember:
    subscribed = ConsumerProtocolSubscription.decode(member.member_metadata)
    assigned = ConsumerProtocolAssignment.decode(member.member_assignment)
    return DescribedMember(
        client=str(member.client_id).split(_THREAD_SUFFIX)[0],
        member_id=str(member.member_id),
        subscription=decode_subscription(bytes(subscribed.user_data or b"")),
        assignment=decode_assignment(bytes(assigned.user_data or b"")),
    )
