"""Issues are recognised by the broken rule and its events; endless cycles by the state graph."""

from dataclasses import replace

import pytest

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.engine import Broken
from system_tests.explore.issues import ISSUES, Finding, issue_of
from system_tests.explore.liveness import endless_cycles, shortest_cycle
from system_tests.explore.moves import Move
from system_tests.sim.events import Answer, Answered, Cause, Ended, Rejoined, Started, Took


def finding(rule, *recent, repeats=False, sentence=""):
    broken = Broken(rule=rule, at_ms=0, sentence=sentence)
    return Finding(broken=broken, recent=recent, repeats=repeats)


def answered(version, *, used=(3,), withheld=("p",)):
    answers = (Answer("a-1", "a", version, 4, "normal", (), 40),)
    return Answered(
        at_ms=0,
        thread="a",
        generation=1,
        leader_is_native=False,
        version=version,
        commonly_supported_version=4,
        rule="",
        future=(),
        used_versions=used,
        answers=answers,
        withheld=withheld,
    )


PROBED = answered(4)._replace(rule="empty answer to future members, lowest number", future=("b-1",))


def took(before, after, common):
    return Took(0, "b", "b-1", 1, 3, common, before, after, 0, (), (), (), (), 0, 0, 0, "")


def event(kind, reason=""):
    return GroupEvent(at_ms=0, kind=kind, group_id="g", generation=1, reason=reason)


STARTED_AGAIN = Started(0, "b", "2.4.1", None, (4, 5), is_native=False, latest_version=5)
LEADER_GONE = Ended(0, "a", "kill", failed=False)
FOLLOWUP = event(EventKind.MEMBER_REJOINED, Cause.FOLLOWUP)
KEPT = event(EventKind.MEMBER_KEPT)
ASKED = Rejoined(0, "b", Cause.VERSION, "a member is not upgraded yet", 5, 4)
REPLACED = replace(event(EventKind.MEMBER_REPLACED), member_id="b-instance-000004")
UNDECODABLE = "b died: unable to decode subscription data: version=11"

EXAMPLES = {
    "KAFKA-6054": finding("answered within used", answered(2, used=(1, 2))),
    "KAFKA-8649": finding("sets what it speaks", answered(3), took(3, 4, 4)),
    "KAFKA-9821": finding("nothing is forgotten", answered(6), LEADER_GONE),
    "KAFKA-9525": finding("nobody stays future", answered(4), ASKED, REPLACED),
    "KAFKA-10455": finding("nothing is forgotten", answered(7), KEPT),
    "KAFKA-14382": finding("settles", FOLLOWUP, repeats=True),
    "former-tasks": finding("one active", PROBED),
    "KIP-429": finding("one owner", answered(4, withheld=())),
}
MORE_EXAMPLES = [
    ("KAFKA-6054", finding("answered in the lowest", answered(2, used=(1, 2)))),
    ("KAFKA-6054", finding("nobody dies", sentence=UNDECODABLE)),
    ("KAFKA-9525", finding("nothing is forgotten", answered(4), ASKED, REPLACED)),
    ("KAFKA-9525", finding("settles", ASKED, REPLACED, repeats=True)),
]
OTHERS = [
    finding("nobody dies", sentence="b died: out of memory"),
    finding("nobody stays future", answered(4), ASKED),
    finding("nobody stays future", answered(4), ASKED, STARTED_AGAIN, REPLACED),
    finding("nobody stays future", answered(4), ASKED, replace(REPLACED, member_id="c-instance-1")),
    finding("one active", ASKED, REPLACED),
    finding("one active", answered(4)),
    finding("one active", answered(5, withheld=())),
    finding("settles", PROBED),
    finding("answered within used", answered(4, used=(3, 4))),
    finding("sets what it speaks", answered(3), took(3, 2, 4)),
    finding("nothing is forgotten", answered(6)),
    finding("nothing is forgotten", answered(7), LEADER_GONE),
    finding("nothing is forgotten", answered(6, withheld=()), LEADER_GONE),
    finding("one owner", KEPT),
    finding("settles", FOLLOWUP),
    finding("settles", event(EventKind.MEMBER_JOINED, Cause.FOLLOWUP), repeats=True),
]


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.id)
def test_each_issue_is_recognised_by_its_broken_rule(issue):
    assert issue_of(EXAMPLES[issue.id]) == issue.id
    assert issue.why


@pytest.mark.parametrize(("issue", "broken"), MORE_EXAMPLES)
def test_an_issue_may_break_more_than_one_rule(issue, broken):
    assert issue_of(broken) == issue


@pytest.mark.parametrize("other", OTHERS)
def test_other_findings_have_no_issue(other):
    assert issue_of(other) is None


def edge(kind, to):
    return (Move(kind, "a"), to)


def test_a_cycle_of_states_is_endless_cycles():
    successors = [(edge("x", 1),), (edge("x", 2),), (edge("y", 1), edge("y", 3)), ()]
    assert endless_cycles(successors) == [[1, 2]]
    assert shortest_cycle(successors, [1, 2]) == [1, 2, 1]


def test_a_state_that_leads_to_itself_is_endless_cycles():
    successors = [(edge("x", 0),)]
    assert endless_cycles(successors) == [[0]]
    assert shortest_cycle(successors, [0]) == [0, 0]


def test_a_cycle_that_something_will_end_is_not_endless_cycles():
    successors = [
        (edge("x", 1), edge("expire", 2)),
        (edge("x", 0), edge("expire", 2)),
        (),
    ]
    assert endless_cycles(successors) == []


def test_a_tree_has_no_cycle():
    assert endless_cycles([(edge("x", 1), edge("x", 2)), (edge("x", 2),), ()]) == []
