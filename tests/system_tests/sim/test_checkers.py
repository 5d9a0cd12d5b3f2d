"""Every safety rule fails on a trace that breaks it, and holds on one that does not."""

import pytest

from encoding import TaskId, TopicPartition
from system_tests.coordinator import EventKind, GroupEvent
from system_tests.sim.checkers import SAFETY, Evidence, check_step, check_trace
from system_tests.sim.events import Answer, Answered, Ended, Gave, Rejoined, Settled, Started, Took

P0, P1 = TopicPartition("lines", 0), TopicPartition("lines", 1)
T0, T1 = TaskId(0, 0), TaskId(0, 1)
TASK_OF = {P0: T0, P1: T1}


def started(thread, *, versions=(9, 10, 11), native=False):
    return Started(0, thread, "x", None, versions, native, versions[-1])


def took(thread, partitions, *, tasks=None, at_ms=5, **changes):
    plain = Took(
        at_ms=at_ms,
        thread=thread,
        member_id=f"{thread}-1",
        generation=1,
        received_version=11,
        commonly_supported_version=11,
        used_before=11,
        used_after=11,
        error_code=0,
        partitions=partitions,
        gained=partitions,
        active_tasks=tuple(TaskId(0, p.partition) for p in partitions) if tasks is None else tasks,
        standby_tasks=(),
        restored=0,
        restore_ms=0,
        restore_limit_ms=0,
        failure="",
    )
    return plain._replace(**changes)


def generation(*threads, number=1):
    return GroupEvent(
        at_ms=1,
        kind=EventKind.GENERATION_COMPLETED,
        group_id="g",
        generation=number,
        members=tuple(f"{thread}-1" for thread in threads),
    )


def expired(thread):
    return GroupEvent(
        at_ms=6,
        kind=EventKind.MEMBER_EXPIRED,
        group_id="g",
        generation=1,
        member_id=f"{thread}-1",
    )


def replaced(thread):
    return GroupEvent(
        at_ms=6,
        kind=EventKind.MEMBER_REPLACED,
        group_id="g",
        generation=1,
        member_id=f"{thread}-1",
    )


def answered(*pairs, native_leader=False, content="normal", future=()):
    answers = tuple(Answer(f"{t}-1", t, v, 11, content, (), 40) for t, v, _ in pairs)
    used = tuple(u for _, _, u in pairs)
    return Answered(
        at_ms=4,
        thread="a",
        generation=1,
        leader_is_native=native_leader,
        version=11,
        commonly_supported_version=11,
        rule="a row",
        future=future,
        used_versions=used,
        answers=answers,
        withheld=(),
    )


BEGIN = (started("a"), started("b"), generation("a", "b"))
FINE = (took("a", (P0,)), took("b", (P1,)), Settled(9, 1, "a", (("a", 11), ("b", 11))))


def broken(*trace):
    return [violation.rule for violation in check_trace((*BEGIN, *trace), TASK_OF)]


def test_a_valid_trace_breaks_no_rule():
    assert broken(answered(("a", 11, 11), ("b", 11, 11)), *FINE) == []


def test_a_partition_has_one_owner():
    both = (took("a", (P0,)), took("b", (P0,), tasks=()))
    assert broken(*both) == ["one owner"]
    assert broken(both[0], Gave(5, "a", (P0,), (T0,)), both[1]) == []
    assert broken(both[0], Ended(5, "a", "kill", failed=False), both[1]) == []


def test_who_is_no_member_any_more_owns_nothing():
    assert broken(took("a", (P0,)), expired("a"), took("b", (P0,))) == []
    assert broken(took("a", (P0,)), expired("b"), took("b", (P0,))) == []


def test_a_task_is_active_once():
    assert broken(took("a", (P0,)), took("b", (P1,), tasks=(T0,))) == ["one active"]


def test_nobody_is_answered_above_what_it_wrote():
    assert broken(answered(("a", 11, 10), ("b", 10, 10))) == [
        "answered within used",
        "answered in the lowest",
    ]
    assert broken(answered(("a", 11, 10), content="error")) == ["answered within used"]


