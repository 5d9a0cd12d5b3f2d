import itertools
from dataclasses import replace

import pytest

import probing
from probing import (
    NO_REBALANCE,
    RELEASES,
    AssignmentReceived,
    ClearSchedule,
    IgnoreTasks,
    KeepVersion,
    LevelsPolled,
    MemberModel,
    RebalanceStarted,
    Refuse,
    RejoinNow,
    ReleaseError,
    ReportError,
    ScheduleRebalance,
    SubscriptionVersion,
    TimePassed,
    WriteNextTime,
    find_release,
    start_member,
    subscription_version,
)
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.member.used_version import HAS_FOLLOWUPS, MEMBER_RULES
from probing.versions import START_VERSION
from tests.probing.rebootstrap import well_formed
from tests.versions import LATER, NEWEST


def member_step(state, event):
    after, commands = probing.member_step(state, event)
    for value in (after, *commands):
        well_formed.check_once(value)
    return after, commands


def answered(state, received, common, **other):
    return member_step(
        state,
        AssignmentReceived(received_version=received, commonly_supported_version=common, **other),
    )


def kinds(commands):
    return [type(command) for command in commands]


@pytest.mark.kip("268-4", "core")
@pytest.mark.parametrize("release", RELEASES, ids=lambda r: r.name)
def test_a_member_starts_at_the_latest_version_or_at_its_pin(release):
    assert start_member(release).used_version == release.start_version
    for value, row in release.upgrade_from.items():
        expected = row.pinned_version or release.start_version
        pinned = start_member(release, upgrade_from=value)
        assert (pinned.used_version, pinned.upgrade_from) == (expected, value)
    latest = start_member(release, start_version="latest")
    assert latest.used_version == max(release.readable_versions)
    assert subscription_version(start_member(release)).has_trailer is release.is_native
    assert not subscription_version(latest).has_trailer


def test_an_unknown_pin_is_refused_at_start():
    with pytest.raises(ReleaseError, match="accepted values"):
        start_member(find_release("3.9"), upgrade_from="3.9.1")


def test_a_native_member_starts_at_the_version_that_it_remembers():
    native = find_release("native")
    started = [start_member(native, remembered_version=v).used_version for v in range(LATER + 1)]
    assert started == [*3 * [START_VERSION], *range(3, NEWEST + 1), NEWEST]


def test_a_pin_wins_over_what_is_remembered_and_a_value_without_pin_does_not():
    native = find_release("native")
    assert start_member(native, upgrade_from="1.1", remembered_version=9).used_version == 2
    assert start_member(native, upgrade_from="3.0", remembered_version=9).used_version == 9


def test_a_remembered_version_that_cannot_probe_does_not_outlive_the_pin():
    assert start_member(find_release("native"), remembered_version=2).used_version == START_VERSION


def test_kafkas_members_remember_nothing():
    with pytest.raises(ReleaseError, match="remembers no version"):
        start_member(find_release("3.9"), remembered_version=9)


def test_the_supported_number_is_written_from_version_3_on():
    member = start_member(find_release("3.9"))
    assert subscription_version(member) == SubscriptionVersion(used=11, latest_supported=11)
    lowered = replace(member, used_version=4)
    assert subscription_version(lowered) == SubscriptionVersion(used=4, latest_supported=11)
    pinned = start_member(find_release("3.9"), upgrade_from="1.1")
    assert subscription_version(pinned) == SubscriptionVersion(used=2, latest_supported=-1)


@pytest.mark.kip("268-7", "core")
@pytest.mark.parametrize(
    "release", [r for r in RELEASES if r.latest_version > 3], ids=lambda r: r.name
)
def test_a_probing_member_comes_down_to_the_offer_and_rejoins_at_once_with_other_bytes(release):
    member = start_member(release)
    before = subscription_version(member)
    for offer in range(3, release.start_version):
        lowered, commands = answered(member, offer, offer)
        assert RejoinNow in kinds(commands)
        assert commands[-1].used_version == lowered.used_version == offer
        after = subscription_version(lowered)
        assert (after.used, after.latest_supported) == (offer, release.latest_version)
        assert after.used != before.used  # the first four bytes of the next subscription


