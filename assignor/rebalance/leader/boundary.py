"""Decode members' subscriptions and restrict them to values that the group can contain.

Bytes that cannot be decoded become a `ReadMember` with the reason. Decoded values are restricted:
tasks and partitions to the plan, offsets to valid offsets, generations and epochs to those that the
group can have reached, endpoints to those that a client can connect to. Columns are cut before
objects are made of them, so that the cost of a blob is bounded by its size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from assignor.rebalance.blobs import read_subscription
from assignor.rebalance.endpoints import parse_endpoint
from assignor.rebalance.leader.members import (
    UNKNOWN_GENERATION,
    GroupMember,
    ReadMember,
    native_partitions,
)
from assignor.topology import TaskPlan, task_sizes
from encoding import (
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


Decoded = Subscription | FutureSubscription | str
"""What a member's bytes contain, or why they are not used."""


def decode_members(members: Sequence[GroupMember], release: Release) -> dict[str, Decoded]:
    """Return member id -> its subscription, as a leader of `release` reads it, or why it cannot."""
    decoded: dict[str, Decoded] = {}
    for member in members:
        try:
            decoded[member.member_id] = read_subscription(
                member.user_data, release.readable_versions
            )
        except DecodeError as error:
            decoded[member.member_id] = str(error)
    return decoded


def restrict_members(
    members: Sequence[GroupMember],
    decoded: Mapping[str, Decoded],
    plan: TaskPlan,
    generation: int = UNKNOWN_GENERATION,
) -> list[ReadMember]:
    """Return members with their subscriptions restricted to what the group can contain.

    Args:
        members: every member.
        decoded: member id -> its subscription with the group's task numbers (`decode_members`).
        plan: all tasks.
        generation: of the rebalance; -1 if the client does not tell. What a member owns it got in
            an earlier one.
    """
    sizes = np.array(task_sizes(plan.partitions_by_task), np.int64)
    read = []
    for each in members:
        member = replace(each, owned_partitions=_known(each.owned_partitions, plan))
        value = decoded[member.member_id]
        if isinstance(value, Subscription):
            read.append(_bounded(member, value, plan, generation, sizes))
        else:
            why = value if isinstance(value, str) else ""
            subscription = None if isinstance(value, str) else value
            read.append(
                ReadMember(member=member, plan=plan, subscription=subscription, why_quarantined=why)
            )
    return read


def _bounded(
    member: GroupMember,
    value: Subscription,
    plan: TaskPlan,
    generation: int,
    sizes: npt.NDArray[np.int64],
) -> ReadMember:
    """The subscription without values that the group cannot contain."""
    sums = _planned(value.task_offset_sums, sizes)
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
        native = _native(value.native, generation)
        if native is not value.native:
            value = replace(value, native=native)
        owned = member.owned_partitions or ()
        listed = native_partitions(native, plan) if owned else ()
        both = tuple(sorted({*owned} & {*listed}))
        # Some clients show only one of the two lists.
        if owned and listed and not len(both) == len(listed) == len(owned):
            why = (
                f"contradicts itself: the consumer protocol says that it owns"
                f" {len(owned)} partitions, its own bytes name {len(listed)}, and"
                f" {len(both)} are in both"
            )
            member = replace(member, owned_partitions=both)
            return ReadMember(member=member, plan=plan, subscription=None, why_quarantined=why)
    return ReadMember(member=member, plan=plan, subscription=value, warnings=warnings)


def _planned(sums: TaskOffsetSums, sizes: npt.NDArray[np.int64]) -> TaskOffsetSums:
    """Only the tasks that the plan has."""
    if not len(sums):
        return sums
    within = (sums.subtopologies >= 0) & (sums.subtopologies < len(sizes))
    if len(sizes):
        places = np.where(within, sums.subtopologies, 0)
        within &= (sums.partitions >= 0) & (sums.partitions < sizes[places])
    if sums.names is not None:
        within &= np.array([name is None for name in sums.names])
    return sums if within.all() else sums.only(within)


def _native(value: NativeSubscription, generation: int) -> NativeSubscription:
    """The native fields without a generation or an epoch that the group cannot have reached."""
    if 0 <= generation <= value.owned_generation:
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
