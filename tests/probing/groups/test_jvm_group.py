"""Exhaustive tests: whole groups of every pair of releases, every order, every leader."""

import itertools
from dataclasses import replace

import pytest

from probing import (
    RELEASES,
    Bounce,
    BounceReason,
    LeaderModel,
    MemberModel,
    RejoinNow,
    find_release,
    start_member,
    upgrade_path,
)
from tests.nightly import sample
from tests.probing.groups.driver import reachable, rebalance, settle, started, walk, with_models


def _representatives():
    """One release for each different behaviour in a group."""
    found = {}
    for release in RELEASES:
        values = tuple((row.value, row.standing) for row in release.upgrade_from_rows)
        key = (
            release.readable_versions,
            release.leader_model,
            release.member_model,
            release.rebalance_protocol,
            tuple(v for v in values if v[0] in ("0.10.0", "1.1", "2.3")),
        )
        found[key] = release
    return list(found.values())


REPRESENTATIVES = _representatives()
PAIRS = [
    pytest.param(old, new, id=f"{old.name}-to-{new.name}")
    for old, new in itertools.permutations(REPRESENTATIVES, 2)
]


def goal(release):
    """The final version of a group that runs only ``release``."""
    return max(release.readable_versions)


def one_bounce(new, upgrade_from=None):
    return [Bounce(release=new.name, upgrade_from=upgrade_from, reasons=())]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_possible_path_settles_at_the_new_latest_and_a_closed_one_can_fail(old, new):
    path = upgrade_path(old, new)
    if path.possible:
        ways = [path.bounces]
        if path.bounces and BounceReason.METADATA not in path.bounces[0].reasons:
            ways.append(one_bounce(new))  # required by versions alone
        for bounces in ways:
            reached = walk(old, bounces)
            assert not reached.failures
            assert reached.groups
            assert {m.used_version for g in reached.groups for m in g} == {goal(new)}
        if path.bounces and BounceReason.METADATA in path.bounces[0].reasons:
            assert walk(old, one_bounce(new)).failures  # the pin is necessary
    elif path.rule == "eager protocol is gone" and old.latest_version >= 3 <= new.latest_version:
        assert not walk(old, one_bounce(new)).failures  # only the rebalance protocol prevents it
    else:
        assert walk(old, one_bounce(new)).failures


@pytest.mark.slow
def test_current_releases_settle_within_two_rebalances_of_each_restart():
    current = [r for r in REPRESENTATIVES if r.order >= (2, 4)]
    for old, new in itertools.permutations(current, 2):
        reached = reachable(started(old), release=new)
        assert not reached.failures
        assert reached.rounds_max <= 3, (old.name, new.name)


@pytest.mark.slow
def test_four_members_of_current_releases_settle_too():
    current = [r for r in REPRESENTATIVES if r.order >= (2, 4)]
    for old, new in sample(
        list(itertools.permutations(current, 2)),
        every=16,
        reason="170 more of 182 pairs of releases, 55 s",
    ):
        reached = reachable(started(old, size=4), release=new)
        assert not reached.failures
        assert {m.used_version for g in reached.groups for m in g} == {goal(new)}


@pytest.mark.parametrize("new", ["2.1.0", "2.1.1", "2.2.0", "2.2.1", "2.3.0"])
@pytest.mark.parametrize("old", ["2.0.0", "2.0.1"])
def test_kafka_8649_ends_the_old_members_when_a_new_one_leads(old, new):
    reached = walk(find_release(old), one_bounce(find_release(new)))
    assert any("KAFKA-8649" in why for why in reached.failures)
    assert not upgrade_path(find_release(old), find_release(new)).possible


@pytest.mark.parametrize("new", ["2.2.2", "2.3.1", "2.4.0", "native"])
def test_kafka_8649_is_gone_where_the_leader_sends_the_lowest_number(new):
    assert not walk(find_release("2.0.1"), one_bounce(find_release(new))).failures


def test_kafka_8649_needs_a_leader_of_the_new_release():
    old, new = start_member(find_release("2.0.1")), start_member(find_release("2.3.0"))
    under_old = rebalance((old, new, old), leader=0)
    assert not under_old.failures
    assert [m.used_version for m in under_old.members] == [3, 3, 3]
    under_new = rebalance(under_old.members, leader=1)
    assert not under_new.failures
    assert [m.used_version for m in under_new.members] == [4, 4, 4]  # unknown to 2.0.1
    assert "KAFKA-8649" in rebalance(under_new.members, leader=1).failures[0]


def test_without_the_pin_a_leader_of_0_10_2_ends_and_names_the_setting():
    old, new = start_member(find_release("0.10.2.1")), start_member(find_release("2.0.1"))
    (why,) = rebalance((old, new, old), leader=0).failures
    assert why.startswith("unable to decode subscription data: version=3; ")
    assert "set upgrade.from=0.10.2 " in why


