"""Native members: start version, advertised version, and reactions to leaders."""

from dataclasses import replace

import pytest

from probing import (
    AssignmentReceived,
    ClearSchedule,
    KeepVersion,
    NativeAnswer,
    Refuse,
    RejoinNow,
    ReleaseError,
    ScheduleRebalance,
    WriteNextTime,
    find_release,
    member_step,
    start_member,
    subscription_version,
)
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from probing.versions import START_VERSION
from tests.versions import LATER, NEWEST


def answered(state, received, common, **other):
    return member_step(
        state,
        AssignmentReceived(received_version=received, commonly_supported_version=common, **other),
    )


def kinds(commands):
    return [type(command) for command in commands]


def test_a_pin_wins_over_an_optimistic_start_and_that_over_what_is_remembered():
    native = find_release("next")
    pinned = start_member(native, upgrade_from="1.1", start_version="latest")
    assert (pinned.used_version, pinned.pinned) == (2, True)
    latest = start_member(native, remembered_version=9, start_version="latest")
    assert (latest.used_version, latest.pinned) == (102, False)
    with pytest.raises(ReleaseError, match="set 'latest'"):
        start_member(native, start_version="newest")


def test_a_pinned_member_keeps_its_version_under_a_native_leader_and_follows_up():
    pinned = start_member(find_release("native"), upgrade_from="1.1")
    answer = NativeAnswer(next_version=101)
    state, commands = answered(pinned, 2, -1, native=answer, next_rebalance_ms=70_000)
    assert kinds(commands) == [KeepVersion, ScheduleRebalance]
    assert (state.used_version, state.next_rebalance_ms) == (pinned.used_version, 70_000)


def test_a_native_version_that_is_remembered_stands_for_the_start_version():
    for version in (101, 102, 2**31 - 1):
        member = start_member(find_release("next"), remembered_version=version)
        assert member.used_version == START_VERSION
    assert start_member(find_release("next"), remembered_version=50).used_version == NEWEST


def test_a_native_member_advertises_only_what_a_jvm_leader_may_hand_out():
    for name in ("native", "next", "incompatible"):
        release = find_release(name)
        member = start_member(release)
        latest = release.latest_native_version
        for used in release.readable_versions:
            wrote = subscription_version(replace(member, used_version=used))
            expected = latest if used >= 101 else NEWEST if used >= 3 else -1
            assert (wrote.used, wrote.latest_supported) == (used, expected)
            assert wrote.native == latest
            assert wrote.has_trailer is (used < 101)
            assert not wrote.pinned


def test_only_a_native_member_reports_that_it_is_pinned():
    for name, says in (("native", True), ("3.9", False)):
        pinned = start_member(find_release(name), upgrade_from="1.1")
        assert subscription_version(pinned).pinned is says
        assert pinned.pinned
        free = start_member(find_release(name), upgrade_from="2.4")
        assert not free.pinned


def answered_by_native(state, received, next_version, *, read=True, levels=UNKNOWN_LEVELS, **other):
    native = NativeAnswer(next_version=next_version, subscription_read=read, levels=levels)
    return answered(state, received, max(received, 11), native=native, **other)


def test_a_native_leader_changes_the_version_without_a_rejoin():
    member = start_member(find_release("native"))
    later, commands = answered_by_native(member, 11, 101)
    assert kinds(commands) == [WriteNextTime, ClearSchedule]
    assert later.used_version == commands[0].used_version == 101
    again, commands = answered_by_native(later, 101, 101)
    assert kinds(commands) == [KeepVersion, ClearSchedule]
    assert again.used_version == 101


def test_a_follow_up_is_kept_while_the_version_changes():
    member = start_member(find_release("native"))
    state, commands = answered_by_native(member, 11, 101, next_rebalance_ms=500)
    assert kinds(commands) == [WriteNextTime, ScheduleRebalance]
    assert state.next_rebalance_ms == 500
    _, commands = answered_by_native(member, 11, 101, next_rebalance_ms=0)
    assert kinds(commands) == [WriteNextTime, RejoinNow]
    assert commands[1].used_version == 101