def test_jvm_members_are_answered_in_the_lowest_version_that_one_of_them_wrote():
    assert broken(answered(("a", 11, 11), ("b", 10, 10))) == ["answered in the lowest"]
    assert broken(answered(("a", 9, 11), ("b", 9, 10))) == []
    native = started("a", versions=(11, 101), native=True)
    assert broken(native, answered(("a", 101, 101), ("b", 10, 10))) == []


def test_a_member_sets_only_versions_that_it_knows():
    assert broken(took("a", (P0,), used_after=12)) == ["sets what it speaks"]


def test_an_answer_can_be_followed_and_is_no_error():
    assert broken(took("a", (), failure="gibberish")) == ["answers are readable"]
    assert broken(took("a", (), error_code=3)) == ["nobody is refused"]


def test_no_member_fails_by_itself():
    assert broken(Ended(5, "a", "of the group's versions", failed=True)) == ["nobody dies"]


def test_a_settled_group_forgets_nothing():
    assert broken(took("a", (P0,)), FINE[-1]) == ["nothing is forgotten"]


@pytest.mark.parametrize(("of_a", "of_b"), [((T0,), ()), ((), ()), ((T1,), (T0,))])
def test_in_a_settled_group_every_member_runs_the_tasks_of_its_partitions(of_a, of_b):
    members = took("a", (P0,), tasks=of_a), took("b", (P1,), tasks=of_b)
    assert broken(*members, FINE[-1]) == ["nothing is forgotten"]


def test_nobody_is_unreadable_in_a_settled_group():
    led = answered(("a", 11, 11), ("b", 11, 12), future=("b",))
    assert broken(led, *FINE) == ["nobody stays future"]
    assert broken(led, answered(("a", 11, 11), ("b", 11, 11)), *FINE) == []


def test_native_members_do_not_rejoin_for_a_version_under_a_native_leader():
    native = started("a", versions=(11, 101), native=True)
    rejoin = Rejoined(6, "a", "version", "a row", 11, 101)
    led = answered(("a", 11, 11), ("b", 11, 11), native_leader=True)
    assert broken(native, led, took("a", ()), rejoin) == ["natives do not rejoin"]
    assert broken(native, answered(("a", 11, 11), ("b", 11, 11)), took("a", ()), rejoin) == []
    assert broken(native, led, took("a", ()), rejoin._replace(cause="follow-up")) == []
    assert broken(native, led, replaced("a"), took("a", ()), rejoin) == []


@pytest.mark.parametrize("rule", SAFETY, ids=lambda rule: rule.name)
def test_each_rule_is_the_only_one_to_see_its_breach(rule):
    others = [other for other in SAFETY if other is not rule]
    trace = (*BEGIN, *BREACHES[rule.name])
    assert rule.name in [violation.rule for violation in check_trace(trace, TASK_OF)]
    assert rule.name not in [violation.rule for violation in check_trace(trace, TASK_OF, others)]


BREACHES = {
    "one owner": (took("a", (P0,)), took("b", (P0,), tasks=())),
    "one active": (took("a", (P0,)), took("b", (P1,), tasks=(T0,))),
    "answered within used": (answered(("a", 11, 10), content="empty"),),
    "answered in the lowest": (answered(("a", 11, 11), ("b", 10, 10)),),
    "sets what it speaks": (took("a", (), used_after=12),),
    "answers are readable": (took("a", (), failure="gibberish"),),
    "nobody is refused": (took("a", (), error_code=3),),
    "nobody dies": (Ended(5, "a", "why", failed=True),),
    "nothing is forgotten": (FINE[-1],),
    "nobody stays future": (answered(("a", 11, 12), future=("a",)), *FINE),
    "natives do not rejoin": (
        started("a", native=True),
        answered(("a", 11, 11), native_leader=True),
        Rejoined(6, "a", "version", "a row", 10, 11),
    ),
}


def test_evidence_branches_with_the_world():
    evidence = Evidence(task_of=TASK_OF)
    for event in (*BEGIN, took("a", (P0,))):
        check_step(evidence, event)
    other = evidence.copy()
    check_step(other, Gave(5, "a", (P0,), (T0,)))
    assert [violation.rule for violation in check_step(evidence, took("b", (P0,)))] == [
        "one owner",
        "one active",
    ]
    assert check_step(other, took("b", (P0,))) == []
