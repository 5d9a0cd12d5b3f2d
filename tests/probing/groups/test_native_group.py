"""What is promised of native members, proved in every group that bounces can lead to.

Worlds of three members: JVM members of latest version 2, 3, 4, 9, 11 and 12, with and without pins,
native ones of 101 and 102, with and without pins; any number of bounces, every leader, bounces in
the middle of a rebalance. Each test names the deaths that remain, and why they do.
"""

import itertools
from dataclasses import replace

import pytest

from tests.probing.groups.native_group import World, is_ours, jvm, ours

PIN_1, PIN_2 = "0.10.0", "1.1"
NATIVES = (ours("native"), ours("next"))
PINNED_NATIVE = ours("native", upgrade_from=PIN_2)
OPTIMISTS = (ours("native", start_version="latest"), ours("next", start_version="latest"))


def free(*versions):
    return tuple(jvm(version) for version in versions)


def pinned(*versions, pin=PIN_2):
    return tuple(jvm(version, pin) for version in versions)


WORLDS = {
    "natives": World((*NATIVES, *OPTIMISTS, PINNED_NATIVE)),
    "current": World((*NATIVES, *free(9, 11))),
    "future": World((*NATIVES, *OPTIMISTS, *free(11, 12))),
    "pins": World((*NATIVES, *free(11), *pinned(9, 11), *free(2))),
    "pinned native": World((*NATIVES, PINNED_NATIVE, *free(4, 11))),
}
SLOW_WORLDS = {
    "everything": World(
        (*NATIVES, PINNED_NATIVE, *free(2, 3, 4, 9, 11, 12), *pinned(3, 4, 9, 11, 12))
    ),
    "no pins": World((*NATIVES, *OPTIMISTS, *free(3, 4, 9, 11, 12))),
    "both pins": World(
        (*NATIVES, *free(4, 9, 11), *pinned(4, 9, 12), *pinned(4, 9, 12, pin=PIN_1))
    ),
}
EVERY_WORLD = [
    *(pytest.param(world, id=name) for name, world in WORLDS.items()),
    *(pytest.param(world, id=name, marks=pytest.mark.slow) for name, world in SLOW_WORLDS.items()),
]
in_every_world = pytest.mark.parametrize("world", EVERY_WORLD)


def leaders(groups):
    return [(group, leader) for group in groups for leader in range(len(group))]


def writes_low(members):
    return any(member.used_version < 3 for member in members)


def above(members, leader):
    """Members that wrote above what a JVM leader reads."""
    return [m for m in members if m.used_version > leader.latest_version]


def why_dead(members, leader):
    """The window that a rebalance of ``members`` falls into, or None; see the tests below."""
    if is_ours(leader):
        return None
    reads_low_only = leader.latest_version < 3
    if not reads_low_only and not writes_low(members):
        return None
    too_high = above(members, leader)
    if any(not is_ours(member) for member in too_high):
        return "Kafka"
    if not too_high:
        return None
    if reads_low_only or max(member.used_version for member in too_high) <= 11:
        return "a"
    return "b"


@in_every_world
def test_every_group_settles_within_two_rebalances_and_three_with_a_later_jvm_at_natives(world):
    for group in world.groups:
        if not world.has_ours(group):
            continue
        rounds = world.rounds(group)
        members = world.members(group)
        if rounds > 2:
            later = [m for m in members if not is_ours(m) and m.latest_version > 11]
            assert later, world.labels(group)
            assert any(m.used_version > 100 for m in members), world.labels(group)
            assert rounds == 3, world.labels(group)


@in_every_world
def test_no_native_member_rejoins_under_a_native_leader(world):
    for group, leader in leaders(world.groups):
        members = world.members(group)
        if is_ours(members[leader]):
            rejoined = world.outcome(group, leader).rejoined
            moved = [m for m, moves in zip(members, rejoined, strict=True) if moves]
            assert not any(is_ours(member) for member in moved), world.labels(group)


@in_every_world
def test_a_change_of_leader_alone_costs_nothing_but_beside_a_pinned_native_member(world):
    for group, leader in leaders(world.settled):
        members = world.members(group)
        rejoined = world.outcome(group, leader).rejoined
        if not world.has_ours(group) or not any(rejoined):
            continue
        # To a JVM leader the pin is everybody's; to ours it is not, and frees the JVM members once.
        assert any(is_ours(m) and m.pinned for m in members), world.labels(group)
        assert is_ours(members[leader]), world.labels(group)
        after = tuple(sorted(world.outcome(group, leader).members))
        assert world.rounds(after) == 1, world.labels(group)


@in_every_world
def test_nobody_dies_outside_of_the_known_windows(world):
    for group, leader in leaders(world.groups):
        if world.has_ours(group):
            members = world.members(group)
            died = bool(world.outcome(group, leader).why_died)
            assert died == bool(why_dead(members, members[leader])), world.labels(group)


@in_every_world
def test_window_b_is_open_for_one_rebalance_only(world):
    for group, leader in leaders(world.settled):
        members = world.members(group)
        assert why_dead(members, members[leader]) != "b", world.labels(group)


