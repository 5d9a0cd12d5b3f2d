"""Promises about native members, checked in every group that bounces can lead to.

State spaces of three members: JVM members of latest version 2, 3, 4, 9, 11 and a later one, native
ones of 101 and 102, all with and without pins; any number of bounces, every leader, bounces in the
middle of a rebalance. Each test names the rebalances that still end a member, and why.
"""

import itertools
from dataclasses import replace

import pytest

from probing.versions import HELD_BACK_VERSION
from tests.probing.groups.native_group import StateSpace, is_native, jvm, native_member
from tests.versions import LATER, NEWEST

PIN_1, PIN_2 = "0.10.0", "1.1"
NATIVES = (native_member("native"), native_member("next"))
PINNED_NATIVE = native_member("native", upgrade_from=PIN_2)
OPTIMISTS = (
    native_member("native", start_version="latest"),
    native_member("next", start_version="latest"),
)


def free(*versions):
    return tuple(jvm(version) for version in versions)


def pinned(*versions, pin=PIN_2):
    return tuple(jvm(version, pin) for version in versions)


SPACES = {
    "natives": StateSpace((*NATIVES, *OPTIMISTS, PINNED_NATIVE)),
    "current": StateSpace((*NATIVES, *free(9, 11))),
    "future": StateSpace((*NATIVES, *OPTIMISTS, *free(11, LATER))),
    "pins": StateSpace((*NATIVES, *free(11), *pinned(9, 11), *free(2))),
    "pinned native": StateSpace((*NATIVES, PINNED_NATIVE, *free(4, 11))),
}
SLOW_SPACES = {
    "everything": StateSpace(
        (*NATIVES, PINNED_NATIVE, *free(2, 3, 4, 9, 11, LATER), *pinned(3, 4, 9, 11, LATER))
    ),
    "no pins": StateSpace((*NATIVES, *OPTIMISTS, *free(3, 4, 9, 11, LATER))),
    "both pins": StateSpace(
        (*NATIVES, *free(4, 9, 11), *pinned(4, 9, LATER), *pinned(4, 9, LATER, pin=PIN_1))
    ),
}
EVERY_SPACE = [
    *(pytest.param(space, id=name) for name, space in SPACES.items()),
    *(pytest.param(space, id=name, marks=pytest.mark.slow) for name, space in SLOW_SPACES.items()),
]
in_every_space = pytest.mark.parametrize("space", EVERY_SPACE)


def leaders(groups):
    return [(group, leader) for group in groups for leader in range(len(group))]


def writes_low(members):
    return any(member.used_version < 3 for member in members)


def above(members, leader):
    """Members that wrote a version above the ones that a JVM leader reads."""
    return [m for m in members if m.used_version > leader.latest_version]


def why_dead(members, leader):
    """The case in which a rebalance of ``members`` ends a member, or None; see the tests below."""
    if is_native(leader):
        return None
    reads_low_only = leader.latest_version < 3
    if not reads_low_only and not writes_low(members):
        return None
    too_high = above(members, leader)
    if any(not is_native(member) for member in too_high):
        return "Kafka"
    if not too_high:
        return None
    if reads_low_only or max(member.used_version for member in too_high) <= NEWEST:
        return "a"
    return "b"


@in_every_space
def test_every_group_settles_within_two_rebalances_and_three_with_a_later_jvm_at_natives(space):
    for group in space.groups:
        if not space.has_native(group):
            continue
        rounds = space.rounds(group)
        members = space.members(group)
        if rounds > 2:
            later = [m for m in members if not is_native(m) and m.latest_version > NEWEST]
            assert later, space.labels(group)
            assert any(m.used_version > 100 for m in members), space.labels(group)
            assert rounds == 3, space.labels(group)


@in_every_space
def test_no_native_member_rejoins_under_a_native_leader(space):
    for group, leader in leaders(space.groups):
        members = space.members(group)
        if is_native(members[leader]):
            rejoined = space.outcome(group, leader).rejoined
            moved = [m for m, moves in zip(members, rejoined, strict=True) if moves]
            assert not any(is_native(member) for member in moved), space.labels(group)


@in_every_space
def test_a_change_of_leader_alone_costs_nothing_but_beside_a_pinned_native_member(space):
    for group, leader in leaders(space.settled):
        members = space.members(group)
        rejoined = space.outcome(group, leader).rejoined
        if not space.has_native(group) or not any(rejoined):
            continue
        # For a JVM leader the pin limits all members; a native leader raises the JVM members once.
        assert any(is_native(m) and m.pinned for m in members), space.labels(group)
        assert is_native(members[leader]), space.labels(group)
        after = tuple(sorted(space.outcome(group, leader).members))
        assert space.rounds(after) == 1, space.labels(group)


@in_every_space
def test_no_member_fails_outside_of_the_known_windows(space):
    for group, leader in leaders(space.groups):
        if space.has_native(group):
            members = space.members(group)
            died = bool(space.outcome(group, leader).why_died)
            assert died == bool(why_dead(members, members[leader])), space.labels(group)


@in_every_space
def test_window_b_is_open_for_one_rebalance_only(space):
    for group, leader in leaders(space.settled):
        members = space.members(group)
        assert why_dead(members, members[leader]) != "b", space.labels(group)


