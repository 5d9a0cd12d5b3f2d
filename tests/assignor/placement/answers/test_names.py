"""Assignments by client and by task, in both directions: names and columns."""

from dataclasses import replace

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, TaskAssignment, group_state, run_strategy
from assignor.errors import TaskAssignmentError
from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    STRATEGIES,
    AssignmentError,
    ClientTasks,
    InvalidAssignment,
    TaskPlaces,
    assignment_from,
    by_client,
    by_task,
    client_inputs,
    find_strategy,
    nearest_caught_up_client,
)
from encoding import TaskId
from tests.assignor.explain.groups import draw_group

TASKS = [TaskId(0, p) for p in range(4)]
CLIENTS = [
    ClientInput(
        process_id="ada",
        threads=2,
        active_tasks=frozenset(TASKS),
        lags=dict.fromkeys(TASKS[:3], LAG_RUNNING),
        rack="r1",
        tags=(("zone", "a"),),
    ),
    ClientInput(process_id="bob", lags={TASKS[0]: 7, TASKS[1]: 90_000, TASKS[2]: LAG_UNKNOWN}),
    ClientInput(process_id="cyd", lags={TASKS[0]: 3}),
]


def group(**changes):
    given = {
        "tasks": TASKS,
        "stateful_tasks": TASKS[:3],
        "clients": CLIENTS,
        "config": AssignmentConfig(num_standby_replicas=1),
        "end_offset_sums": dict.fromkeys(TASKS, 10**6),
    }
    return group_state(**given | changes)


ANSWER = TaskAssignment(
    active=np.array([0, 0, 1, 2]),
    standbys=((0, 1), (0, 2), (1, 2), (2, 0)),
    warmups=((0, 2),),
    followup=True,
    warnings=("odd",),
)
NAMED = {
    "ada": ClientTasks(active=(TASKS[0], TASKS[1]), standby=(TASKS[2],)),
    "bob": ClientTasks(active=(TASKS[2],), standby=(TASKS[0],)),
    "cyd": ClientTasks(active=(TASKS[3],), standby=(TASKS[1],), warmup=(TASKS[0],)),
}


def same(left, right):
    return left.active.tolist() == right.active.tolist() and all(
        getattr(left, name) == getattr(right, name)
        for name in ("standbys", "warmups", "followup", "look_again", "warnings")
    )


def test_by_client_every_client_has_its_tasks():
    assert by_client(group(), ANSWER) == NAMED


def test_by_task_every_task_has_its_clients():
    found = by_task(group(), ANSWER)
    assert found[TASKS[0]] == TaskPlaces(active="ada", standby=("bob",), warmup=("cyd",))
    assert found[TASKS[3]] == TaskPlaces(active="cyd")
    assert list(found) == TASKS


def test_names_lead_back_to_the_same_assignment():
    assert same(assignment_from(group(), NAMED, followup=True, warnings=["odd"]), ANSWER)


@pytest.mark.parametrize("name", STRATEGIES)
def test_there_and_back_is_the_same_for_every_strategy(name):
    for seed in range(10):
        state = draw_group(seed)
        answer = run_strategy(state, find_strategy(name))
        rest = {name: getattr(answer, name) for name in ("followup", "look_again", "warnings")}
        assert same(assignment_from(state, by_client(state, answer), **rest), answer)


def test_an_answer_that_waits_for_stalled_copies_keeps_that_by_name():
    waits = replace(ANSWER, followup=False, look_again=True)
    named = assignment_from(group(), NAMED, look_again=True, warnings=["odd"])
    assert same(named, waits)


def test_a_client_without_tasks_is_there_and_may_be_left_out():
    state = group(stateful_tasks=[])
    answer = assignment_from(state, {"bob": ClientTasks(active=TASKS)})
    assert by_client(state, answer)["ada"] == ClientTasks()


def test_an_answer_for_another_group_has_no_names():
    for view in (by_client, by_task):
        with pytest.raises(InvalidAssignment) as caught:
            view(group(), replace(ANSWER, active=np.array([0, 0])))
        assert [violation.code for violation in caught.value.violations] == [
            AssignmentError.WRONG_TYPE
        ]


