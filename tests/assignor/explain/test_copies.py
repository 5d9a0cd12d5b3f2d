"""Each rule about a standby, a warm-up or a copy that is given up decides its case."""

from dataclasses import replace

import numpy as np
import pytest

from assignor import AssignmentConfig, TaskAssignment, group_state
from assignor.explain.actives import active_reason
from assignor.explain.copies import copy_reason, dropped, dropped_reason
from assignor.explain.facts import facts_of
from assignor.placement import LAG_RUNNING, find_strategy
from encoding import TaskId
from tests.assignor.explain.groups import group_of_one, holder

OWNER = holder("a", LAG_RUNNING, runs=True)
BEHIND = holder("b", 90_000)


def explained(*clients, answer=None, **settings):
    state = group_of_one(*clients, **settings)
    strategy = find_strategy("high_availability")
    return facts_of(state, answer or strategy(state), strategy="high_availability")


def in_zone(client, zone):
    return replace(client, tags=(("zone", zone),))


def rules_of(facts):
    """The rule of each copy that is given, and of each that is given up, by name of its client."""
    names = facts.state.clients
    given = {names[c]: copy_reason(facts, 0, c).rule for c in facts.copies.get(0, [])}
    return given, {names[c]: dropped_reason(facts, 0, c).rule for c in dropped(facts, 0)}


def test_a_standby_moves_once_its_target_has_caught_up():
    zones = [in_zone(OWNER, "x"), in_zone(holder("b", 3), "x"), in_zone(holder("c", None), "y")]
    facts = explained(*zones, replicas=1, rack_aware_assignment_tags=("zone",))
    assert rules_of(facts)[0] == {
        "b": "kept until another is caught up",
        "c": "warms up before a standby moves here",
    }


GIVEN = [
    ((OWNER, BEHIND), ((0, 1),), ((0, 1),), 0, "extra copy, warms up"),
    ((OWNER, BEHIND, holder("c", 5)), ((0, 1), (0, 2)), (), 1, "extra copy, warms up"),
    ((OWNER, holder("b", None)), ((0, 1),), (), 1, "standby added"),
    ((OWNER, holder("b", None), holder("c", 5)), ((0, 1),), (), 1, "standby moved here"),
    ((OWNER, holder("b", 3)), ((0, 1),), (), 1, "standby kept"),
]


@pytest.mark.parametrize(("clients", "standbys", "warmups", "replicas", "rule"), GIVEN)
def test_copies_of_an_answer_from_elsewhere(clients, standbys, warmups, replicas, rule):
    answer = TaskAssignment(active=np.array([0]), standbys=standbys, warmups=warmups)
    facts = explained(*clients, answer=answer, replicas=replicas)
    assert rules_of(facts)[0]["b"] == rule


DROPPED = [
    (holder("b", 3, threads=0), (), 1, "client has no threads"),
    (holder("b", 3, threads=0), (), 0, "client has no threads"),
    (holder("b", 3), (), 0, "no standbys configured"),
    (holder("b", 3), ((0, 2),), 1, "enough copies elsewhere"),
    (holder("b", 3), (), 1, "given up"),
]


@pytest.mark.parametrize(("client", "standbys", "replicas", "rule"), DROPPED)
def test_copies_that_are_given_up(client, standbys, replicas, rule):
    answer = TaskAssignment(active=np.array([0]), standbys=standbys)
    facts = explained(OWNER, client, holder("c", None), answer=answer, replicas=replicas)
    assert rules_of(facts)[1] == {"b": rule}


def test_the_last_row_of_a_table_gives_its_own_sentence():
    new = TaskAssignment(active=np.array([0]), standbys=((0, 1),))
    facts = explained(OWNER, holder("b", None), answer=new, replicas=1)
    assert copy_reason(facts, 0, 1).why == (
        "num.standby.replicas is 1, no other client had its state; 1,000,000 records to restore"
    )
    alone = TaskAssignment(active=np.array([0]), standbys=())
    facts = explained(OWNER, holder("b", 3), answer=alone, replicas=1)
    assert dropped_reason(facts, 0, 1).why == "num.standby.replicas is 1; it was at lag 3"


@pytest.mark.parametrize(
    ("owner", "threads", "rule"),
    [
        ("b", 1, "stateless, kept by its owner"),
        (None, 1, "stateless, started on a client with free capacity"),
        ("a", 0, "leaves a client without threads"),
        ("a", 1, "stateless, moved"),
    ],
)
def test_tasks_without_state(owner, threads, rule):
    task = TaskId(0, 0)
    clients = [
        holder(name, None, runs=name == owner, threads=threads if name == "a" else 1)
        for name in ("a", "b")
    ]
    state = group_state(tasks=[task], stateful_tasks=[], clients=clients, config=AssignmentConfig())
    answer = TaskAssignment(active=np.array([1]), standbys=())
    facts = facts_of(state, answer, strategy="high_availability")
    reason = active_reason(facts, 0)
    assert reason.rule == rule
    if rule == "stateless, moved":
        assert reason.why == "a goes from 1 tasks in total to 0, b from 0 to 1"