@in_every_space
def test_after_one_rebalance_under_a_native_leader_only_a_real_1_1_or_kafka_itself_is_a_danger(
    space,
):
    for group, leader in leaders(space.groups):
        members = space.members(group)
        outcome = space.outcome(group, leader)
        if not is_native(members[leader]):
            continue
        after = space.members(outcome.members)
        for next_leader in after:
            if why_dead(after, next_leader) in ("a", "b"):
                assert next_leader.latest_version < 3, space.labels(group)


@in_every_space
def test_every_group_of_natives_alone_ends_at_the_greatest_version_that_all_of_them_read(space):
    for group in space.settled:
        members = space.members(group)
        if all(is_native(member) for member in members):
            lowest = min(max(member.native_versions) for member in members)
            assert {m.used_version for m in members if not m.pinned} <= {lowest}


def test_without_pins_and_versions_1_and_2_no_member_fails():
    for name in ("natives", "current", "future"):
        assert SPACES[name].deaths == []


@pytest.mark.slow
def test_no_member_of_a_release_that_probes_fails_without_pins():
    assert SLOW_SPACES["no pins"].deaths == []


@pytest.mark.slow
def test_the_state_spaces_are_as_large_as_measured():
    assert len(SLOW_SPACES["everything"].groups) > 5_000
    assert len(SLOW_SPACES["everything"].deaths) > 2_000


def test_both_windows_and_kafkas_own_are_real():
    space = SPACES["pins"]
    found = {
        why_dead(space.members(group), space.members(group)[leader])
        for group, leader in space.deaths
    }
    assert found == {"a", "b", "Kafka"}


def test_natives_held_back_to_11_survive_a_pinned_jvm_of_the_newest_version_at_once():
    space = StateSpace((*NATIVES, *free(11, LATER), *pinned(11, LATER)), level=HELD_BACK_VERSION)
    # A native member that has not adopted the level yet follows a JVM leader above it.
    allowed = {"Kafka"} if NEWEST == HELD_BACK_VERSION else {"Kafka", "a"}
    for group, leader in space.deaths:
        members = space.members(group)
        assert why_dead(members, members[leader]) in allowed, space.labels(group)
    released = StateSpace(space.kinds)
    assert any(
        why_dead(released.members(group), released.members(group)[leader]) == "b"
        for group, leader in released.deaths
    )


def test_a_pinned_native_member_opens_both_windows_to_a_jvm_that_has_no_pin():
    space = SPACES["pinned native"]
    members = [[*space.members(group)] for group, _ in space.deaths]
    assert members
    assert all(any(is_native(m) and m.pinned for m in group) for group in members)
    example = (replace(native_member(), used_version=101), PINNED_NATIVE, jvm(11))
    assert why_dead(example, example[2]) == "b"


@pytest.mark.parametrize("start_version", [None, "latest"])
def test_from_101_to_102_nobody_ever_rejoins(start_version):
    kinds = [native_member("native"), native_member("next", start_version=start_version)]
    space = StateSpace(kinds)
    for group, leader in leaders(space.groups):
        outcome = space.outcome(group, leader)
        assert not outcome.why_died
        assert not any(outcome.rejoined)
    written = {m.used_version for group in space.settled for m in space.members(group)}
    assert {101, 102} <= written


def test_an_incompatible_version_rejoins_once_where_it_was_written_and_could_not_be_read():
    kinds = [native_member("native"), native_member("next"), native_member("incompatible")]
    space = StateSpace([*kinds, native_member("incompatible", start_version="latest")])
    unread = 0
    for group, leader in leaders(space.groups):
        members = space.members(group)
        outcome = space.outcome(group, leader)
        assert not outcome.why_died
        expected = tuple(
            m.used_version == 103 and members[leader].release_name != "incompatible"
            for m in members
        )
        assert outcome.rejoined == expected, space.labels(group)
        assert space.rounds(group) <= 2
        unread += any(expected)
    assert unread


def test_a_cautious_start_of_an_incompatible_version_costs_nothing_until_101_comes_back():
    space = StateSpace([native_member("native"), native_member("incompatible")])
    reached = set()
    for group, leader in leaders(space.groups):
        written = {member.used_version for member in space.members(group)}
        is_back = 103 in written and any(
            member.release_name == "native" for member in space.members(group)
        )
        reached |= written
        assert is_back or not any(space.outcome(group, leader).rejoined)
    assert 103 in reached  # as soon as all members read it


def test_a_later_jvm_that_leads_natives_at_101_brings_them_down_in_three_rebalances():
    later = jvm(LATER)
    space = StateSpace([later, *OPTIMISTS])
    group = (later, replace(OPTIMISTS[0], used_version=101), OPTIMISTS[1])
    numbers = tuple(sorted(space._number(member) for member in group))
    leader = [m.latest_version for m in space.members(numbers)].index(LATER)
    versions = []
    for _ in range(3):
        outcome = space.outcome(numbers, leader)
        numbers = outcome.members
        versions.append(sorted(m.used_version for m in space.members(numbers)))
    assert versions == [[NEWEST, NEWEST, LATER], *2 * [3 * [NEWEST]]]
    assert not any(outcome.rejoined)


def test_every_order_of_bounces_from_kafka_to_native_ends_at_101_without_an_extra_rebalance():
    old, new = jvm(11), native_member()
    space = StateSpace([old, new])
    for order in itertools.permutations(range(3)):
        for leader in range(3):
            members = [replace(old)] * 3
            for position in order:
                members[position] = new
                group = tuple(space._number(member) for member in members)
                outcome = space.outcome(group, leader)
                assert not any(outcome.rejoined)
                members = list(space.members(outcome.members))
            assert {member.used_version for member in members} == {101}
