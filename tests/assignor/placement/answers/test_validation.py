"""`validate`: each broken rule has its code, Kafka's if Kafka has one."""

import numpy as np
import pytest

from assignor import ClientInput, TaskAssignment, group_state, run_strategy, validate
from assignor.errors import TaskAssignmentError
from assignor.placement import AssignmentError, InvalidAssignment
from encoding import TaskId

TASKS = [TaskId(0, p) for p in range(3)]
# `TaskAssignor.AssignmentError` of Kafka 4.0 (KIP-924).
OF_KAFKA = {
    "NONE",
    "ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES",
    "INVALID_STANDBY_TASK",
    "MISSING_PROCESS_ID",
    "UNKNOWN_PROCESS_ID",
    "UNKNOWN_TASK_ID",
}


def group():
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS[:2],
        clients=[ClientInput(process_id="a"), ClientInput(process_id="b")],
    )


def answer(active=(0, 1, 0), **fields):
    return TaskAssignment(active=np.array(active), **fields)


BROKEN = {
    "ACTIVE_TASK_NOT_ASSIGNED": (answer([0, -1, 0]), TASKS[1], None),
    "UNKNOWN_PROCESS_ID": (answer([0, 2, 0]), TASKS[1], None),
    "UNKNOWN_PROCESS_ID of a standby": (answer(standbys=((0, 9),)), TASKS[0], None),
    "UNKNOWN_TASK_ID": (answer(standbys=((9, 0),)), None, "a"),
    "INVALID_STANDBY_TASK": (answer(standbys=((2, 1),)), TASKS[2], "b"),
    "DUPLICATE_COPY": (answer(standbys=((0, 0),)), TASKS[0], "a"),
    "DUPLICATE_COPY of standbys": (answer(standbys=((0, 1), (0, 1))), TASKS[0], "b"),
    "WARMUP_IS_NO_STANDBY": (answer(warmups=((0, 1),)), None, None),
    "WRONG_TYPE": (answer([0, 1]), None, None),
    "WRONG_TYPE of a field": (answer(followup="later"), None, None),
    "WRONG_TYPE of the answer": ([0, 1, 0], None, None),
}


def test_codes_have_kafkas_names_and_then_native_ones():
    names = [code.name for code in AssignmentError]
    assert set(names[: len(OF_KAFKA)]) == OF_KAFKA
    assert [code.value for code in AssignmentError] == names


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_has_its_code_task_and_client(name):
    given, task, client = BROKEN[name]
    [violation] = validate(group(), given)
    assert violation.code is AssignmentError[name.partition(" ")[0]]
    assert (violation.task, violation.client) == (task, client)
    assert str(violation) == violation.message != ""


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (answer([0, 2, 0]), 2),
        (answer(standbys=((0, 9),)), 9),
        (answer(standbys=((9, 7),)), 7),
        (answer(standbys=((0, 10**30),)), 10**30),
        (answer([0, -1, 0]), None),
        (answer(standbys=((2, 1),)), None),
    ],
)
def test_a_client_that_does_not_exist_is_given_by_its_number(given, number):
    [violation] = validate(group(), given)
    assert violation.client_number == number


def test_every_code_that_columns_can_break_is_tried_above():
    tried = {name.partition(" ")[0] for name in BROKEN}
    by_names_only = {"ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES"}
    assert tried | by_names_only | {"NONE", "MISSING_PROCESS_ID"} == {*AssignmentError}


def test_an_answer_that_is_not_valid_is_an_error_with_all_violations():
    with pytest.raises(TaskAssignmentError, match="the answer of strategy <lambda> is") as caught:
        run_strategy(group(), lambda _: answer([-1, -1, 7]))
    assert isinstance(caught.value, InvalidAssignment)
    assert [
        (violation.code.name, str(violation.task)) for violation in caught.value.violations
    ] == [
        ("ACTIVE_TASK_NOT_ASSIGNED", "0_0"),
        ("ACTIVE_TASK_NOT_ASSIGNED", "0_1"),
        ("UNKNOWN_PROCESS_ID", "0_2"),
    ]
    assert "task 0_2 is active on client 7, and this group has 2" in str(caught.value)
