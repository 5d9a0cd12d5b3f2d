"""Every multiset of up to four members' versions, for every leader model."""

import itertools
from dataclasses import replace

import pytest

from probing import Content, LeaderModel, MemberVersions, decide_answers, find_release
from probing.leader.decide import ASSIGNMENT_ERROR
from tests.versions import LATER, NEWEST

JVM_PROBING = ["2.0.1", "2.1.1", "2.2.2", "2.3.0", "2.3.1", "2.5.1", "2.6.3", "3.9.2"]
EVERY_LEADER = ["0.10.0.1", "0.10.1.1", "0.10.2.2", *JVM_PROBING, "native"]


def group(*pairs, quarantined=()):
    return [
        MemberVersions(
            member_id=f"m{number}",
            used_version=used,
            latest_supported_version=supported,
            quarantined=number in quarantined,
        )
        for number, (used, supported) in enumerate(pairs)
    ]


@pytest.mark.kip("268-8", "core")
@pytest.mark.parametrize("name", ["2.2.2", "2.3.1", "2.4.1", "2.6.3", "3.9.2", "native"])
def test_while_one_member_writes_a_version_every_assignment_is_written_in_it(name):
    release = find_release(name)
    for pairs in itertools.combinations_with_replacement(
        [(u, s) for u in release.known_versions for s in release.known_versions if u <= s], 2
    ):
        decision = decide_answers(release, group(*pairs))
        assert {a.version for a in decision.answers} == {min(used for used, _ in pairs)}
        if decision.version >= 3:
            goes = min(supported for _, supported in pairs)
            assert {a.commonly_supported_version for a in decision.answers} == {goes}


def small_groups(latest, *, size_max=3):
    """Honest members: used <= supported, below, at and above the leader's latest."""
    versions = sorted({1, 2, 3, max(latest - 1, 1), latest, latest + 1, latest + 2})
    pairs = [(u, s) for u in versions for s in versions if u <= s]
    for size in range(1, size_max + 1):
        yield from itertools.combinations_with_replacement(pairs, size)


def straight(latest, pairs):
    """Kafka since 2.7 as plain code: (version, second number, error)."""
    lowest_used = lowest_supported = latest
    future = False
    for used, supported in pairs:
        lowest_used = min(lowest_used, used)
        lowest_supported = min(lowest_supported, supported if used >= 3 else -1)
        future = future or used > latest
    if future and lowest_used < 3:
        return latest, latest, ASSIGNMENT_ERROR
    return lowest_used, lowest_supported, 0


@pytest.mark.parametrize("name", ["2.7.0", "2.8.2", "3.0.2", "3.9.2"])
def test_a_current_leader_agrees_with_kafkas_loop_on_every_small_group(name):
    release = find_release(name)
    for pairs in small_groups(release.latest_version):
        decision = decide_answers(release, group(*pairs))
        found = (
            decision.version,
            decision.commonly_supported_version,
            decision.error_code,
        )
        assert found == straight(release.latest_version, pairs)
        for answer in decision.answers:
            assert (answer.version, answer.commonly_supported_version) == found[:2]
            expected = Content.ERROR if decision.error_code else Content.NORMAL
            assert answer.content is expected


def check_properties(decision, pairs, *, latest):
    """Check the promises of every leader that answers with the lowest supported version."""
    assert all(decision.version <= used for used, _ in pairs)
    assert decision.version <= latest
    if all(used >= 3 for used, _ in pairs):
        assert all(decision.commonly_supported_version <= supported for _, supported in pairs)
        assert decision.version <= decision.commonly_supported_version <= latest
    else:
        assert decision.commonly_supported_version == -1
    for answer, (used, supported) in zip(decision.answers, pairs, strict=True):
        assert answer.version <= used <= supported  # so that it can decode it