@pytest.mark.parametrize("old", ["0.10.0.1", "0.10.2.1", "1.1.1"])
def test_the_pinned_version_is_answered_until_the_last_pin_is_gone(old):
    old, new = find_release(old), find_release("2.0.1")
    pinned = start_member(new, upgrade_from=old.series)
    free = start_member(new)
    for count in (1, 2, 3):
        group = (free,) * (3 - count) + (pinned,) * count
        for leader in range(3):
            result = rebalance(group, leader=leader)
            assert not result.rejoined
            assert result.decision.version == old.latest_version
    assert rebalance((free, free, free), leader=0).decision.version == 3


@pytest.mark.kip("268-9", "core")
@pytest.mark.parametrize("leader", [0, 1, 2])
def test_every_assignment_lets_a_lowered_member_look_up_and_go_up(leader):
    old, new = find_release("2.8"), find_release("3.9")
    lowered = rebalance((start_member(old), start_member(new), start_member(old)), leader=0)
    assert [m.used_version for m in lowered.members] == [9, 9, 9]
    still_mixed = rebalance(lowered.members, leader=leader)
    assert [m.used_version for m in still_mixed.members] == [9, 9, 9]
    assert not still_mixed.rejoined
    waiting = lowered.members[1]
    lifted = rebalance((waiting, waiting, start_member(new)), leader=leader)
    assert lifted.rejoined
    assert [m.used_version for m in lifted.members] == [11, 11, 11]


@pytest.mark.kip("268-9", "core")
def test_a_lowered_native_member_goes_up_again_under_a_jvm_leader():
    old, new, native = (find_release(name) for name in ("2.8", "3.9", "native"))
    group = (start_member(old), start_member(new), start_member(native))
    lowered = rebalance(group, leader=0)
    assert [m.used_version for m in lowered.members] == [9, 9, 9]
    bounced = (start_member(new), *lowered.members[1:])
    lifted = rebalance(bounced, leader=1)
    assert [m.used_version for m in lifted.members] == [11, 11, 11]
    assert lifted.rejoined


def test_after_the_same_binary_runs_everywhere_natives_are_raised_without_a_further_rebalance():
    release = find_release("native")
    members = [
        start_member(release, remembered_version=version) for version in release.known_versions[2:]
    ]
    for group in itertools.combinations_with_replacement(members, 3):
        settled, failures, rounds = settle(group)
        assert not failures
        assert rounds == 1
        assert {m.used_version for g in settled for m in g} == {101}


def test_after_the_same_binary_runs_everywhere_two_rebalances_raise_all_members():
    member = start_member(find_release("3.9"))
    members = [replace(member, used_version=version) for version in member.known_versions[2:]]
    for group in itertools.combinations_with_replacement(members, 3):
        settled, failures, rounds = settle(group)
        assert not failures
        assert rounds <= 2
        assert {m.used_version for g in settled for m in g} == {11}


def kip_text(name):
    return with_models(name, leader_model=LeaderModel.KIP_TEXT, member_model=MemberModel.KIP_TEXT)


def _bounce_by_the_text(order):
    """Bounce 2.8 to 3.9 under the KIP's text; the member at 0 always leads. Return extra rounds."""
    old, new = kip_text("2.8"), kip_text("3.9")
    group = rebalance((start_member(old),) * 3, leader=0).members
    extra = []
    for position in order:
        group = (*group[:position], start_member(new), *group[position + 1 :])
        result, rounds = rebalance(group, leader=0), [()]
        while result.rejoined:
            rounds.append(
                tuple(
                    member
                    for member, commands in enumerate(result.commands)
                    if any(isinstance(c, RejoinNow) for c in commands)
                )
            )
            result = rebalance(result.members, leader=0)
        assert not result.failures
        group = result.members
        extra.append(rounds[1:])
    return [m.used_version for m in group], extra


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0)])
def test_by_the_text_of_the_kip_a_leader_bounced_last_starts_the_one_extra_rebalance(order):
    versions, extra = _bounce_by_the_text(order)
    assert versions == [11, 11, 11]
    assert extra == [[(order[0],)], [(order[1],)], [(0,)]]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 0, 1)])
def test_by_the_text_of_the_kip_a_leader_not_bounced_last_adds_no_rebalance_at_the_end(order):
    versions, extra = _bounce_by_the_text(order)
    assert versions == [11, 11, 11]
    assert extra[-1] == []


def test_a_leader_that_sends_its_own_number_keeps_new_members_rejoining_for_ever():
    boasting = with_models(
        "3.9", leader_model=LeaderModel.EMPTY_AND_OWN, member_model=MemberModel.FOLLOWUP_WAITS
    )
    careful = with_models(
        "2.8", leader_model=LeaderModel.NORMAL_OR_ERROR, member_model=MemberModel.NATIVE
    )
    group = (start_member(boasting), start_member(careful))
    assert settle(group)[1] == {"never settles"}
