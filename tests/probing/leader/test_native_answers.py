"""Answers to native members, each separately, and to JVM members in their group."""

import itertools

import pytest

from encoding import KAFKA_VERSIONS
from probing import (
    NATIVE_ANSWER_RULES,
    Content,
    MemberVersions,
    decide_answers,
    find_release,
)
from probing.rules import always
from tests.costs import calls_of
from tests.versions import LATER, NEWEST

NATIVE, NEXT, INCOMPATIBLE = (find_release(n) for n in ("native", "next", "incompatible"))
LEADERS = (NATIVE, NEXT, INCOMPATIBLE)


def member(name, used, supported=None, *, native=None, readable=True, pinned=False):
    return MemberVersions(
        member_id=name,
        used_version=used,
        latest_supported_version=supported or max(used, NEWEST if native else 0),
        native_version=native,
        readable=readable,
        pinned=pinned,
    )


def answers(*members, leader=NATIVE, level=None):
    decision = decide_answers(leader, members, level=level)
    return {answer.member_id: answer for answer in decision.answers}


def small_groups():
    """Up to three members, JVM and native, of every relevant kind."""
    jvms = [(2, 11), (3, 3), (3, 11), (9, 9), (9, 11), (11, 11), (LATER, LATER)]
    kinds = [
        *(("jvm", used, supported, None, False) for used, supported in jvms),
        *(("native", used, 11, 101, False) for used in (3, 9, 11)),
        ("native", 2, 11, 101, True),
        ("native", 101, 101, 101, False),
        ("native", 11, 11, 102, False),
        ("native", 102, 102, 102, False),
    ]
    for size in (1, 2, 3):
        for group in itertools.combinations_with_replacement(kinds, size):
            yield [
                member(f"{sort}{at}", used, supported, native=native, pinned=pinned)
                for at, (sort, used, supported, native, pinned) in enumerate(group)
            ]


def test_a_native_member_is_answered_in_the_version_that_it_wrote():
    for used in (*KAFKA_VERSIONS, 101):
        found = answers(member("a", used, native=101), member("jvm", 4, 9))
        assert found["a"].version == used
        assert found["a"].rule == "native member in the version it wrote"
        assert (found["a"].next_version, found["a"].subscription_read) == (9, True)
        second = -1 if used < 3 else NEWEST if used <= NEWEST else 101
        assert found["a"].commonly_supported_version == second


def test_a_later_version_that_can_be_read_is_answered_in_the_latest_native_version():
    found = answers(member("a", 102, native=102))["a"]
    assert (found.version, found.next_version, found.subscription_read) == (101, 101, True)
    found = answers(member("a", 102, native=102), leader=INCOMPATIBLE)["a"]
    assert found.version == 101


@pytest.mark.parametrize("leader", [NATIVE, NEXT])
def test_a_body_that_cannot_be_read_is_answered_in_what_every_native_member_reads(leader):
    found = answers(member("a", 103, native=103, readable=False), leader=leader)["a"]
    assert (found.version, found.subscription_read) == (101, False)
    assert found.next_version == leader.latest_native_version
    decision = decide_answers(leader, [member("a", 103, native=103, readable=False)])
    assert decision.future_members == ("a",)
    assert decision.version_probing


@pytest.mark.kip("268-8", "core")
def test_jvm_members_are_answered_in_the_lowest_version_that_one_of_them_wrote():
    for group in small_groups():
        decision = decide_answers(NATIVE, group)
        jvms = [m for m in group if m.native_version is None]
        lowest = min((NEWEST, *(m.used_version for m in jvms)))
        second = min((NEWEST, *(m.latest_supported_version for m in jvms)))
        for jvm in jvms:
            (answer,) = [a for a in decision.answers if a.member_id == jvm.member_id]
            assert not answer.is_native
            assert answer.version == lowest <= jvm.used_version
            assert answer.commonly_supported_version == (second if lowest >= 3 else -1)


def test_native_members_change_nothing_for_the_jvm_members():
    for group in small_groups():
        jvms = [m for m in group if m.native_version is None]
        alone = {a.member_id: a for a in decide_answers(NATIVE, jvms).answers}
        for answer in decide_answers(NATIVE, group).answers:
            if answer.member_id in alone:
                expected = alone[answer.member_id]
                assert (answer.version, answer.commonly_supported_version) == (
                    expected.version,
                    expected.commonly_supported_version,
                )


