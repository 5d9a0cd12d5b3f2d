"""Every used x received x common version, compared with Kafka's code rewritten as plain code."""

import itertools

import pytest

from probing import EARLIEST_PROBEABLE_VERSION, MEMBER_RULES, MemberModel, NativeAnswer
from probing.member.used_version import Action, VersionNumbers
from probing.rules import always, first

LATEST = 11
WORLD = list(itertools.product(range(1, 12), range(1, 12), range(-1, 14)))
GUARDED = [
    MemberModel.GUARDED,
    MemberModel.TASKS_KEPT,
    MemberModel.FOLLOWUP,
    MemberModel.FOLLOWUP_WAITS,
]


def numbers(used, received, common, **other):
    return VersionNumbers(
        used=used,
        received=received,
        common=common,
        error_code=other.get("error_code", 0),
        known=tuple(range(1, other.get("latest", LATEST) + 1)),
        led_supported=other.get("led_supported"),
        native_known=other.get("native_known", ()),
        native=other.get("native"),
        pinned=other.get("pinned", False),
    )


def native_world(known=(101,)):
    """Every answer of a native or JVM leader to a native member."""
    versions = (*range(1, 12), *known)
    sentences = [
        None,
        *itertools.starmap(native_answer, itertools.product((0, 2, *versions), (True, False))),
    ]
    return [
        numbers(used, received, 11, native_known=known, native=native, pinned=pinned)
        for used in versions
        for received in (*versions, 12, 50)
        for native in sentences
        for pinned in (False, used < 3)
    ]


def native_answer(next_version, subscription_read):
    return NativeAnswer(next_version=next_version, subscription_read=subscription_read)


def outcome(model, case):
    """The table's decision as (ends, version afterwards, rejoins)."""
    found = numbers(*case)
    rule = first(MEMBER_RULES[model], found)
    if rule.says.action is Action.REFUSE:
        return (True, None, False)
    return (False, rule.says.writes(found), rule.says.action is Action.REJOIN)


def kafka_since_2_2_2(used, received, common):
    """`validateMetadataVersions`, then `maybeUpdateSubscriptionVersion` of Kafka's assignor."""
    if received > used:
        return (True, None, False)
    if common > LATEST:
        return (True, None, False)
    if received < 3:
        return (False, used, False)
    if common > used:
        return (False, common, True)
    if received < used:
        return (False, common, True)
    return (False, used, False)


def kafka_up_to_2_3_0(used, received, common):
    """`onAssignment`, then `upgradeSubscriptionVersionIfNeeded`, before KAFKA-8649 was fixed."""
    if received > used:
        return (True, None, False)
    if received < used and received >= 3:
        return (False, common, True)
    if received >= 3 and common > used:
        used = common
    return (False, used, False)


@pytest.mark.parametrize("model", GUARDED)
def test_the_table_agrees_with_kafkas_two_methods_on_every_combination(model):
    assert [c for c in WORLD if outcome(model, c) != kafka_since_2_2_2(*c)] == []


def test_the_unguarded_table_agrees_with_the_code_before_kafka_8649_was_fixed():
    assert [c for c in WORLD if outcome(MemberModel.UNGUARDED, c) != kafka_up_to_2_3_0(*c)] == []


def test_a_native_member_differs_from_kafka_only_at_impossible_second_numbers():
    differing = [c for c in WORLD if outcome(MemberModel.NATIVE, c) != kafka_since_2_2_2(*c)]
    assert differing
    assert all(common > LATEST or common < received < used for used, received, common in differing)


def test_a_native_member_never_writes_unknown_versions_whatever_the_leader_sends():
    for model, common_max in ((MemberModel.NATIVE, 2**31 - 1), (MemberModel.KIP_TEXT, 13)):
        for used, received in itertools.product(range(1, 12), range(1, 12)):
            for common in (-(2**31), -1, 0, *range(1, 14), common_max):
                dies, version, _ = outcome(model, (used, received, common))
                assert dies or version <= LATEST
                assert dies or model is MemberModel.KIP_TEXT or version >= 1


def test_the_last_bounced_member_writes_the_same_version_again_in_36_cases():
    again = [
        c
        for c in WORLD
        if first(MEMBER_RULES[MemberModel.FOLLOWUP_WAITS], numbers(*c)).name
        == "others still write lower"
    ]
    # An answer below the version written, to a member that wrote the version that all have.
    pairs = itertools.combinations(range(EARLIEST_PROBEABLE_VERSION, LATEST + 1), 2)
    assert sorted(again) == sorted((used, received, used) for received, used in pairs)
    assert len(again) == 36


@pytest.mark.parametrize("model", MemberModel)
def test_every_row_of_every_table_is_hit_and_the_last_one_always_holds(model):
    extra = [numbers(11, 12, 11), numbers(11, 11, 11, error_code=3)]
    led = [numbers(u, r, c, led_supported=11) for u, r, c in WORLD]
    native = native_world() if model is MemberModel.NATIVE else []
    world = [*(numbers(*c) for c in WORLD), *extra, *led, *native]
    hit = {first(MEMBER_RULES[model], n).name for n in world}
    assert hit == {rule.name for rule in MEMBER_RULES[model]}
    assert MEMBER_RULES[model][-1].holds is always


@pytest.mark.parametrize("model", MemberModel)
def test_below_the_earliest_probeable_version_nobody_moves(model):
    for used, received, common in WORLD:
        if received <= min(used, EARLIEST_PROBEABLE_VERSION - 1) and common <= LATEST:
            assert outcome(model, (used, received, common)) == (False, used, False)


@pytest.mark.parametrize("known", [(101,), (101, 102), (101, 103)])
def test_only_a_member_that_a_native_leader_cannot_read_rejoins_with_a_lower_version(
    known,
):
    for case in native_world(known):
        if case.native is None:
            continue
        rule = first(MEMBER_RULES[MemberModel.NATIVE], case)
        version = rule.says.writes(case)
        assert version in (*case.known, *known)
        assert rule.says.action is not Action.REFUSE
        if rule.says.action is Action.REJOIN:
            assert not case.native.subscription_read
            assert version < case.used
        elif case.native.subscription_read:
            assert version == case.used or version <= case.native.next_version


def test_a_jvm_leader_never_leads_a_native_member_above_11_nor_makes_it_refuse_101():
    for case in native_world():
        rule = first(MEMBER_RULES[MemberModel.NATIVE], case)
        if case.native is None and case.used == 101:
            assert rule.says.action is not Action.REFUSE
            assert rule.says.writes(case) <= (101 if rule.says.action is Action.KEEP else 11)


def test_names_of_rules_are_unique_within_a_table():
    for rules in MEMBER_RULES.values():
        assert len({rule.name for rule in rules}) == len(rules)


def test_every_model_has_its_table():
    assert set(MEMBER_RULES) == set(MemberModel)
