"""The search finds known Kafka issues, none where they are fixed, and visits every state."""

from collections import deque
from dataclasses import replace

import pytest

from probing import MemberModel
from probing.leader import next_version
from probing.member import used_version
from system_tests.explore.moves import OPERATOR, group_moves, operator_moves
from system_tests.explore.report import runbook
from system_tests.explore.search import Bounds, Search, explore, first_node, steps
from system_tests.sim import BounceOptions, plan_bounce


def plan_of(old, new, *, static=False):
    return plan_bounce(BounceOptions(old=old, new=new, static=static, force=True))


def explored(old, new, *, issue=None, static=False, **bounds):
    small = {"members": 2, "partitions": 4} | bounds
    found = explore(plan_of(old, new, static=static), Bounds(static=static, **small), issue=issue)
    return found, {finding.issue for finding in found.found}


def test_kafka_8649_is_found_with_its_shortest_runbook():
    found, issues = explored("2.0.1", "2.3.0", crashes=0)
    assert issues == {"KAFKA-8649"}
    assert found.complete
    moves = found.found[0].moves
    assert runbook(plan_of("2.0.1", "2.3.0"), moves) == ["stop a", "start a on 2.3.0"]


@pytest.mark.parametrize("new", ["2.2.2", "2.3.1"])
def test_kafka_8649_is_gone_where_it_was_fixed(new):
    found, issues = explored("2.0.1", new, crashes=0)
    assert found.complete
    assert issues == set()


@pytest.mark.slow
def test_kafka_9821_is_found_when_the_member_that_gives_up_restarts():
    _, issues = explored("2.4.1", "2.5.1", static=True, issue="KAFKA-9821")
    assert "KAFKA-9821" in issues


def test_kafka_10455_is_found_when_a_rejoin_is_ignored():
    _, issues = explored("2.6.0", "2.6.1", static=True, issue="KAFKA-10455")
    assert "KAFKA-10455" in issues


def test_kafka_14382_is_found_as_an_endless_cycle():
    found, issues = explored("3.3.1", "3.9.1", members=3, issue="KAFKA-14382")
    assert "KAFKA-14382" in issues
    (finding,) = [finding for finding in found.found if finding.issue == "KAFKA-14382"]
    assert finding.cycle
    assert finding.finding.repeats


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_nothing_is_found_between_the_newest_release_and_native(static):
    found, issues = explored("3.9.1", "native", static=static, crashes=0)
    assert found.complete
    assert issues == set()


def test_a_group_that_stays_below_the_version_of_all_its_members_is_found(monkeypatch):
    rows = next_version.NEXT_VERSION_RULES
    stuck = replace(rows[-1], says=lambda _: 11)
    assert stuck.name == "natives only"
    monkeypatch.setattr(next_version, "NEXT_VERSION_RULES", (*rows[:-1], stuck))
    found, _ = explored("3.9.1", "native", crashes=0)
    assert {finding.finding.broken.rule for finding in found.found} == {"final versions"}
    sentences = runbook(plan_of("3.9.1", "native"), found.found[0].moves)
    assert sentences[-1] == "force a rebalance"


def test_a_search_at_its_limit_is_incomplete():
    found, _ = explored("3.9.1", "native", crashes=0, max_states=10)
    assert not found.complete
    assert found.states >= 10
    plan = plan_of("3.9.1", "native")
    late = explore(plan, Bounds(members=2, partitions=4), is_out_of_time=lambda: True)
    assert (late.states, late.complete, late.stopped) == (
        1,
        False,
        "stopped at the time limit (--timeout)",
    )


def test_a_search_that_found_something_goes_on_for_a_while_for_other_rules():
    soon, issues = explored("2.0.1", "2.3.0", members=3, more_states=0)
    assert issues == {"KAFKA-8649"}
    assert soon.stopped == "stopped 0 states after the first finding (--more-states)"
    later, _ = explored("2.0.1", "2.3.0", members=3, more_states=200)
    assert soon.states < later.states < soon.states + 300
    assert later.found[0].moves == soon.found[0].moves


def everything(plan, bounds):
    """Every state of a small world: all runs are visited, no states are merged."""
    search = Search(plan, bounds)
    reached = set()
    runs = deque([search.first])
    while runs:
        node = runs.popleft()
        reached.add(search.keys.key_of(node.world, node.evidence, node.progress))
        moves = group_moves(node.world, reduced=False)
        rests = not moves and node.world.is_at_rest()
        moves += operator_moves(node.world, node.progress, plan, rests=rests)
        for move in moves:
            runs.extend(
                step.node for step in steps(node, plan, move, reduced=False) if not step.found
            )
    return search, reached


@pytest.mark.parametrize("new", ["3.9.1", "native"])
def test_a_tiny_world_has_the_states_that_brute_force_finds(new):
    plan = plan_of("3.8.1", new)
    bounds = Bounds(members=1, partitions=2, symmetric=False, reduced=False)
    search, reached = everything(plan, bounds)
    found = search.run(lambda: False)
    assert found.complete
    assert set(search.known) == reached
    assert found.states == len(reached) > 20


@pytest.mark.parametrize(("old", "new"), [("2.0.1", "2.3.0"), ("3.9.1", "native")])
def test_merging_states_hides_no_finding(old, new):
    plan = plan_of(old, new)
    merged = explore(plan, Bounds(members=2, partitions=2, crashes=0))
    whole = explore(
        plan, Bounds(members=2, partitions=2, crashes=0, symmetric=False, reduced=False)
    )
    assert merged.complete
    assert whole.complete
    assert merged.states < whole.states
    kinds = [
        {(o.finding.broken.rule, o.issue) for o in explored.found} for explored in (merged, whole)
    ]
    assert kinds[0] == kinds[1]
    shortest = [
        sorted(sum(m.kind in OPERATOR for m in finding.moves) for finding in e.found)
        for e in (merged, whole)
    ]
    assert shortest[0] == shortest[1]


def test_a_rule_missing_in_the_members_table_is_found(monkeypatch):
    rules = used_version.MEMBER_RULES[MemberModel.FOLLOWUP_WAITS]
    kept = tuple(rule for rule in rules if rule is not used_version.MEMBER_NOT_UPGRADED)
    assert len(kept) < len(rules)
    monkeypatch.setitem(used_version.MEMBER_RULES, MemberModel.FOLLOWUP_WAITS, kept)
    _, issues = explored("3.8.1", "3.9.1", crashes=0)
    assert issues == set()  # both write version 11: the rule never fires
    found, _ = explored("2.8.2", "3.9.1", crashes=0)
    assert found.found


def test_the_first_state_is_a_group_at_rest():
    node = first_node(plan_of("3.9.1", "native"), Bounds(members=3))
    assert node.world.is_at_rest()
    assert group_moves(node.world) == []
    assert {
        move.kind
        for move in operator_moves(
            node.world, node.progress, plan_of("3.9.1", "native"), rests=True
        )
    } == {"stop", "crash"}