@pytest.mark.parametrize("name", ["2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "3.9.2", "native"])
def test_every_honest_member_can_read_its_answer_and_speak_what_it_offers(name):
    release = find_release(name)
    for pairs in small_groups(release.latest_version):
        decision = decide_answers(release, group(*pairs))
        if not decision.ends and not decision.error_code:
            check_properties(decision, pairs, latest=release.latest_version)


@pytest.mark.slow
def test_groups_of_four_keep_the_same_properties():
    release = find_release("native")
    for pairs in small_groups(NEWEST, size_max=4):
        check_properties(decide_answers(release, group(*pairs)), pairs, latest=NEWEST)


@pytest.mark.parametrize("name", ["2.0.1", "2.1.1", "2.2.1", "2.3.0"])
def test_before_kafka_8649_was_fixed_the_second_number_is_the_leaders_own(name):
    release = find_release(name)
    for pairs in small_groups(release.latest_version):
        decision = decide_answers(release, group(*pairs))
        if not decision.ends and decision.version >= 3:
            assert decision.commonly_supported_version == release.latest_version


def contents(name, *pairs):
    decision = decide_answers(find_release(name), group(*pairs))
    assert decision.version_probing
    return [(a.content, a.version, a.commonly_supported_version) for a in decision.answers]


@pytest.mark.kip("268-5", "core")
@pytest.mark.parametrize(
    ("name", "old", "future"),
    [
        ("2.0.1", (Content.PREVIOUS, 3, 3), (Content.EMPTY, 3, 3)),
        ("2.1.1", (Content.PREVIOUS, 3, 4), (Content.EMPTY, 4, 4)),
        ("2.3.0", (Content.PREVIOUS, 3, 4), (Content.EMPTY, 4, 4)),
        ("2.2.2", (Content.PREVIOUS, 3, 3), (Content.EMPTY, 3, 3)),
        ("2.3.1", (Content.PREVIOUS, 3, 3), (Content.EMPTY, 3, 3)),
        ("2.4.1", (Content.PREVIOUS, 3, 3), (Content.NORMAL, 3, 3)),
        ("2.5.1", (Content.PREVIOUS, 3, 3), (Content.NORMAL, 3, 3)),
        ("2.6.0", (Content.NORMAL, 3, 3), (Content.NORMAL, 3, 3)),
        ("4.3.1", (Content.NORMAL, 3, 3), (Content.NORMAL, 3, 3)),
        ("native", (Content.NORMAL, 3, 3), (Content.NORMAL, 3, 3)),
    ],
)
def test_a_future_member_is_answered_with_what_its_leader_knew_to_give(name, old, future):
    assert contents(name, (3, 3), (LATER, LATER)) == [old, future]
    decision = decide_answers(find_release(name), group((3, 3), (LATER, LATER)))
    assert decision.future_members == ("m1",)


def test_the_text_of_the_kip_answers_the_others_normally_and_future_members_empty():
    release = replace(find_release("2.3.1"), leader_model=LeaderModel.KIP_TEXT)
    decision = decide_answers(release, group((3, 3), (LATER, LATER)))
    assert [(a.content, a.version) for a in decision.answers] == [
        (Content.NORMAL, 3),
        (Content.EMPTY, 4),
    ]
    assert {a.commonly_supported_version for a in decision.answers} == {4}


@pytest.mark.parametrize("name", ["0.10.0.1", "0.10.1.1", "0.10.2.2", "1.1.1"])
@pytest.mark.parametrize("version", [3, 11, 101])
def test_a_leader_before_2_0_ends_at_a_version_that_it_cannot_decode(name, version):
    release = find_release(name)
    decision = decide_answers(release, group((1, 1), (version, version)))
    assert decision.ends
    assert f"unable to decode subscription data: version={version}" in decision.why
    assert f"upgrade.from={release.series} " in decision.why


def test_a_leader_of_0_10_0_ends_at_version_2():
    decision = decide_answers(find_release("0.10.0.1"), group((1, 1), (2, 2)))
    assert decision.ends
    assert "unable to decode subscription data: version=2" in decision.why


@pytest.mark.parametrize(("name", "version"), [("1.1.0", 2), ("1.1.1", 1), ("2.0.1", 1)])
def test_without_kafka_6054_version_1_is_answered_in_2(name, version):
    decision = decide_answers(find_release(name), group((1, 1), (2, 2)))
    assert decision.version == version
    assert decision.commonly_supported_version == -1


@pytest.mark.parametrize("name", ["2.0.1", "2.3.0", "2.3.1", "2.4.1", "2.5.1", "2.6.3"])
def test_up_to_2_6_a_future_member_beside_version_2_ends_the_leader(name):
    decision = decide_answers(find_release(name), group((2, 2), (LATER, LATER)))
    assert decision.ends
    assert f"version {LATER}" in decision.why
    assert decision.answers == ()
    assert not decision.version_probing


def test_since_2_7_all_members_get_an_error_in_the_leaders_latest_version():
    decision = decide_answers(find_release("2.7.0"), group((2, 2), (LATER, LATER), (8, 8)))
    assert decision.error_code == 3
    assert {(a.content, a.version) for a in decision.answers} == {(Content.ERROR, 8)}
    assert not decision.version_probing


def test_a_native_leader_answers_version_2_and_a_future_member_alike():
    decision = decide_answers(find_release("native"), group((2, 2), (LATER, LATER)))
    assert {(a.content, a.version) for a in decision.answers} == {(Content.NORMAL, 2)}
    assert "no second number" in decision.why


def test_a_quarantined_member_keeps_what_it_owns_and_counts_for_nothing():
    decision = decide_answers(
        find_release("native"), group((9, 9), (1, 1), (10, 11), quarantined={1})
    )
    assert (decision.version, decision.commonly_supported_version) == (9, 9)
    assert decision.quarantined_members == ("m1",)
    contents = [(a.member_id, a.content, a.rule) for a in decision.answers]
    assert contents[1] == ("m1", Content.PREVIOUS, "quarantined")
    assert {c for _, c, _ in (contents[0], contents[2])} == {Content.NORMAL}


@pytest.mark.parametrize("pair", [(11, 10), (3, -1), (0, 0), (-5, 11)])
def test_numbers_that_contradict_each_other_quarantine_a_native_member(pair):
    decision = decide_answers(find_release("native"), group((9, 11), pair))
    assert decision.quarantined_members == ("m1",)
    assert (decision.version, decision.commonly_supported_version) == (9, 11)


@pytest.mark.parametrize("name", ["1.1.1", "2.3.1", "3.9.2", "native"])
@pytest.mark.parametrize("used", [1, 2])
def test_versions_1_and_2_have_no_room_for_the_second_number(name, used):
    decision = decide_answers(find_release(name), group((used, -1), (used, -1)))
    assert {a.version for a in decision.answers} == {used}
    assert {a.commonly_supported_version for a in decision.answers} == {-1}


@pytest.mark.parametrize(
    ("pair", "unread", "answered"),
    [
        ((7, 5), False, (7, 11)),  # not above what it wrote
        ((11, 10), False, (9, 11)),  # nor above the group
        ((7, 5), True, (9, 11)),  # numbers of undecodable bytes are ignored
        ((0, 0), False, (9, 11)),
    ],
)
def test_a_quarantined_member_is_answered_in_a_version_it_may_read(pair, unread, answered):
    members = group((9, 11), pair, quarantined={1} if unread else ())
    (_, answer) = decide_answers(find_release("native"), members).answers
    assert (answer.member_id, answer.content) == ("m1", Content.PREVIOUS)
    assert (answer.version, answer.commonly_supported_version) == answered


@pytest.mark.parametrize("name", EVERY_LEADER[:-1])
def test_bytes_that_cannot_be_decoded_end_a_leader_of_kafka(name):
    decision = decide_answers(find_release(name), group((1, 1), (1, 1), quarantined={1}))
    assert decision.ends
    assert "m1" in decision.why
    assert (decision.version, decision.commonly_supported_version, decision.answers) == (0, -1, ())


@pytest.mark.parametrize(("name", "believes"), [("2.4.1", True), ("2.5.0", False)])
def test_until_2_5_a_supported_number_below_the_used_one_is_accepted(name, believes):
    decision = decide_answers(find_release(name), group((4, 3), (4, 4)))
    assert decision.ends is not believes


@pytest.mark.parametrize("name", EVERY_LEADER)
def test_nothing_raises_whatever_a_peer_writes_and_every_answer_has_its_reason(name):
    release = find_release(name)
    versions = (-(2**31), -1, 0, 1, 2, 3, release.latest_version, LATER, 101, 2**31 - 1)
    for pairs in itertools.combinations_with_replacement(itertools.product(versions, versions), 2):
        decision = decide_answers(release, group(*pairs))
        assert len(decision.answers) == (0 if decision.ends else 2)
        assert decision.rule
        assert "{" not in decision.why
        assert all(a.rule and a.why for a in decision.answers)


@pytest.mark.parametrize("name", EVERY_LEADER)
def test_an_empty_group_and_the_order_of_the_members_make_no_difference(name):
    release = find_release(name)
    assert decide_answers(release, []).answers == ()
    members = group((1, 1), (2, 2), (3, 3), (LATER, LATER))
    decisions = {decide_answers(release, order) for order in itertools.permutations(members)}
    assert len(decisions) == 1


def test_a_group_of_future_members_only_is_answered_in_the_leaders_latest():
    decision = decide_answers(find_release("3.9"), group((LATER, LATER), (LATER + 1, LATER + 1)))
    assert (decision.version, decision.commonly_supported_version) == (11, 11)


def test_the_lowest_supported_version_is_in_the_decision():
    decision = decide_answers(find_release("2.0.1"), group((3, 3), (3, 11)))
    assert decision.lowest_supported_version == 3


@pytest.mark.parametrize(("number", "more"), [(8, ""), (9, " and 1 more"), (10, " and 2 more")])
def test_a_sentence_names_eight_members_and_counts_the_others(number, more):
    members = group(*[(9, 11)] * number, quarantined=set(range(number)))
    why = decide_answers(find_release("3.9"), members).why
    assert f"of m0, m1, m2, m3, m4, m5, m6, m7{more} cannot be decoded" in why
