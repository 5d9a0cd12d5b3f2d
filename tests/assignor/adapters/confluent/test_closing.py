"""`close` where an application calls it: in each kind of callback, and when it is interrupted."""

import signal
import threading

import pytest

from assignor import TasksListener
from tests.assignor.adapters.confluent.harness import GROUP, Calls, committed, fill, poll_until
from tests.assignor.embedding.clusters import until

CLOSED = "Consumer closed"


class Closing(TasksListener):
    """Closes the consumer when it gets tasks."""

    def __init__(self):
        super().__init__()
        self.consumer = None

    def on_tasks_assigned(self, active, standby):
        self.consumer.close()


class ClosingTooEarly(TasksListener):
    """Closes the consumer where it is asked for offsets."""

    def __init__(self):
        super().__init__()
        self.consumer = None
        self.refusals = []

    def task_offsets(self):
        try:
            self.consumer.close()
        except RuntimeError as error:
            self.refusals.append(str(error))
        return {}


def polls_until_closed(member, method="poll"):
    """Poll until that fails, on a thread, so that a test of a hang ends."""
    failures = []

    def run():
        try:
            while True:
                message = getattr(member, method)(timeout=0.05)
                if method == "poll" and message is not None and message.error() is None:
                    member.commit(message)
        except RuntimeError as error:
            failures.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "close hangs"
    assert failures == [CLOSED]


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_close_in_on_assign(broker, consumer, method):
    member, calls = consumer(), Calls()

    def closes(closed, _):
        closed.close()

    member.subscribe(["words"], on_assign=closes, on_revoke=calls.callbacks["on_revoke"])
    polls_until_closed(member, method)
    assert calls.of("revoke") == [[0, 1, 2, 3]]
    assert broker.groups()[GROUP].members == ()
    with pytest.raises(RuntimeError, match=CLOSED):
        member.poll()


def test_close_in_on_commit(broker, consumer):
    fill(broker, 4)
    made = []
    made.append(consumer({"on_commit": lambda *_: made[0].close(), "enable.auto.commit": False}))
    made[0].subscribe(["words"])
    polls_until_closed(made[0])
    assert committed(broker)
    assert broker.groups()[GROUP].members == ()


def test_close_in_a_listener(broker, consumer):
    listener = Closing()
    listener.consumer = consumer(listener=listener)
    listener.consumer.subscribe(["words"])
    polls_until_closed(listener.consumer)
    assert broker.groups()[GROUP].members == ()


def test_close_in_a_callback_that_then_raises(broker, consumer):
    member = consumer()

    def fails(closed, _):
        closed.close()
        raise ZeroDivisionError

    member.subscribe(["words"], on_assign=fails)
    with pytest.raises(ZeroDivisionError):
        until(lambda: member.poll(0.05))
    with pytest.raises(RuntimeError, match=CLOSED):
        member.poll()
    assert broker.groups()[GROUP].members == ()


def test_close_in_the_on_revoke_of_close(broker, consumer):
    member, calls = consumer(), Calls()
    member.subscribe(["words"], calls.callbacks["on_assign"], lambda closed, _: closed.close())
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    member.close()
    assert broker.groups()[GROUP].members == ()


def test_an_interrupt_in_a_callback_gets_through_and_the_consumer_closes(broker, consumer):
    member = consumer()

    def interrupted(closed, _):
        closed.close()
        signal.raise_signal(signal.SIGINT)

    member.subscribe(["words"], on_assign=interrupted)
    with pytest.raises(KeyboardInterrupt):
        until(lambda: member.poll(0.05))
    assert broker.groups()[GROUP].members == ()


def test_close_on_a_thread_of_the_member_is_refused_at_once(broker, consumer):
    listener = ClosingTooEarly()
    listener.consumer = consumer(listener=listener)
    listener.consumer.subscribe(["words"])
    poll_until(lambda: listener.refusals and listener.consumer.assignment(), listener.consumer)
    assert "in task_offsets, on_error, an observer or a hook" in listener.refusals[0]
