"""Checks of all answers of a generation before any is sent; the previous plan as fallback."""

from dataclasses import replace

import pytest

from assignor import LeaderKnowledge
from assignor.errors import TaskAssignmentError
from assignor.rebalance.leader import assign
from assignor.rebalance.leader.answer_bytes import write_answers
from assignor.rebalance.leader.answer_checks import check_answers
from assignor.topology import plan_tasks
from encoding import KNOWN_VERSIONS, TaskId, TopicPartition
from tests.assignor.rebalance.groups import TOPOLOGY, Group

PLAN = plan_tasks(TOPOLOGY.subtopologies("app"), {"lines": 6})
TASKS = [TaskId(0, p) for p in range(6)]


def group_of(*names):
    group = Group()
    for name in names:
        group.join(name)
    return group


def answers_of(group):
    group.round("a")
    return dict(group.last.answers)


def changed(answers, member, **fields):
    member_answer = answers[member]
    own = {name: fields.pop(name) for name in ("partitions",) if name in fields}
    assignment = replace(member_answer.assignment, **fields)
    return answers | {member: replace(member_answer, assignment=assignment, **own)}


def test_right_answers_pass():
    check_answers(answers_of(group_of("a", "b")), PLAN, KNOWN_VERSIONS)


def test_a_partition_for_two_members_is_refused_and_both_are_named():
    answers = answers_of(group_of("a", "b"))
    answers["b"] = replace(answers["b"], partitions=answers["a"].partitions)
    with pytest.raises(TaskAssignmentError, match="lines-0 goes to both a and b"):
        check_answers(answers, PLAN, KNOWN_VERSIONS)


def test_partitions_that_are_not_those_of_the_tasks_are_refused():
    answers = answers_of(group_of("a", "b"))
    answers["a"] = replace(answers["a"], partitions=answers["a"].partitions[:-1])
    with pytest.raises(TaskAssignmentError, match="a gets 2 partitions, which are not those"):
        check_answers(answers, PLAN, KNOWN_VERSIONS)


def test_tasks_that_do_not_exist_or_are_standby_too_are_refused():
    answers = answers_of(group_of("a"))
    strange = changed(answers, "a", active_tasks=(TaskId(7, 7),))
    with pytest.raises(TaskAssignmentError, match="task 7_7, which does not exist"):
        check_answers(strange, PLAN, KNOWN_VERSIONS)
    both = changed(answers, "a", standby_tasks={TASKS[0]: (TopicPartition("lines", 0),)})
    with pytest.raises(TaskAssignmentError, match="0_0 as active and as standby"):
        check_answers(both, PLAN, KNOWN_VERSIONS)


def test_answers_that_break_a_rule_are_not_sent_and_tasks_stay_where_they_ran(monkeypatch):
    group = group_of("a", "b")
    group.round("a")
    before = group.owners()
    group.join("c")

    def broken(*decided):
        answers, left_out = write_answers(*decided)
        monkeypatch.setattr(assign, "write_answers", write_answers)
        answers["c"] = replace(answers["c"], partitions=answers["a"].partitions)
        return answers, left_out

    monkeypatch.setattr(assign, "write_answers", broken)
    group.round("a", knowledge=LeaderKnowledge(leader_id="a", now_ms=1_000))
    assert group.owners() == before
    [warning] = [warning for warning in group.last.warnings if "goes to both" in warning]
    assert "tasks stay where they ran" in warning
    assert group.last.memory.failures.count == 1
    assert group.last.answers["a"].assignment.next_rebalance_ms == 11_000, "the next rebalance"


def test_what_nobody_ran_is_dealt_evenly_meanwhile(monkeypatch):
    group = group_of("a", "b")
    group.round("a")
    del group.members["b"]
    group.join("c")

    def failing(*_, **__):
        raise TaskAssignmentError("no strategy gave a valid assignment")

    monkeypatch.setattr("assignor.rebalance.leader.assign.place_tasks", failing)
    ran = set(group.members["a"].held.active)
    group.round("a")
    owners = group.owners()
    assert sorted(owners) == TASKS
    assert {task for task, name in owners.items() if name == "a"} == ran
    assert len(set(owners.values())) == 2
