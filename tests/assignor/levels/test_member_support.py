"""Native features that members support, decoded from their bytes."""

from uuid import UUID

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignor.errors import ConfigError
from assignor.inspection.values import DescribedMember
from assignor.levels import Described, Survey, needs_below
from assignor.levels.member_support import members_support, support_of, supported_by_all
from encoding import DecodeError, NativeSubscription, Subscription, encode_subscription
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    NATIVE_FEATURES,
    PERSISTENT_METADATA,
    TASK_PLACEMENT,
    TOPOLOGY_VERSION,
    FinalizedLevels,
    LevelRange,
    NodeSupport,
)


def metadata(version=11, supported=11, native=None):
    value = Subscription(
        version=version,
        latest_supported_version=supported,
        process_id=UUID(int=1),
        native=native,
    )
    outer = ConsumerProtocolSubscription(
        version=1, topics=["in"], user_data=encode_subscription(value), owned_partitions=[]
    )
    return bytes(outer.encode())


def test_a_jvm_member_supports_the_protocol_up_to_its_latest_version_and_nothing_else():
    assert support_of(metadata(6, 9)) == {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=9)}


def test_a_native_member_that_reports_no_ranges_is_of_the_first_release():
    found = support_of(metadata(native=NativeSubscription()))
    assert found == NATIVE_FEATURES.whole_ranges() | {
        ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)
    }


def test_a_native_member_reports_its_ranges():
    native = NativeSubscription(
        feature_ranges={ASSIGNMENT_PROTOCOL: (1, 102), TASK_PLACEMENT: (1, 1), "gone": (0, 0)}
    )
    assert support_of(metadata(native=native)) == {
        ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=102),
        TASK_PLACEMENT: LevelRange(min=1, max=1),
    }


def test_a_member_whose_bytes_are_invalid_supports_nothing_and_is_named():
    native = NativeSubscription(feature_ranges={TASK_PLACEMENT: (1, 1)})
    invalid = DescribedMember(member_id="m3", client_id="c", metadata=metadata(native=native))
    whole = DescribedMember(member_id="m2", client_id="b", metadata=metadata())
    broken = DescribedMember(member_id="m1", client_id="a", metadata=b"\x00")
    with pytest.raises(DecodeError):
        support_of(broken.metadata)
    nodes, notes = members_support([whole, broken, invalid])
    assert [(node.node_id, dict(node.ranges)) for node in nodes[:2]] == [
        ("a", {}),
        ("b", {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=11)}),
    ]
    assert len(notes) == 1
    assert notes[0].startswith("the subscription of a is malformed")


def test_a_group_of_jvm_members_alone_follows_no_levels():
    member = DescribedMember(member_id="m", client_id="a", metadata=metadata())
    nodes, notes = members_support([member])
    assert len(nodes) == len(notes) == 1
    assert "no member of this group follows feature levels" in notes[0]
    assert members_support([]) == ((), ())


def test_where_nobody_can_be_asked_old_levels_may_be_needed():
    described = Described(
        source="group g, 0 members",
        table=NATIVE_FEATURES,
        supported={},
        finalized=FinalizedLevels(levels={}, epoch=-1),
    )
    [need] = needs_below(Survey(described=described, nodes=()), ASSIGNMENT_PROTOCOL, 11)
    assert (need.who, need.why) == ("group g, 0 members", "has no member or broker to ask")
    for feature, minimum in (("assignment.protocl", 11), (ASSIGNMENT_PROTOCOL, 0)):
        with pytest.raises(ConfigError):
            needs_below(Survey(described=described, nodes=()), feature, minimum)


def test_what_all_support_is_where_their_ranges_meet():
    first = {
        TASK_PLACEMENT: LevelRange(min=1, max=3),
        ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=4),
    }
    second = {
        TASK_PLACEMENT: LevelRange(min=2, max=5),
        ASSIGNMENT_PROTOCOL: LevelRange(min=6, max=9),
    }
    nodes = [
        NodeSupport(node_id=number, ranges=ranges) for number, ranges in enumerate((first, second))
    ]
    assert supported_by_all(nodes) == {TASK_PLACEMENT: LevelRange(min=2, max=3)}
    assert supported_by_all(nodes[:1]) == first
    assert supported_by_all([]) == {}
    jvm = NodeSupport(node_id="jvm", ranges={ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=3)})
    assert PERSISTENT_METADATA not in supported_by_all([nodes[0], jvm])


def test_a_native_program_that_names_no_version_of_its_topology_has_version_1():
    ranges = {ASSIGNMENT_PROTOCOL: (1, 101), TASK_PLACEMENT: (1, 2)}
    natives = {
        "plain": NativeSubscription(feature_ranges=ranges),
        "both": NativeSubscription(feature_ranges=ranges | {TOPOLOGY_VERSION: (1, 2)}),
    }
    described = [
        DescribedMember(member_id=name, client_id=name, metadata=metadata(native=native))
        for name, native in natives.items()
    ]
    jvm = DescribedMember(member_id="jvm", client_id="jvm", metadata=metadata(11, 11))
    nodes, _ = members_support([*described, jvm])
    found = {node.node_id: node.ranges.get(TOPOLOGY_VERSION) for node in nodes}
    first, both = LevelRange(min=1, max=1), LevelRange(min=1, max=2)
    assert found == {"plain": first, "both": both, "jvm": None}
    assert supported_by_all(nodes[:1])[TOPOLOGY_VERSION] == both
    nodes, _ = members_support([described[0], jvm])
    assert [TOPOLOGY_VERSION in node.ranges for node in nodes] == [False, False]