WITHOUT_LAST = NAMED | {"cyd": ClientTasks(standby=(TASKS[1],))}
WRONG = {
    "client eve does not exist (this group has 3)": (
        NAMED | {"eve": ClientTasks()},
        AssignmentError.UNKNOWN_PROCESS_ID,
    ),
    "client bobb does not exist (this group has 3); did you mean bob?": (
        NAMED | {"bobb": ClientTasks()},
        AssignmentError.UNKNOWN_PROCESS_ID,
    ),
    "task 9_9, which client cyd is given, does not exist": (
        NAMED | {"cyd": ClientTasks(active=(TASKS[3], TaskId(9, 9)))},
        AssignmentError.UNKNOWN_TASK_ID,
    ),
    "task '0_3', which client cyd is given, is str; give TaskId": (
        NAMED | {"cyd": ClientTasks(active=("0_3",))},
        AssignmentError.WRONG_TYPE,
    ),
    "the tasks of a client are list; give ClientTasks": (
        NAMED | {"cyd": [TASKS[3]]},
        AssignmentError.WRONG_TYPE,
    ),
    "task 0_0 is active on ada and on cyd": (
        NAMED | {"cyd": ClientTasks(active=(TASKS[3], TASKS[0]))},
        AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES,
    ),
    "task 0_3 is active twice on cyd": (
        NAMED | {"cyd": ClientTasks(active=(TASKS[3], TASKS[3]))},
        AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES,
    ),
    "task 0_3 has no active client": (WITHOUT_LAST, AssignmentError.ACTIVE_TASK_NOT_ASSIGNED),
    "standby of 0_3, which has no state": (
        NAMED | {"bob": ClientTasks(active=(TASKS[2],), standby=(TASKS[3],))},
        AssignmentError.INVALID_STANDBY_TASK,
    ),
    "ada holds two copies of 0_0": (
        NAMED | {"ada": ClientTasks(active=(TASKS[0], TASKS[1]), standby=(TASKS[0],))},
        AssignmentError.DUPLICATE_COPY,
    ),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_names_get_wrong_is_one_violation_with_code_and_sentence(sentence):
    clients, code = WRONG[sentence]
    with pytest.raises(InvalidAssignment) as caught:
        assignment_from(group(), clients)
    assert [(violation.code, str(violation)) for violation in caught.value.violations] == [
        (code, sentence)
    ]
    assert str(caught.value) == f"the assignment is not valid: {sentence}"


ABOUT = {
    "eve": (NAMED | {"eve": ClientTasks()}, "eve", None),
    "a task that is not there": (
        NAMED | {"cyd": ClientTasks(active=(TASKS[3], TaskId(9, 9)))},
        "cyd",
        TaskId(9, 9),
    ),
    "no ClientTasks": (NAMED | {"cyd": [TASKS[3]]}, "cyd", None),
    "an id of two lines": (NAMED | {"eve\n": ClientTasks()}, "eve\n", None),
}


@pytest.mark.parametrize("case", ABOUT)
def test_a_violation_has_the_names_that_it_is_about_also_unknown_ones(case):
    clients, client, task = ABOUT[case]
    with pytest.raises(InvalidAssignment) as caught:
        assignment_from(group(), clients)
    [violation] = caught.value.violations
    assert (violation.client, violation.client_number, violation.task) == (client, None, task)


def test_clients_are_what_the_group_was_made_of():
    state = group()
    found = client_inputs(state)
    assert list(found.values()) == CLIENTS
    again = group(clients=found.values())
    assert again.owner.tolist() == state.owner.tolist()
    assert np.array_equal(again.copy_rows(), state.copy_rows())


def test_the_nearest_caught_up_client_runs_the_task_or_lags_least():
    state = group()
    assert nearest_caught_up_client(state, TASKS[0]) == "ada"
    assert nearest_caught_up_client(state, TASKS[0], among=["bob", "cyd"]) == "cyd"
    assert nearest_caught_up_client(state, TASKS[1], among=["bob", "cyd"]) is None, "90,000 behind"
    assert nearest_caught_up_client(state, TASKS[2], among=["bob"]) is None, "unknown"
    assert nearest_caught_up_client(state, TASKS[3]) is None, "stateless"
    small = group(end_offset_sums=dict.fromkeys(TASKS, 5))
    assert nearest_caught_up_client(small, TASKS[1], among=["cyd"]) == "cyd", "5 records in all"
    idle = group(clients=[CLIENTS[1], replace(CLIENTS[2], threads=0)])
    assert nearest_caught_up_client(idle, TASKS[0]) == "bob", "cyd has no threads"


def test_the_nearest_client_of_names_that_are_not_there_is_an_error():
    with pytest.raises(TaskAssignmentError, match="task 9_9 does not exist"):
        nearest_caught_up_client(group(), TaskId(9, 9))
    with pytest.raises(TaskAssignmentError, match="client eve does not exist"):
        nearest_caught_up_client(group(), TASKS[0], among=["eve"])