@pytest.mark.parametrize(
    ("next_version", "writes"), [(102, 101), (103, 103), (200, 103), (50, NEWEST), (11, 11), (3, 3)]
)
def test_what_cannot_be_written_becomes_the_greatest_known_version_below(next_version, writes):
    member = start_member(find_release("incompatible"))
    assert answered_by_native(member, 11, next_version)[0].used_version == writes


@pytest.mark.parametrize("next_version", [0, -1, 1, 2])
def test_no_next_version_and_none_that_can_probe_change_nothing(next_version):
    member = start_member(find_release("native"), remembered_version=9)
    state, commands = answered_by_native(member, 9, next_version)
    assert state.used_version == 9
    assert commands[0].rule == "settled under a native leader"


def test_a_pin_stays_whatever_a_native_leader_answers():
    member = start_member(find_release("native"), upgrade_from="1.1")
    state, commands = answered_by_native(member, 2, 101)
    assert state.used_version == 2
    assert commands[0].rule == "pin stays"


@pytest.mark.parametrize(
    ("received", "next_version", "writes"),
    [
        (101, 101, 101),
        (101, 11, 11),
        (101, 102, 101),
        (101, 103, 101),
        (101, 0, 101),
        (101, 200, 101),
    ],
)
def test_a_member_that_could_not_be_read_goes_down_and_rejoins_once(received, next_version, writes):
    member = start_member(find_release("incompatible"), start_version="latest")
    lowered, commands = answered_by_native(member, received, next_version, read=False)
    assert kinds(commands) == [RejoinNow]
    assert lowered.used_version == commands[0].used_version == writes
    _, commands = answered_by_native(lowered, writes, writes)
    assert commands[0].rule == "settled under a native leader"


def test_who_cannot_go_down_any_further_does_not_rejoin_for_ever():
    member = replace(start_member(find_release("native")), used_version=101)
    _, commands = answered_by_native(member, 101, 0, read=False)
    assert RejoinNow not in kinds(commands)


def test_a_cached_answer_of_a_native_leader_above_the_start_version_ends_nobody():
    member = start_member(find_release("native"))
    state, commands = answered_by_native(member, 101, 101)
    assert kinds(commands) == [WriteNextTime, ClearSchedule]
    assert state.used_version == 101


@pytest.mark.parametrize("received", [-1, 0])
def test_an_answer_in_no_version_at_all_is_refused(received):
    for start_version in (None, "latest"):
        member = start_member(find_release("native"), start_version=start_version)
        assert kinds(answered(member, received, 11)[1]) == [Refuse]


def test_to_a_jvm_leader_a_native_member_at_101_comes_down_and_rejoins():
    member = start_member(find_release("native"), start_version="latest")
    for received, common, writes in ((11, 11, 11), (4, 4, 4), (3, 11, 11), (9, 150, NEWEST)):
        lowered, commands = answered(member, received, common)
        assert kinds(commands) == [RejoinNow]
        assert lowered.used_version == writes


@pytest.mark.parametrize(
    ("received", "common"), [(LATER, LATER), (LATER, -1), (50, NEWEST), (100, 100)]
)
def test_an_answer_of_a_later_jvm_brings_a_native_member_down(received, common):
    member = start_member(find_release("native"), start_version="latest")
    lowered, commands = answered(member, received, common)
    assert commands[0].rule == "a later JVM leads"
    assert lowered.used_version == NEWEST
    _, commands = answered(lowered, received, common)
    assert kinds(commands) == [Refuse]  # no leader may answer 12 to 11


@pytest.mark.parametrize(
    ("own_level", "answered_level", "writes"), [(0, 9, 11), (9, 0, 9), (9, 11, 9), (11, 9, 11)]
)
def test_of_two_views_of_one_epoch_a_member_writes_by_its_own_and_by_no_other(
    own_level, answered_level, writes
):
    own_levels, answered_levels = (
        FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level} if level else {}, epoch=3)
        for level in (own_level, answered_level)
    )
    member = start_member(find_release("native"), levels=own_levels)
    later, _ = answered_by_native(member, member.used_version, 11, levels=answered_levels)
    assert (later.levels, later.used_version) == (own_levels, writes)
