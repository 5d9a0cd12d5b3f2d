"""Rows of the tables for claims, members and answers that decide before another one would."""

import pytest

from probing.rules import first
from probing.topologies import (
    CLAIM_RULES,
    HIGHEST_EPOCH,
    MOST_AHEAD,
    TOPOLOGY_ANSWER_RULES,
    TOPOLOGY_MEMBER_RULES,
    AnswerNumbers,
    MemberNumbers,
)
from probing.topologies.memory import ClaimNumbers

MEMBER = {
    "is_native": True,
    "beside_jvm": False,
    "is_group_topology": True,
    "is_described": False,
    "was_asked": True,
}
ANSWER = {
    "is_numbered": False,
    "has_tasks": True,
    "has_unknown_tasks": False,
    "is_plain": False,
    "sizes_fit": True,
}
CLAIM = {"epoch": 0, "version": 1, "leader_claims": False, "processes": 1, "highest_carried": 0}


@pytest.mark.parametrize(
    ("numbers", "believed"),
    [
        ({}, False),
        ({"leader_claims": True}, True),
        ({"leader_claims": True, "epoch": -1}, False),
        ({"leader_claims": True, "epoch": HIGHEST_EPOCH}, False),
        ({"leader_claims": True, "version": 0}, False),
        ({"processes": 2}, True),
        ({"processes": 2, "epoch": MOST_AHEAD, "known_epoch": -1}, False),
        ({"highest_carried": 1}, True),
        ({"highest_carried": 1, "version": 2}, False),
    ],
)
def test_a_claim_is_believed_if_the_leader_or_two_processes_or_a_carrier_make_it(numbers, believed):
    assert first(CLAIM_RULES, ClaimNumbers(**{**CLAIM, **numbers})).says is believed


@pytest.mark.parametrize(
    ("numbers", "treatment"),
    [
        ({"is_native": False, "beside_jvm": True, "is_group_topology": False}, "jvm"),
        ({"has_valid_version": False, "is_described": True}, "refuse"),
        ({"beside_jvm": True, "is_group_topology": False, "is_described": True}, "refuse"),
        ({"is_described": True, "contradiction": "another form"}, "refuse"),
        ({"is_described": True}, "carries"),
        ({"was_asked": False}, "ask"),
        ({"missed": 2}, "ask"),
        ({"missed": 3}, "refuse"),
        ({}, "refuse"),
    ],
)
def test_a_member_carries_is_asked_or_refused(numbers, treatment):
    rule = first(TOPOLOGY_MEMBER_RULES, MemberNumbers(**{**MEMBER, **numbers}))
    assert rule.says == treatment


@pytest.mark.parametrize(
    ("numbers", "accepted"),
    [
        ({"is_numbered": True}, True),
        ({"is_numbered": True, "has_unknown_tasks": True}, False),
        ({"has_tasks": False}, True),
        ({"is_plain": True}, True),
        ({"is_plain": True, "sizes_fit": False}, False),
        ({}, False),
    ],
)
def test_an_answer_is_accepted_whose_tasks_are_known_and_numbered(numbers, accepted):
    rule = first(TOPOLOGY_ANSWER_RULES, AnswerNumbers(**{**ANSWER, **numbers}))
    assert rule.says is accepted