@in_every_world
def test_after_one_rebalance_under_a_native_leader_only_a_real_1_1_or_kafka_itself_is_a_danger(
    world,
):
    for group, leader in leaders(world.groups):
        members = world.members(group)
        outcome = world.outcome(group, leader)
        if not is_ours(members[leader]):
            continue
        after = world.members(outcome.members)
        for next_leader in after:
            if why_dead(after, next_leader) in ("a", "b"):
                assert next_leader.latest_version < 3, world.labels(group)


@in_every_world
def test_every_group_of_natives_alone_ends_at_the_greatest_version_that_all_of_them_read(world):
    for group in world.settled:
        members = world.members(group)
        if all(is_ours(member) for member in members):
            lowest = min(max(member.native_versions) for member in members)
            assert {m.used_version for m in members if not m.pinned} <= {lowest}


def test_a_world_without_pins_and_without_versions_1_and_2_has_no_death():
    for name in ("natives", "current", "future"):
        assert WORLDS[name].deaths == []


@pytest.mark.slow
def test_no_member_of_a_release_that_probes_dies_without_pins():
    assert SLOW_WORLDS["no pins"].deaths == []


@pytest.mark.slow
def test_the_worlds_are_as_large_as_they_were_when_they_proved_something():
    assert len(SLOW_WORLDS["everything"].groups) > 5_000
    assert len(SLOW_WORLDS["everything"].deaths) > 2_000


def test_both_windows_and_kafkas_own_are_real():
    world = WORLDS["pins"]
    found = {
        why_dead(world.members(group), world.members(group)[leader])
        for group, leader in world.deaths
    }
    assert found == {"a", "b", "Kafka"}


def test_natives_held_back_to_11_survive_a_pinned_jvm_of_the_newest_version_at_once():
    world = World((*NATIVES, *free(11, 12), *pinned(11, 12)), level=11)
    for group, leader in world.deaths:
        members = world.members(group)
        assert why_dead(members, members[leader]) == "Kafka", world.labels(group)
    released = World(world.kinds)
    assert any(
        why_dead(released.members(group), released.members(group)[leader]) == "b"
        for group, leader in released.deaths
    )


def test_a_pinned_native_member_opens_both_windows_to_a_jvm_that_has_no_pin():
    world = WORLDS["pinned native"]
    members = [[*world.members(group)] for group, _ in world.deaths]
    assert members
    assert all(any(is_ours(m) and m.pinned for m in group) for group in members)
    example = (replace(ours(), used_version=101), PINNED_NATIVE, jvm(11))
    assert why_dead(example, example[2]) == "b"


@pytest.mark.parametrize("start_version", [None, "latest"])
def test_from_101_to_102_nobody_ever_rejoins(start_version):
    kinds = [ours("native"), ours("next", start_version=start_version)]
    world = World(kinds)
    for group, leader in leaders(world.groups):
        outcome = world.outcome(group, leader)
        assert not outcome.why_died
        assert not any(outcome.rejoined)
    written = {m.used_version for group in world.settled for m in world.members(group)}
    assert {101, 102} <= written


def test_an_incompatible_version_rejoins_once_where_it_was_written_and_could_not_be_read():
    kinds = [ours("native"), ours("next"), ours("incompatible")]
    world = World([*kinds, ours("incompatible", start_version="latest")])
    unread = 0
    for group, leader in leaders(world.groups):
        members = world.members(group)
        outcome = world.outcome(group, leader)
        assert not outcome.why_died
        expected = tuple(
            m.used_version == 103 and members[leader].release_name != "incompatible"
            for m in members
        )
        assert outcome.rejoined == expected, world.labels(group)
        assert world.rounds(group) <= 2
        unread += any(expected)
    assert unread


def test_a_cautious_start_of_an_incompatible_version_costs_nothing_until_101_comes_back():
    world = World([ours("native"), ours("incompatible")])
    reached = set()
    for group, leader in leaders(world.groups):
        written = {member.used_version for member in world.members(group)}
        comes_back = 103 in written and any(
            member.release_name == "native" for member in world.members(group)
        )
        reached |= written
        assert comes_back or not any(world.outcome(group, leader).rejoined)
    assert 103 in reached  # as soon as everybody reads it


def test_a_later_jvm_that_leads_natives_at_101_brings_them_down_in_three_rebalances():
    later = jvm(12)
    world = World([later, *OPTIMISTS])
    group = (later, replace(OPTIMISTS[0], used_version=101), OPTIMISTS[1])
    numbers = tuple(sorted(world._number(member) for member in group))
    leader = [m.latest_version for m in world.members(numbers)].index(12)
    versions = []
    for _ in range(3):
        outcome = world.outcome(numbers, leader)
        numbers = outcome.members
        versions.append(sorted(m.used_version for m in world.members(numbers)))
    assert versions == [[11, 11, 12], [11, 11, 11], [11, 11, 11]]
    assert not any(outcome.rejoined)


def test_every_order_of_bounces_from_kafka_to_native_ends_at_101_without_an_extra_rebalance():
    old, new = jvm(11), ours()
    world = World([old, new])
    for order in itertools.permutations(range(3)):
        for leader in range(3):
            members = [replace(old)] * 3
            for position in order:
                members[position] = new
                group = tuple(world._number(member) for member in members)
                outcome = world.outcome(group, leader)
                assert not any(outcome.rejoined)
                members = list(world.members(outcome.members))
            assert {member.used_version for member in members} == {101}
