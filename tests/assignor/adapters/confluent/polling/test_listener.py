"""The application's listener behind the mailbox: nothing that it says is lost."""

from assignor import RunningTasks, TasksListener
from assignor.adapters.confluent.events import Mailbox
from assignor.adapters.confluent.handover import DeferredListener
from encoding import TaskId


def test_every_method_of_a_listener_is_passed_on():
    of_a_listener = {name for name in vars(TasksListener) if not name.startswith("_")}
    assert of_a_listener - vars(DeferredListener).keys() == set()


def test_what_the_subscription_contains_is_asked_at_once():
    class Listener(RunningTasks):
        def task_offsets(self):
            return {TaskId(0, 0): 7}

    listener = Listener()
    listener.on_tasks_assigned({TaskId(0, 0): (), TaskId(0, 1): ()}, {})
    with listener.working({TaskId(0, 1)}):
        deferred = DeferredListener(listener, Mailbox())
        assert deferred.restoring_tasks() == {TaskId(0, 0)}
        assert deferred.task_offsets() == {TaskId(0, 0): 7}
    assert deferred.reports_offsets
    assert not DeferredListener(RunningTasks(), Mailbox()).reports_offsets
