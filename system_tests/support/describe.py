"""What a real broker says about a group: the raw blobs of its members, decoded by us.

An observer's view: it works for groups without any member of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor import inspection
from assignor.adapters.admin import Target, open_admin
from assignor.adapters.admin import describe_group as ask_for_group
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
        BrokerError: no broker answers.
        DecodeError: a member of the group does not speak our protocol.
    """
    with open_admin(Target(servers=(bootstrap_servers,))) as admin:
        group = ask_for_group(admin, group_id)
    members = group.members if group.state == "Stable" else ()
    return DescribedGroup(
        state=group.state,
        members=tuple(
            sorted((_member(member) for member in members), key=lambda member: member.client)
        ),
    )


def _member(member: inspection.DescribedMember) -> DescribedMember:
    subscribed = ConsumerProtocolSubscription.decode(member.metadata)
    assigned = ConsumerProtocolAssignment.decode(member.assignment)
    return DescribedMember(
        client=member.client_id.split(_THREAD_SUFFIX)[0],
        member_id=member.member_id,
        subscription=decode_subscription(bytes(subscribed.user_data or b"")),
        assignment=decode_assignment(bytes(assigned.user_data or b"")),
    )
