"""`close` where an application calls it: in each kind of callback, and when it is interrupted."""

import signal
import threading

import pytest
from confluent_kafka import KafkaError

from assignor import TasksListener
from system_tests.broker import Fault
from tests.assignor.adapters.confluent.harness import (
    GROUP,
    LIMIT_S,
    Calls,
    committed,
    fill,
    poll_until,
    servers_of,
)
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
    thread.join(LIMIT_S)
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


@pytest.mark.parametrize("name", ["error_cb", "stats_cb"])
@pytest.mark.parametrize("method", ["poll", "consume"])
@pytest.mark.parametrize("fails", [True, False])
def test_close_in_a_callback_of_librdkafka(broker, consumer, name, method, fails):
    """It closes after librdkafka's own call, which continues when the callback has returned."""
    made, calls = [], Calls()

    def closes(_):
        if calls.owned == [0, 1, 2, 3]:
            made[0].close()
            made[0].assignment()  # still open
            if fails:
                raise ZeroDivisionError

    nowhere = {"bootstrap.servers": f"{servers_of(broker)},127.0.0.1:1"}
    made.append(consumer(nowhere | {name: closes, "statistics.interval.ms": 100}))
    made[0].subscribe(["words"], **calls.callbacks)
    if name == "error_cb":
        poll_until(lambda: calls.owned, made[0])
        broker.inject(Fault(api="Fetch", drop=True, times=1000))
    if fails:
        with pytest.raises(ZeroDivisionError):
            until(lambda: getattr(made[0], method)(timeout=0.05))
    else:
        polls_until_closed(made[0], method)
    assert calls.owned == []
    assert broker.groups()[GROUP].members == ()
    with pytest.raises(RuntimeError, match=CLOSED):
        made[0].poll()


def test_close_does_not_wait_for_the_end_of_a_join(broker, consumer, monkeypatch):
    """Brokers answer a LeaveGroup behind a JoinGroup, which may wait for other members."""
    monkeypatch.setattr("assignor.adapters.confluent.handover._LEAVE_MS", 200)
    member, calls = consumer(), Calls()
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    joins = len(broker.requests("JoinGroup"))
    broker.inject(Fault(api="JoinGroup", delay_ms=600_000))
    broker.inject(Fault(api="Heartbeat", error=KafkaError.REBALANCE_IN_PROGRESS))
    poll_until(lambda: len(broker.requests("JoinGroup")) > joins, member)
    member.close()
    assert calls.owned == []


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


@pytest.mark.usefixtures("alone")
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