@pytest.mark.parametrize("pin", [1, 2])
def test_a_pin_below_3_is_never_lifted(pin):
    release = find_release("3.9")
    member = start_member(release, upgrade_from={1: "0.10.0", 2: "1.1"}[pin])
    state, commands = answered(member, pin, -1)
    assert state.used_version == pin
    assert kinds(commands) == [KeepVersion, ClearSchedule]


def test_a_pin_from_3_on_is_lifted_by_the_first_answer():
    held = start_member(find_release("native"), remembered_version=5)
    lifted, commands = answered(held, 5, 11)
    assert lifted.used_version == 11
    assert commands[0].rule == "every member is upgraded"


@pytest.mark.parametrize("model", sorted(HAS_FOLLOWUPS))
def test_follow_ups_are_asked_about_in_order(model):
    member = replace(start_member(find_release("native")), model=model)
    cases = [
        ({"host_missing": True, "next_rebalance_ms": 0}, "host is missing", RejoinNow),
        ({"next_rebalance_ms": 0}, "tasks wait to be revoked", RejoinNow),
        ({"next_rebalance_ms": 5_000}, "follow-up was asked for", ScheduleRebalance),
        ({}, "nothing to follow", ClearSchedule),
    ]
    for event, rule, kind in cases:
        state, commands = answered(member, 11, 11, **event)
        assert kinds(commands) == [KeepVersion, kind]
        assert commands[1].rule == rule
        expected = 5_000 if kind is ScheduleRebalance else NO_REBALANCE
        assert state.next_rebalance_ms == expected


def test_a_version_change_comes_before_every_follow_up():
    member = start_member(find_release("3.9"))
    state, commands = answered(member, 9, 9, host_missing=True, next_rebalance_ms=7_000)
    assert kinds(commands) == [RejoinNow]
    assert commands[0].rule == "a member is not upgraded yet"
    assert state.next_rebalance_ms == NO_REBALANCE


@pytest.mark.parametrize("name", ["1.1.1", "2.3.0", "2.3.1", "2.5.1"])
def test_before_2_6_there_are_no_follow_ups(name):
    release = find_release(name)
    member = start_member(release)
    version = release.latest_version
    _, commands = answered(member, version, version, host_missing=True, next_rebalance_ms=0)
    assert kinds(commands) == [KeepVersion]


def test_a_scheduled_follow_up_is_due_when_its_time_has_come_and_only_once():
    member, _ = answered(start_member(find_release("native")), 11, 11, next_rebalance_ms=500)
    early, none = member_step(member, TimePassed(now_ms=499))
    assert (early, none) == (member, ())
    after, commands = member_step(member, TimePassed(now_ms=500))
    assert [c.rule for c in commands] == ["follow-up is due"]
    assert member_step(after, TimePassed(now_ms=10**9)) == (after, ())


@pytest.mark.parametrize(("name", "fires"), [("3.3.1", True), ("3.3.2", False), ("native", False)])
def test_a_follow_up_waits_for_a_running_rebalance_since_kafka_14382(name, fires):
    member, _ = answered(start_member(find_release(name)), 11, 11, next_rebalance_ms=500)
    busy, _ = member_step(member, RebalanceStarted(now_ms=400))
    waited, commands = member_step(busy, TimePassed(now_ms=600))
    assert bool(commands) is fires
    if not fires:
        assert waited.next_rebalance_ms == 500
        done, _ = answered(waited, 11, 11, next_rebalance_ms=900)
        assert member_step(done, TimePassed(now_ms=900))[1] != ()


@pytest.mark.parametrize(("name", "ignored"), [("2.1.1", True), ("2.3.1", True), ("2.4.0", False)])
def test_the_tasks_of_a_probing_answer_are_dropped_until_kafka_8972_was_fixed(name, ignored):
    _, commands = answered(start_member(find_release(name)), 3, 3)
    assert (IgnoreTasks in kinds(commands)) is ignored
    assert not ignored or commands[0] == IgnoreTasks(
        rule="tasks of a probing answer",
        why="this release ignores the tasks of a probing answer (KAFKA-8972)",
    )
    assert kinds(commands)[-1] is RejoinNow


def test_before_the_guard_a_member_goes_up_in_passing():
    member, _ = answered(start_member(find_release("2.3.0")), 3, 3)
    lifted, commands = answered(member, 3, 4)
    assert kinds(commands) == [WriteNextTime]
    assert lifted.used_version == 4


