"""Tasks shared by two threads: new until restored, revoked only between batches."""

import threading
from contextlib import suppress

import pytest

from assignor import ConfigError
from assignor.embedding import RunningTasks
from encoding import TaskId

TASK_1, TASK_2 = TaskId(0, 1), TaskId(0, 2)


def test_new_tasks_are_fresh_until_their_state_is_restored():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {TASK_2: ()})
    assert tasks.tasks() == ({TASK_1}, {TASK_2})
    with tasks.working() as active:
        assert active == set(), "records that come before are skipped, and come again"
    with tasks.working({TASK_1}) as active:
        assert active == {TASK_1}
    assert tasks.tasks() == (set(), {TASK_2})


def test_no_work_begins_between_a_pause_and_the_next_assignment():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    tasks.pause_work()
    with tasks.working() as active:
        assert active == set()
    tasks.on_tasks_revoked({TASK_1: ()}, {})
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    with tasks.working() as active:
        assert active == {TASK_1}


def test_what_a_cooperative_member_keeps_is_not_restored_again():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    with tasks.working({TASK_1}):
        pass
    tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
    assert tasks.tasks()[0] == {TASK_2}


def test_revoked_tasks_are_suspended_until_the_next_assignment_or_loss():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {TASK_2: ()})
    for end in (tasks.on_tasks_assigned, tasks.on_tasks_lost):
        tasks.on_tasks_revoked({TASK_1: ()}, {})
        tasks.on_tasks_revoked({}, {TASK_2: ()})
        assert tasks.suspended == {TASK_1, TASK_2}
        assert not tasks.active | tasks.standby
        end({}, {})
        assert not tasks.suspended
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    tasks.on_tasks_lost({TASK_1: ()}, {})
    assert not tasks.suspended | tasks.active


def test_what_was_revoked_in_between_is_restored_again():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    with tasks.working({TASK_1}):
        pass
    tasks.on_tasks_revoked({TASK_1: ()}, {})
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    assert tasks.tasks()[0] == {TASK_1}


def test_a_task_that_was_lost_while_it_was_restored_does_not_run():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
    fresh, _ = tasks.tasks()
    tasks.on_tasks_lost({TASK_1: ()}, {})
    with tasks.working(fresh) as active:
        assert active == {TASK_2}


def test_a_task_is_restoring_until_its_state_is_there_also_while_it_is_given_up():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
    with tasks.working({TASK_1}):
        pass
    assert tasks.restoring_tasks() == {TASK_2}
    tasks.on_tasks_revoked({TASK_1: (), TASK_2: ()}, {})
    assert tasks.restoring_tasks() == {TASK_2}
    tasks.on_tasks_assigned({}, {})
    assert tasks.restoring_tasks() == set()


def test_an_application_that_restores_nothing_runs_its_tasks_at_once():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {TASK_2: ()})
    with tasks.working() as active:
        assert active == {TASK_1}
    assert tasks.restoring_tasks() == set()


@pytest.mark.parametrize("ask", [lambda tasks: tasks.tasks(), lambda tasks: tasks.fresh])
def test_who_asks_for_fresh_tasks_does_not_get_them_until_they_are_restored(ask):
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    ask(tasks)
    with tasks.working() as active:
        assert active == set()
    assert tasks.restoring_tasks() == set(), "it has not restored anything yet"
    with tasks.working({TASK_1}) as active:
        assert active == {TASK_1}
    tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
    assert tasks.restoring_tasks() == {TASK_2}


def test_a_restored_task_that_is_given_up_for_a_rebalance_and_comes_back_is_not_restoring():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
    with tasks.working({TASK_1}):
        pass
    for _ in range(2):  # two rebalances within one poll
        tasks.on_tasks_revoked({TASK_1: (), TASK_2: ()}, {})
        tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
        assert tasks.restoring_tasks() == {TASK_2}
        assert tasks.tasks()[0] == {TASK_1, TASK_2}, "its stores may be closed meanwhile"


@pytest.mark.parametrize("leaves", ["moved", "lost"])
def test_a_restored_task_that_another_member_had_is_restoring(leaves):
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    with tasks.working({TASK_1}):
        pass
    if leaves == "lost":
        tasks.on_tasks_lost({TASK_1: ()}, {})
    else:
        tasks.on_tasks_revoked({TASK_1: ()}, {})
        tasks.on_tasks_assigned({}, {})
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    assert tasks.restoring_tasks() == {TASK_1}


def test_the_leader_hears_of_restoring_tasks_while_a_batch_is_under_way():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: (), TASK_2: ()}, {})
    with tasks.working({TASK_1}):
        assert tasks.restoring_tasks() == {TASK_2}


@pytest.mark.usefixtures("clock")
def test_a_task_is_revoked_after_the_batch_under_way():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    revoker = threading.Thread(target=tasks.on_tasks_revoked, args=({TASK_1: ()}, {}))
    with tasks.working({TASK_1}) as active:
        revoker.start()
        revoker.join(0.1)
        assert revoker.is_alive()
        assert active == {TASK_1}
    revoker.join(120)
    assert tasks.active == set()


def test_uses_in_the_batch_under_way_are_refused_where_they_would_wait_for_themselves():
    tasks = RunningTasks()
    tasks.on_tasks_assigned({TASK_1: ()}, {})
    uses = (
        tasks.tasks,
        tasks.working().__enter__,
        lambda: tasks.on_tasks_revoked({TASK_1: ()}, {}),
    )
    with tasks.working({TASK_1}):
        for use in uses:
            with pytest.raises(RuntimeError, match="where the use would wait for itself; do it"):
                use()
    assert tasks.tasks() == (set(), set())
    with suppress(KeyError), tasks.working():
        raise KeyError
    tasks.on_tasks_revoked({TASK_1: ()}, {})
    assert tasks.active == set()


def test_the_text_names_running_tasks_and_errors():
    sentences = []
    tasks = RunningTasks(tell=sentences.append)
    tasks.on_tasks_assigned({TASK_2: (), TASK_1: ()}, {})
    tasks.on_error("no broker; start one")
    assert sentences == ["active tasks: 0_1 0_2; standby tasks: none", "no broker; start one"]


def test_an_assignment_is_told_once_until_it_changes_or_is_lost():
    sentences = []
    tasks = RunningTasks(tell=sentences.append)
    first, second = {TASK_1: ()}, {TASK_1: (), TASK_2: ()}
    for active in (first, first, second, first):
        tasks.on_tasks_assigned(active, {})
        tasks.on_tasks_revoked(active, {})
    named = ["0_1", "0_1 0_2", "0_1"]
    assert sentences == [f"active tasks: {each}; standby tasks: none" for each in named]
    tasks.on_tasks_lost(first, {})
    tasks.on_tasks_assigned(first, {})
    assert len(sentences) == 4


def test_tell_has_to_be_a_function():
    with pytest.raises(ConfigError, match="tell=3 is refused; give a function of a sentence"):
        RunningTasks(3)
