"""DescribeGroups of a real broker, with the members' metadata and assignments decoded.

It also works for groups without native members.
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
    """One member with its last subscription and assignment.

    Attributes:
        client: its client id, without the thread suffix of Kafka Streams.
    """

    client: str
    member_id: str
    subscription: Subscription | FutureSubscription
    assignment: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """The group's state as in DescribeGroups, and its members if it is `Stable`."""

    state: str
    members: tuple[DescribedMember, ...]

    @property
    def used_versions(self) -> Mapping[str, int]:
        """Version of each client's subscription."""
        return {member.client: member.subscription.version for member in self.members}

    @property
    def answered_versions(self) -> Mapping[str, int]:
        """Version of each client's assignment."""
        return {member.client: member.assignment.version for member in self.members}


def describe_group(bootstrap_servers: str, group_id: str) -> DescribedGroup:
    """Return the description of a group by its coordinator.

    Raises:
        BrokerError: no broker answers.
        DecodeError: the bytes of a member are not those of Kafka Streams.
    """
    with open_admin(Target(servers=(bootstrap_servers,), timeout_ms=120_000)) as admin:
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
