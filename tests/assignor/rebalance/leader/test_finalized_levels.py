"""Finalized levels in a group: held back, raised in one rebalance, never lowered by accident."""

import itertools
from dataclasses import replace

import pytest

from assignor import GroupMember, LeaderKnowledge, MemberRefused, assign_group
from encoding import decode_assignment, decode_subscription, encode_subscription
from probing import RejoinNow, rejoin_for_levels
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from tests.assignor.rebalance.groups import Group, start

HELD = FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: 11}, epoch=1)


def at(level, epoch):
    return FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level}, epoch=epoch)


def group_at(levels, *names, release="native"):
    group = Group()
    for name in names:
        group.join(name, release, levels=levels)
    group.settle(names[0])
    return group


def rejoins(received):
    return [
        n for n, reaction in received.items() for c in reaction.commands if isinstance(c, RejoinNow)
    ]


def finds(member, levels, *, leads):
    """A member polls these levels; returns its rejoin for them."""
    rejoin = rejoin_for_levels(member.state, levels, leads=leads, is_led_by_jvm=False)
    member.levels_polled(levels)
    return rejoin


def written(member):
    return decode_subscription(member.subscription()[1]).version


@pytest.mark.kip("778-13", "core")
@pytest.mark.parametrize("level", [3, 6, 9, 11, 101, 102])
def test_a_finalized_level_caps_what_every_member_writes_and_advertises(level):
    group = group_at(at(level, 1), "a", "b", "c", release="next")
    for _ in range(3):
        group.round("b")
    for member in group.members.values():
        subscription = decode_subscription(member.subscription()[1])
        assert subscription.version == level
        assert subscription.latest_supported_version == level
        # A leader that does not look at trailers sees nothing above the level.
        if level < 101:
            as_jvm = decode_subscription(member.subscription()[1], known_versions=range(1, 12))
            assert (as_jvm.version, as_jvm.latest_supported_version) == (level, level)


@pytest.mark.kip("778-13", "core")
def test_a_raised_level_reaches_all_in_the_one_rebalance_and_is_written_with_the_next():
    group = group_at(HELD, "a", "b", "c")
    assert group.used_versions() == {"a": 11, "b": 11, "c": 11}
    assert finds(group.members["b"], at(101, 2), leads=False) is None
    asked = finds(group.members["a"], at(101, 2), leads=True)
    assert asked is not None
    assert "one rebalance tells all members" in asked.why
    received = group.round("a")
    assert rejoins(received) == []
    assert {member.state.levels for member in group.members.values()} == {at(101, 2)}
    assert {written(member) for member in group.members.values()} == {101}


@pytest.mark.kip("778-13", "core")
def test_an_operator_takes_the_level_back_and_nobody_rejoins_for_the_version():
    group = group_at(at(101, 4), "a", "b", "c")
    group.round("a")
    assert set(group.used_versions().values()) == {101}
    before = group.owners()
    assert finds(group.members["c"], HELD, leads=True) is None  # a stale broker
    assert finds(group.members["c"], at(11, 5), leads=True) is not None
    assert rejoins(group.round("c")) == []
    assert {written(member) for member in group.members.values()} == {11}
    group.round("a")
    assert group.owners() == before


@pytest.mark.kip("584-11", "core")
def test_a_leader_that_only_met_stale_brokers_is_corrected_by_any_member():
    for leader, knowing in itertools.permutations("abc", 2):
        group = group_at(at(101, 3), "a", "b", "c")
        group.round("a")
        for name, member in group.members.items():
            if name != knowing:
                member.state = replace(member.state, levels=UNKNOWN_LEVELS)
        group.members[knowing].state = replace(group.members[knowing].state, levels=at(11, 4))
        group.members[leader].levels_polled(at(101, 3))
        group.round(leader)
        assert {member.state.levels for member in group.members.values()} == {at(11, 4)}
        group.round(leader)
        assert set(group.used_versions().values()) == {11}


def test_an_old_leaders_answer_does_not_take_a_member_back():
    group = group_at(at(11, 7), "a", "b")
    stale = group.round("a", knowledge=LeaderKnowledge(levels=at(101, 2)))
    assert rejoins(stale) == []
    assert {member.state.levels for member in group.members.values()} == {at(11, 7)}
    assert {written(member) for member in group.members.values()} == {11}


@pytest.mark.kip("584-6", "core")
def test_a_member_that_does_not_support_the_level_gets_no_tasks_and_leaves_with_the_reason():
    group = group_at(at(102, 1), "a", "b", release="next")
    group.round("a")
    group.join("old", "native")
    received = group.round("a")
    assert "assignment.protocol=102" in received["old"].failure
    assert "supports 1..101" in received["old"].failure
    assert group.members["old"].held.active == {}
    assert [w for w in group.last.warnings if w.startswith("old gets no tasks")]
    assert sorted(group.owners().values()) == ["a"] * 3 + ["b"] * 3
    with pytest.raises(MemberRefused, match=r"assignment\.protocol=102"):
        group.members["old"].subscription()


@pytest.mark.kip("584-6", "core")
def test_a_member_that_remembers_a_level_it_cannot_meet_does_not_join_at_all():
    member = start("native", levels=at(102, 9))
    with pytest.raises(MemberRefused, match=r"start it with a release that does"):
        member.subscription()


def test_beside_jvm_members_the_level_caps_native_members_only():
    group = Group()
    group.join("native", "native", levels=at(9, 1))
    group.join("jvm", "3.9.1")
    group.settle("native")
    assert group.used_versions() == {"native": 9, "jvm": 11}


def test_a_jvm_leader_sees_the_level_as_the_supported_version():
    group = Group()
    group.join("native", "native", levels=at(9, 1))
    group.join("jvm", "3.9.1")
    group.settle("jvm")
    assert group.used_versions() == {"native": 9, "jvm": 9}
    # A JVM leader sends no levels; each member polls them before it writes.
    group.members["native"].levels_polled(at(8, 2))
    assert written(group.members["native"]) == 8


def test_a_level_that_nobody_set_caps_nothing_and_costs_a_few_bytes():
    group = group_at(UNKNOWN_LEVELS, "a", "b")
    group.round("a")
    assert set(group.used_versions().values()) == {101}
    subscription = decode_subscription(group.members["a"].subscription()[1])
    assert subscription.native.feature_ranges[ASSIGNMENT_PROTOCOL] == (1, 101)
    assert subscription.native.adopted_epoch == -1


def test_invalid_levels_of_a_peer_count_as_not_reported():
    group = group_at(HELD, "a", "b")
    value, _ = group.members["b"].subscription()
    odd = replace(value.native, adopted_levels={ASSIGNMENT_PROTOCOL: 2**20}, adopted_epoch=99)
    blob = encode_subscription(replace(value, native=odd))
    answer = assign_group(
        group.settings("native"),
        [
            GroupMember(member_id="a", user_data=group.members["a"].subscription()[1]),
            GroupMember(member_id="b", user_data=blob),
        ],
        {"lines": 6},
        knowledge=group.knowledge("a"),
    )
    read = decode_assignment(answer.answers["b"].user_data)
    assert (dict(read.native.feature_levels), read.native.feature_epoch) == (dict(HELD.levels), 1)
