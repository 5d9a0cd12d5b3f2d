"""The feature levels that the members of a group support, decoded from their subscriptions.

A native member writes its ranges. A JVM member, and a native member that writes no ranges,
supports the assignment protocol from 1 to its latest supported version. A JVM member supports no
other feature.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from assignor.rebalance import GroupMember, read_consumer_subscription
from encoding import DecodeError, FutureSubscription, decode_subscription
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    NATIVE_FEATURES,
    TOPOLOGY_VERSION,
    FeatureError,
    LevelRange,
    NodeSupport,
    Role,
    advertised_range,
)

if TYPE_CHECKING:  # a member in an application inspects no groups
    from assignor.inspection import DescribedMember


def members_support(
    members: Iterable["DescribedMember"],
) -> tuple[tuple[NodeSupport, ...], tuple[str, ...]]:
    """Return what each member supports, and warnings.

    `topology.version` is among the features if a program carries another version than 1. A member
    with a malformed subscription supports nothing, so that no level is raised beyond what it can
    read, and a warning names it. There is also a warning if the group has no native member,
    because only native members follow levels.
    """
    nodes, notes, follows = [], [], False
    for member in sorted(members, key=lambda row: (row.client_id, row.member_id)):
        name = member.client_id or member.member_id
        try:
            ranges = support_of(member.metadata)
            follows |= bool(ranges.keys() - {ASSIGNMENT_PROTOCOL})
        except (DecodeError, FeatureError) as error:
            notes.append(
                f"the subscription of {name} is malformed, so it supports nothing: {error}"
            )
            ranges = {}
        nodes.append(NodeSupport(node_id=name, role=Role.MEMBER, ranges=ranges))
    if any(TOPOLOGY_VERSION in node.ranges for node in nodes):
        nodes = [_with_topology(node) for node in nodes]
    if nodes and not follows:
        notes.append("no member of this group follows feature levels; a change has no effect")
    return tuple(nodes), tuple(notes)


def written_versions(members: Iterable["DescribedMember"]) -> dict[str, int]:
    """Return client id -> lowest version of the assignment protocol that its members write now.

    Members with a malformed subscription are left out.
    """
    versions: dict[str, int] = {}
    for member in members:
        name = member.client_id or member.member_id
        with suppress(DecodeError):
            data = read_consumer_subscription(member.metadata).user_data
            version = decode_subscription(data).version
            versions[name] = min(version, versions.get(name, version))
    return dict(sorted(versions.items()))


def generation_support(members: Iterable[GroupMember]) -> tuple[NodeSupport, ...]:
    """Return what each member of a generation supports, for the group's leader.

    A member with a malformed subscription supports nothing, so that no level is raised beyond it.
    """
    nodes = []
    for member in sorted(members, key=lambda row: row.member_id):
        ranges: Mapping[str, LevelRange] = {}
        with suppress(DecodeError, FeatureError):
            ranges = _subscription_support(member.user_data)
        nodes.append(NodeSupport(node_id=member.member_id, role=Role.MEMBER, ranges=ranges))
    return tuple(nodes)


def support_of(metadata: bytes) -> Mapping[str, LevelRange]:
    """Return the supported ranges in a member's consumer protocol metadata, by feature.

    Raises:
        DecodeError: the bytes are malformed.
        FeatureError: a range is invalid.
    """
    return _subscription_support(read_consumer_subscription(metadata).user_data)


def _subscription_support(user_data: bytes) -> Mapping[str, LevelRange]:
    value = decode_subscription(user_data)
    native = None if isinstance(value, FutureSubscription) else value.native
    if native is None:
        return {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=max(value.latest_supported_version, 1))}
    ranges = {
        name: found
        for name, (low, high) in sorted(native.feature_ranges.items())
        if (found := advertised_range(low, high)) is not None
    }
    protocol = LevelRange(min=1, max=native.latest_supported_version)
    first = {**NATIVE_FEATURES.whole_ranges(), ASSIGNMENT_PROTOCOL: protocol}
    return ranges or first


def _with_topology(node: NodeSupport) -> NodeSupport:
    """A node with its range of `topology.version`: a native program that names none has version 1.

    A node without any other native feature is a JVM member, or cannot be read.
    """
    if TOPOLOGY_VERSION in node.ranges or not node.ranges.keys() - {ASSIGNMENT_PROTOCOL}:
        return node
    return replace(node, ranges={**node.ranges, TOPOLOGY_VERSION: LevelRange(min=1, max=1)})


def supported_by_all(nodes: Iterable[NodeSupport]) -> dict[str, LevelRange]:
    """Return the ranges that every node supports, by feature; empty if there is no node."""
    common: dict[str, LevelRange] | None = None
    for node in nodes:
        own_ranges = dict(node.ranges)
        common = own_ranges if common is None else _shared(common, own_ranges)
    return dict(sorted((common or {}).items()))


def _shared(
    left: Mapping[str, LevelRange], right: Mapping[str, LevelRange]
) -> dict[str, LevelRange]:
    shared = {}
    for name in sorted(left.keys() & right.keys()):
        low, high = max(left[name].min, right[name].min), min(left[name].max, right[name].max)
        if low <= high:
            can_be_off = left[name].can_be_off and right[name].can_be_off
            shared[name] = LevelRange(min=low, max=high, can_be_off=can_be_off)
    return shared