def test_kafka_8649_leads_a_member_to_a_version_that_it_cannot_write():
    member = start_member(find_release("2.0.1"))
    led, commands = answered(member, 3, 4)
    assert kinds(commands) == [WriteNextTime]
    refusal = subscription_version(led)
    assert isinstance(refusal, Refuse)
    assert "KAFKA-8649" in refusal.why
    assert "version 4" in refusal.why


@pytest.mark.parametrize(("name", "dies"), [("3.9", True), ("native", False)])
@pytest.mark.parametrize("code", [1, 3, 4, 99])
def test_an_error_answer_is_reported_and_ends_kafkas_members(name, dies, code):
    member = start_member(find_release(name))
    state, commands = answered(member, 11, 5, error_code=code, host_missing=True)
    assert kinds(commands) == ([ReportError, Refuse] if dies else [ReportError])
    assert commands[0].code == code
    assert state.used_version == 11
    assert (state.refusal is not None) is dies


@pytest.mark.parametrize("name", ["3.9", "native"])
def test_error_2_only_informs(name):
    state, commands = answered(start_member(find_release(name)), 11, 11, error_code=2)
    assert kinds(commands) == [ReportError]
    assert state.refusal is None


def test_an_error_that_cannot_be_read_is_an_unreadable_answer():
    state, commands = answered(start_member(find_release("2.8")), 11, 11, error_code=3)
    assert [c.rule for c in commands] == ["unreadable answer"]
    assert subscription_version(state) == commands[0]


def test_a_member_that_refused_stays_refused():
    refused, _ = answered(start_member(find_release("3.9")), 12, 12)
    for event in (
        AssignmentReceived(received_version=11, commonly_supported_version=11),
        RebalanceStarted(),
        TimePassed(now_ms=10**9),
    ):
        assert member_step(refused, event) == (refused, ())


@pytest.mark.parametrize("model", MemberModel)
def test_every_answer_yields_commands_with_rule_and_reason(model):
    names = {rule.name for rule in MEMBER_RULES[model]}
    start = replace(start_member(find_release("native")), model=model)
    for used, received, common in itertools.product(range(1, 12), range(13), range(-1, 14)):
        for led in (None, 11):
            member = replace(start, used_version=used)
            state, commands = answered(member, received, common, led_supported_version=led)
            assert commands
            assert any(command.rule in names for command in commands)
            assert all("{" not in command.why and len(command.why) > 20 for command in commands)
            if not isinstance(commands[0], Refuse):
                assert state.refusal is None


def test_what_ends_a_member_names_what_to_do():
    led = replace(start_member(find_release("2.0.1")), used_version=4)
    refusal = subscription_version(led)
    assert (refusal.rule, refusal.why) == (
        "cannot write",
        (
            "the leader set version 4, release 2.0.1 writes up to 3 (KAFKA-8649); upgrade this"
            " member, or bounce the leader to a release that answers with the lowest supported"
            " version"
        ),
    )
    for code, name in ((1, "INCOMPLETE_SOURCE_TOPIC_METADATA"), (99, "unknown")):
        _, commands = answered(start_member(find_release("3.9")), 11, 11, error_code=code)
        assert commands[1] == Refuse(
            rule="error ends the member",
            why=f"release 3.9.2 stops at error {code} ({name}); fix the cause and restart the"
            " member",
        )


def test_a_followup_that_is_due_at_once_leaves_no_older_one_behind():
    member = replace(start_member(find_release("3.9")), next_rebalance_ms=700)
    for version, due in ((11, {"next_rebalance_ms": 0}), (6, {})):
        state, commands = answered(member, version, version, now_ms=5, **due)
        assert RejoinNow in kinds(commands)
        assert state.next_rebalance_ms == NO_REBALANCE


def test_polled_levels_are_kept_if_they_are_newer():
    state = replace(start_member(find_release("native")), next_rebalance_ms=9)
    levels = FinalizedLevels(levels={"a": 2}, epoch=3)
    after, commands = member_step(state, LevelsPolled(polled=levels))
    assert (after, commands) == (replace(state, polled=levels), ())
    for older in (UNKNOWN_LEVELS, replace(levels, epoch=2)):
        assert member_step(after, LevelsPolled(polled=older)) == (after, ())
