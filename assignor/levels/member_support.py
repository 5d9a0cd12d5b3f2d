"""What the members of a group support of our own features, read off the bytes they wrote.

A member of ours tells its ranges. One that tells none, and a JVM member, supports every version of
the assignment protocol up to the highest that it reads; the JVM member nothing else.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from assignor.inspection import DescribedMember
from assignor.rebalance import GroupMember, read_consumer_subscription
from encoding import DecodeError, FutureSubscription, decode_subscription
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    NATIVE_FEATURES,
    FeatureError,
    LevelRange,
    NodeSupport,
    Role,
    advertised_range,
)


def members_support(
    members: Iterable[DescribedMember],
) -> tuple[tuple[NodeSupport, ...], tuple[str, ...]]:
    """Return what each member supports, and a sentence for each that cannot be told.

    A member whose bytes make no sense supports nothing, so that no level goes over its head. A
    group in which nobody is ours is said, since levels change nothing there.
    """
    nodes, notes, follows = [], [], False
    for member in sorted(members, key=lambda one: (one.client_id, one.member_id)):
        name = member.client_id or member.member_id
        try:
            ranges = support_of(member.metadata)
            follows |= bool(ranges.keys() - {ASSIGNMENT_PROTOCOL})
        except (DecodeError, FeatureError) as error:
            notes.append(f"what {name} supports cannot be told: {error}")
            ranges = {}
        nodes.append(NodeSupport(node_id=name, role=Role.MEMBER, ranges=ranges))
    if nodes and not follows:
        notes.append("no member of this group says that it follows levels, as members of ours do")
    return tuple(nodes), tuple(notes)


def written_versions(members: Iterable[DescribedMember]) -> dict[str, int]:
    """Return the lowest version of the assignment protocol that members of a name write now.

    Members whose bytes make no sense are left out.
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
    """Return what each member of a generation supports, as its leader reads it.

    A member whose bytes make no sense supports nothing, so that nothing rises above its head.
    """
    nodes = []
    for member in sorted(members, key=lambda one: one.member_id):
        ranges: Mapping[str, LevelRange] = {}
        with suppress(DecodeError, FeatureError):
            ranges = _subscription_support(member.user_data)
        nodes.append(NodeSupport(node_id=member.member_id, role=Role.MEMBER, ranges=ranges))
    return tuple(nodes)


def support_of(metadata: bytes) -> Mapping[str, LevelRange]:
    """Return the ranges of the member that wrote this metadata of the consumer protocol.

    Raises:
        DecodeError: the bytes are not what they should be.
        FeatureError: a range that cannot be.
    """
    return _subscription_support(read_consumer_subscription(metadata).user_data)


def _subscription_support(user_data: bytes) -> Mapping[str, LevelRange]:
    value = decode_subscription(user_data)
    native = None if isinstance(value, FutureSubscription) else value.native
    if native is None:
        return {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=max(value.latest_supported_version, 1))}
    told = {
        name: found
        for name, (low, high) in sorted(native.feature_ranges.items())
        if (found := advertised_range(low, high)) is not None
    }
    protocol = LevelRange(min=1, max=native.latest_supported_version)
    first = {**NATIVE_FEATURES.whole_ranges(), ASSIGNMENT_PROTOCOL: protocol}
    return told or first


def supported_by_all(nodes: Iterable[NodeSupport]) -> dict[str, LevelRange]:
    """Return the ranges that every node supports, by feature; nothing where there is no node."""
    common: dict[str, LevelRange] | None = None
    for node in nodes:
        mine = dict(node.ranges)
        common = mine if common is None else _shared(common, mine)
    return dict(sorted((common or {}).items()))


def _shared(
    one: Mapping[str, LevelRange], other: Mapping[str, LevelRange]
) -> dict[str, LevelRange]:
    shared = {}
    for name in sorted(one.keys() & other.keys()):
        low, high = max(one[name].min, other[name].min), min(one[name].max, other[name].max)
        if low <= high:
            can_be_off = one[name].can_be_off and other[name].can_be_off
            shared[name] = LevelRange(min=low, max=high, can_be_off=can_be_off)
    return shared
