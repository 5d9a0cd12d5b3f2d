"""Decode members' subscriptions and restrict them to values that the group can contain.

Bytes that cannot be decoded become a `ReadMember` with the reason. Decoded values are restricted:
tasks and partitions to the plan, offsets to valid offsets, generations and epochs to those that the
group can have reached, endpoints to those that a client can connect to. Columns are cut before
objects are made of them, so that the cost of a blob is bounded by its size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from assignor.rebalance.blobs import read_subscription
from assignor.rebalance.endpoints import parse_endpoint
from assignor.rebalance.forms import GroupTopologies, in_group_numbers
from assignor.rebalance.leader.members import (
    UNKNOWN_GENERATION,
    GroupMember,
    ReadMember,
    native_partitions,
)
from assignor.rebalance.routing_view import task_sizes
from assignor.topology import TaskPlan
from encoding import (
    RUNNING,
    DecodeError,
    FutureSubscription,
    NativeSubscription,
    Subscription,
    TaskOffsetSums,
    TopicPartition,
    shown,
)
from probing import Release

HIGHEST_EPOCH = 2**62
"""Of a routing view; one that is counted up from here always fits its field."""


Decoded = Subscription | FutureSubscription | DecodeError
"""What a member's bytes contain, or why they cannot be decoded."""


def decode_members(members: Sequence[GroupMember], release: Release) -> dict[str, Decoded]:
    """Return member id -> its subscription, as a leader of `release` reads it."""
    decoded: dict[str, Decoded] = {}
    for member in members:
        try:
            decoded[member.member_id] = read_subscription(
                member.user_data, release.readable_versions
            )
        except DecodeError as error:
            decoded[member.member_id] = error
    return decoded


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a subscription of this group can contain.

    Attributes:
        plan: all tasks.
        decoded: member id -> its subscription, for every member (`decode_members`).
        generation: of the rebalance that is being decided; -1 if the client does not tell. What a
            member owns it got in an earlier one.
        ignored: member id -> why its subscription is not used, whatever it contains.
        topologies: which member numbers tasks how; None: all as the plan does.
    """

    plan: TaskPlan
    decoded: Mapping[str, Decoded]
    generation: int = UNKNOWN_GENERATION
    ignored: Mapping[str, str] = field(default_factory=dict)
    topologies: GroupTopologies | None = None

    def numbered(self, member_id: str, value: Subscription) -> Subscription:
        """A subscription with the group's task numbers; without tasks if its own are not known."""
        if self.topologies is None:
            return value
        forms = self.topologies.by_member.get(member_id)
        ran = self.topologies.ran.get(member_id, ())
        if ran and not value.prev_tasks:
            sums = {**dict(value.task_offset_sums), **dict.fromkeys(ran, RUNNING)}
            value = replace(value, task_offset_sums=TaskOffsetSums.from_mapping(sums))
        return in_group_numbers(value, () if forms is None else forms.to_group)

    @cached_property
    def sizes(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Tasks of each subtopology, by its id."""
        return np.array(task_sizes(self.plan.partitions_by_task), np.int64)


def read_member(member: GroupMember, bounds: Bounds) -> ReadMember:
    """Return a member with its decoded subscription restricted to the bounds; never raises."""
    member = replace(member, owned_partitions=_known(member.owned_partitions, bounds.plan))
    why = bounds.ignored.get(member.member_id)
    if why is not None:
        return _quarantined(member, why, bounds)
    value = bounds.decoded[member.member_id]
    if isinstance(value, DecodeError):
        return _quarantined(member, str(value), bounds)
    if not isinstance(value, Subscription):
        return ReadMember(member=member, plan=bounds.plan, subscription=value)
    return _bounded(member, value, bounds)


def _quarantined(member: GroupMember, why: str, bounds: Bounds) -> ReadMember:
    return ReadMember(member=member, plan=bounds.plan, subscription=None, why_quarantined=why)


def _bounded(member: GroupMember, value: Subscription, bounds: Bounds) -> ReadMember:
    """The subscription without values that the group cannot contain."""
    value = bounds.numbered(member.member_id, value)
    sums = _planned(value.task_offset_sums, bounds)
    if sums is not value.task_offset_sums:
        value = replace(value, task_offset_sums=sums)
    warnings: tuple[str, ...] = ()
    if value.user_endpoint and parse_endpoint(value.user_endpoint) is None:
        warning = (
            f"member {shown(member.member_id)} gives the endpoint {shown(value.user_endpoint)!r},"
            " which is not host:port: it is not published; correct its configuration"
        )
        warnings = (warning,)
        value = replace(value, user_endpoint=None)
    if value.native is not None:
        native = _native(value.native, bounds)
        if native is not value.native:
            value = replace(value, native=native)
        owned = member.owned_partitions or ()
        listed = native_partitions(native, bounds.plan) if owned else ()
        both = tuple(sorted({*owned} & {*listed}))
        # Some clients show only one of the two lists.
        if owned and listed and not len(both) == len(listed) == len(owned):
            why = (
                f"contradicts itself: the consumer protocol says that it owns"
                f" {len(owned)} partitions, its own bytes name {len(listed)}, and"
                f" {len(both)} are in both"
            )
            member = replace(member, owned_partitions=both)
            return _quarantined(member, why, bounds)
    return ReadMember(member=member, plan=bounds.plan, subscription=value, warnings=warnings)


def _planned(sums: TaskOffsetSums, bounds: Bounds) -> TaskOffsetSums:
    """Only the tasks that the plan has."""
    if not len(sums):
        return sums
    sizes = bounds.sizes
    within = (sums.subtopologies >= 0) & (sums.subtopologies < len(sizes))
    if len(sizes):
        places = np.where(within, sums.subtopologies, 0)
        within &= (sums.partitions >= 0) & (sums.partitions < sizes[places])
    if sums.names is not None:
        within &= np.array([name is None for name in sums.names])
    return sums if within.all() else sums.only(within)


def _native(value: NativeSubscription, bounds: Bounds) -> NativeSubscription:
    """The native fields without a generation or an epoch that the group cannot have reached."""
    if bounds.generation >= 0 and value.owned_generation >= bounds.generation:
        value = replace(value, owned_generation=UNKNOWN_GENERATION)
    if value.view_epoch >= HIGHEST_EPOCH:
        value = replace(value, view_epoch=-1, view_checksum=0)
    return value


def _known(
    owned: Iterable[TopicPartition] | None, plan: TaskPlan
) -> tuple[TopicPartition, ...] | None:
    """Only the partitions that a task reads, each once."""
    if not owned:
        return None if owned is None else ()
    return tuple(dict.fromkeys(p for p in owned if p in plan.task_by_partition))
