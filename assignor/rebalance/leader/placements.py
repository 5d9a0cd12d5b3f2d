"""The placement of a generation: who gets what, by member id."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from assignor.rebalance.leader.knowledge import NO_MEMORY, LeaderMemory
from assignor.rebalance.leader.members import ReadMember
from encoding import TaskId, TopicPartition, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The tasks of each member, by member id.

    Attributes:
        active_by_member, standby_by_member: tasks; a missing member gets none.
        warmup_by_member: those of the standby tasks that only warm up (KIP-441).
        partitions_by_member: partitions that a quarantined member keeps, without tasks.
        endpoint_by_member: `host:port` of members that serve queries.
        next_rebalance_ms: member id -> epoch time at which it asks for the next rebalance.
        withheld_by_member: partitions that a member waits for until their owners revoke them.
        unassigned: tasks that no member gets now, as another one still owns their partitions.
        warnings: for the operator.
        transient: see `Replies`.
        memory: for the next rebalance, still without claims.
    """

    active_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    standby_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    warmup_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    endpoint_by_member: Mapping[str, str] = field(default_factory=dict)
    next_rebalance_ms: Mapping[str, int] = field(default_factory=dict)
    withheld_by_member: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    unassigned: frozenset[TaskId] = frozenset()
    warnings: tuple[str, ...] = ()
    transient: frozenset[str] = frozenset()
    memory: LeaderMemory = NO_MEMORY


_OF_COORDINATOR: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What the coordinator adds to a client id, or to an instance id, in a member id."""


def with_client_ids(placement: Placement, members: Sequence[ReadMember]) -> Placement:
    """Return the placement with warnings that name processes by client id and process id.

    Operators know client ids; strategies know process ids only.
    """
    if not placement.warnings:
        return placement
    names: dict[str, str] = {}
    for member in members:
        client_id = shown(_OF_COORDINATOR.sub("", member.id))
        names.setdefault(member.client, f"{client_id} ({member.client})")
    pattern = re.compile("|".join(map(re.escape, names)))

    def named(warning: str) -> str:
        return pattern.sub(lambda found: names[found[0]], warning)

    return replace(
        placement,
        warnings=tuple(map(named, placement.warnings)),
        transient=frozenset(map(named, placement.transient)),
    )