def test_every_answer_can_be_read_by_who_gets_it():
    for leader, group in itertools.product(LEADERS, small_groups()):
        by_id = {m.member_id: m for m in group}
        for answer in decide_answers(leader, group).answers:
            assert answer.version <= by_id[answer.member_id].used_version
            assert answer.version in leader.readable_versions
            assert answer.content is Content.NORMAL
            known = answer.commonly_supported_version
            assert known == -1 if answer.version < 3 else known >= answer.version


def test_a_pinned_member_keeps_its_pin_and_holds_back_nobody():
    found = answers(member("pin", 2, native=101, pinned=True), member("free", 11, native=101))
    assert found["pin"].next_version == 2
    assert found["free"].next_version == 101


def test_a_jvm_member_that_writes_1_or_2_holds_the_natives_at_3():
    for used in (1, 2):
        decision = decide_answers(NATIVE, [member("j", used, 11), member("n", 11, native=101)])
        assert decision.next_version == 3
        assert decision.next_version_rule == "a JVM member writes 1 or 2"
        assert decision.version == used


def test_the_level_holds_natives_back_and_no_jvm():
    group = [member("n", 101, native=101), member("m", 11, native=102)]
    assert decide_answers(NATIVE, group, level=11).next_version == 11
    mixed = decide_answers(NATIVE, [*group, member("j", 11)], level=9)
    assert mixed.next_version == 9
    assert (mixed.version, mixed.commonly_supported_version) == (11, 11)


def test_the_decision_for_natives_alone_names_them_and_the_lowest_answer():
    decision = decide_answers(NEXT, [member("a", 11, native=102), member("b", 102, native=102)])
    assert decision.rule == "natives only"
    assert (decision.version, decision.commonly_supported_version) == (11, NEWEST)
    assert not decision.version_probing
    alone = decide_answers(NEXT, [member("b", 101, 102, native=102)])
    assert (alone.version, alone.commonly_supported_version) == (101, 102)


def test_the_sentence_names_the_natives_that_do_not_count():
    why = decide_answers(NATIVE, [member("j", 9, 9), member("n", 3, native=101)]).why
    assert "version 9 is the lowest" in why
    assert "native members (n) get" in why


def test_without_natives_no_next_version_is_sent():
    decision = decide_answers(NATIVE, [member("j", 9), member("k", 11)])
    assert (decision.next_version, decision.next_version_rule) == (0, "")


def test_a_group_of_thousands_is_decided_in_linear_work_and_in_short_sentences():
    def calls(size):
        natives = [member(f"n{at:05}", 101, native=101) for at in range(size)]
        jvms = [member(f"j{at:05}", LATER) for at in range(size)]
        decision = decide_answers(NATIVE, [*natives, *jvms])
        assert len(decision.answers) == 2 * size
        assert len(decision.why) < 500
        assert f"and {size - 8} more" in decision.why
        return calls_of(lambda: decide_answers(NATIVE, [*natives, *jvms]))

    assert calls(2_000) < 12 * calls(200)  # 100 times if every member looked at every other


def test_a_jvm_leader_sees_no_native_member():
    for name in ("2.3.1", "2.5", "3.9"):
        release = find_release(name)
        for group in small_groups():
            plain = [member(m.member_id, m.used_version, m.latest_supported_version) for m in group]
            assert decide_answers(release, group) == decide_answers(release, plain)


def test_bytes_that_cannot_be_decoded_beside_natives_are_answered_in_a_version_of_kafkas():
    broken = MemberVersions(
        member_id="q", used_version=0, latest_supported_version=0, quarantined=True
    )
    found = answers(member("n", 101, native=101), broken)
    assert (found["q"].version, found["q"].content) == (NEWEST, Content.PREVIOUS)
    assert not found["q"].is_native
    assert found["n"].next_version == 101
    lowered = answers(member("n", 9, native=101), broken)
    assert lowered["q"].version == 9


def test_a_member_that_contradicts_itself_is_not_answered_above_what_it_wrote():
    odd = MemberVersions(member_id="q", used_version=4, latest_supported_version=3)
    assert answers(member("n", 11, native=101), odd)["q"].version == 4
    assert answers(member("j", 9, 9), odd)["q"].version == 4


def test_every_row_fires_and_the_last_one_always_holds():
    members = [
        member("a", 103, native=103, readable=False),
        member("b", 101, native=101),
        member("c", 102, native=102),
    ]
    rules = {answer.rule for answer in answers(*members).values()}
    assert rules == {rule.name for rule in NATIVE_ANSWER_RULES}
    assert NATIVE_ANSWER_RULES[-1].holds is always
