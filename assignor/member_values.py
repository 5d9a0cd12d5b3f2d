"""What a member is told to say about itself, and what an answer meant to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from encoding import Assignment
from probing import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberIdentity:
    """What a member says about itself in every subscription.

    Attributes:
        process_id: of its process; outlives restarts.
        user_endpoint: `host:port` for interactive queries, or None.
        client_tags: KIP-708 tags.
        rack: `client.rack`, or None; said by native members.
        instance_id: `group.instance.id` of a static member, or None; said by native members.
    """

    process_id: UUID
    user_endpoint: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What an answer meant.

    Attributes:
        assignment: decoded, or None when the bytes could not be read.
        commands: what probing asks for, in order.
        for_version: a rejoin among them is only for the version, no follow-up.
        failure: why this member cannot follow, or "".
    """

    assignment: Assignment | None
    commands: tuple[Command, ...] = ()
    for_version: bool = False
    failure: str = ""
