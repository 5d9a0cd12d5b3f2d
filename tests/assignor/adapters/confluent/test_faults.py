"""The facade when something fails: broker, member, callbacks, the application itself."""

import gc
import threading
import warnings

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from assignor.adapters.confluent import Consumer
from assignor.adapters.confluent.events import Rebalanced
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.adapters.confluent.harness import (
    GROUP,
    LIMIT_S,
    SHORT,
    TOPOLOGY,
    Calls,
    committed,
    fill,
    is_idle,
    next_error,
    poll_until,
    read,
    remove,
    servers_of,
)
from tests.assignor.embedding.clusters import until

MANUAL = {"enable.auto.commit": False}


def joined(member, calls=None):
    calls = calls or Calls()
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    return member


def test_a_consumer_without_a_broker_waits_and_closes_at_once(broker, consumer):
    member = consumer({"bootstrap.servers": "127.0.0.1:1"})
    member.subscribe(["words"])
    assert member.poll(0.2) is None
    with pytest.raises(KafkaException) as raised:
        member.list_topics(timeout=0.1)
    assert raised.value.args[0].code() in {KafkaError._TRANSPORT, KafkaError._TIMED_OUT}
    member.close()


def test_a_broker_that_comes_back_finds_its_member_again(broker, consumer):
    fill(broker)
    calls = Calls()
    member = consumer({"reconnect.backoff.max.ms": 200})
    member.subscribe(["words"], **calls.callbacks)
    read(member, 40)
    broker.stop_node(1)
    assert member.poll(0.5) is None
    broker.start_node(1)
    fill(broker, 8)
    assert {record.offset() for record in read(member, 8)} == {10, 11}
    member.commit(asynchronous=False)
    assert committed(broker) == dict.fromkeys(range(4), 12)


def test_a_commit_without_a_coordinator_fails_in_time(broker, consumer):
    member = joined(consumer(MANUAL | {"socket.timeout.ms": 1000}))
    broker.stop_node(1)
    with pytest.raises(KafkaException) as raised:
        member.commit(offsets=[TopicPartition("words", 0, 1)], asynchronous=False)
    assert raised.value.args[0].code() in {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
    }


def test_a_member_that_the_group_removed_loses_its_partitions_and_joins_again(broker, consumer):
    calls = Calls()
    member = joined(consumer(), calls)
    before = member.memberid()
    remove(broker, member)
    poll_until(lambda: calls.of("lost"), member)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    assert calls.of("lost") == [[0, 1, 2, 3]]
    assert calls.of("revoke") == []
    assert member.memberid() != before


def test_partitions_that_are_lost_are_revoked_where_there_is_no_on_lost(broker, consumer):
    calls = Calls()
    member = consumer()
    callbacks = {name: calls.callbacks[name] for name in ("on_assign", "on_revoke")}
    member.subscribe(["words"], **callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    remove(broker, member)
    poll_until(lambda: calls.of("revoke"), member)


def test_nothing_is_committed_of_lost_partitions(broker, consumer):
    """Also not what is stored and the callback commits: another member continues with them."""
    fill(broker)
    errors = []

    def on_lost(member, partitions):
        try:
            member.commit(asynchronous=False)
        except KafkaException as error:
            errors.append(error.args[0].code())

    member = consumer({"auto.commit.interval.ms": 600_000})
    member.subscribe(["words"], on_lost=on_lost)
    read(member, 40)
    broker.inject(Fault(api="JoinGroup", delay_ms=600_000))
    remove(broker, member)
    poll_until(lambda: errors, member)
    broker.clear_faults()
    assert errors == [KafkaError.UNKNOWN_MEMBER_ID]
    assert committed(broker) == {}


def test_a_fenced_static_member_gets_a_fatal_error(broker, consumer):
    static = {"group.instance.id": "one"} | MANUAL
    calls = Calls()
    old = joined(consumer(static), calls)
    joined(consumer(static))
    error = next_error(old)
    assert error.fatal()
    assert error.code() == KafkaError._FATAL
    assert "group.instance.id" in error.str()
    poll_until(lambda: calls.of("lost"), old)
    assert old.assignment() == []
    with pytest.raises(KafkaException) as raised:
        old.commit(offsets=[TopicPartition("words", 0, 1)], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError._FATAL
    with pytest.raises(KafkaException):
        old.subscribe(["words"])


def test_a_missing_right_is_an_error_and_tried_again(broker, consumer, monkeypatch):
    monkeypatch.setattr("assignor.adapters.confluent.member._REFUSED_S", 0.1)
    broker.inject(Fault(api="JoinGroup", error=KafkaError.GROUP_AUTHORIZATION_FAILED, times=2))
    calls = Calls()
    member = consumer()
    member.subscribe(["words"], **calls.callbacks)
    error = next_error(member)
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert not error.fatal()
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)


@pytest.mark.parametrize("name", ["on_assign", "on_revoke"])
@pytest.mark.parametrize("method", ["poll", "consume"])
def test_what_a_callback_raises_comes_out_and_the_rebalance_goes_on(broker, consumer, name, method):
    def fails(_, partitions):
        raise ZeroDivisionError(name)

    first, second = Calls(), Calls()
    consumer_a = consumer()
    consumer_a.subscribe(["words"], **{**first.callbacks, name: fails})
    if name == "on_assign":
        with pytest.raises(ZeroDivisionError, match="on_assign"):
            until(lambda: getattr(consumer_a, method)(timeout=0.05))
        assert len(consumer_a.assignment()) == 4
        return
    poll_until(lambda: first.owned == [0, 1, 2, 3], consumer_a)
    consumer_b = consumer()
    consumer_b.subscribe(["words"], **second.callbacks)
    with pytest.raises(ZeroDivisionError, match="on_revoke"):
        until(lambda: getattr(consumer_a, method)(timeout=0.05))
    poll_until(lambda: len(second.owned) == 2, consumer_a, consumer_b)
    assert len(consumer_a.assignment()) == 2
    consumer_a.subscribe(["words"])  # so that its close does not fail


def test_what_a_callback_raises_in_close_comes_out_of_a_closed_consumer(broker, consumer):
    def fails(_, partitions):
        raise ZeroDivisionError

    member = consumer()
    calls = Calls()
    member.subscribe(["words"], on_assign=calls.callbacks["on_assign"], on_revoke=fails)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    with pytest.raises(ZeroDivisionError):
        member.close()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        member.poll()
    assert broker.groups()[GROUP].members == ()


def test_a_revocation_is_served_while_consume_waits_for_a_full_batch(broker, consumer):
    first, second = Calls(), Calls()
    consumer_a = joined(consumer(), first)
    stop = threading.Event()

    def consume():
        while not stop.is_set():
            consumer_a.consume(1_000_000, timeout=30)

    thread = threading.Thread(target=consume)
    thread.start()
    consumer_b = consumer()
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(second.owned) == 2, consumer_b)
    assert first.threads != {threading.get_ident()}
    stop.set()
    consumer_b.close()
    fill(broker, 4)
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_close_in_the_middle_of_a_rebalance(broker, consumer):
    calls = Calls()
    member = joined(consumer(), calls)
    broker.inject(Fault(api="SyncGroup", delay_ms=600_000, times=2))
    other = consumer()
    other.subscribe(["words"])
    poll_until(lambda: broker.groups()[GROUP].state.value == "CompletingRebalance", member)
    given_up = calls.callbacks["on_revoke"]
    member.subscribe(["words"], on_revoke=lambda *of: (given_up(*of), broker.clear_faults()))
    member.close()
    assert calls.owned == []
    second = Calls()
    other.subscribe(["words"], **second.callbacks)
    poll_until(lambda: second.owned == [0, 1, 2, 3], other)


def test_a_slow_application_leaves_the_group_and_comes_back(broker, consumer):
    fill(broker)
    calls = Calls()
    member = consumer()
    member.subscribe(["words"], **calls.callbacks)
    read(member, 40)
    before = member.memberid()
    until(lambda: is_idle(member) and broker.groups()[GROUP].members == ())
    error = member.poll(LIMIT_S).error()
    assert error.code() == KafkaError._MAX_POLL_EXCEEDED
    assert not error.fatal()
    assert "Application maximum poll interval (300000ms) exceeded by" in error.str()
    assert calls.of("lost") == []
    fill(broker, 4)
    poll_until(lambda: len(calls.of("assign")) == 2, member)
    assert calls.calls[1:] == [("lost", [0, 1, 2, 3]), ("assign", [0, 1, 2, 3])]
    assert member.memberid() != before


def owes_a_revocation(member):
    return any(isinstance(each, Rebalanced) for each in member._mailbox.events.copy())


def test_a_slow_application_delays_a_rebalance_no_longer_than_its_poll_interval(broker, consumer):
    first, second = Calls(), Calls()
    slow, other = consumer(), consumer()
    joined(slow, first)
    other.subscribe(["words"], **second.callbacks)
    poll_until(lambda: owes_a_revocation(slow), other)
    poll_until(lambda: is_idle(slow) and second.owned == [0, 1, 2, 3], other)
    assert slow.poll(LIMIT_S).error().code() == KafkaError._MAX_POLL_EXCEEDED
    poll_until(lambda: len(first.owned) == len(second.owned) == 2, slow, other)
    assert first.of("revoke") == []
    assert first.of("lost") == [[0, 1, 2, 3]]


def test_a_callback_longer_than_the_poll_interval_is_still_polling(broker, consumer):
    """As in librdkafka, whose poll blocks meanwhile; the session continues."""
    entered, goes_on = threading.Event(), threading.Event()

    def wait(_, partitions):
        entered.set()
        assert goes_on.wait(LIMIT_S)

    member = consumer()
    member.subscribe(["words"], on_assign=wait)
    thread = threading.Thread(target=poll_until, args=(goes_on.is_set, member))
    thread.start()
    assert entered.wait(LIMIT_S)
    before = len(broker.requests("Heartbeat"))
    until(lambda: is_idle(member) and len(broker.requests("Heartbeat")) > before + 5)
    assert len(broker.groups()[GROUP].members) == 1
    assert broker.requests("LeaveGroup") == ()
    goes_on.set()
    thread.join()


def test_a_consumer_that_is_forgotten_leaves_the_group(broker):
    member = Consumer({"bootstrap.servers": servers_of(broker), **SHORT}, topology=TOPOLOGY)
    joined(member)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # what other tests have forgotten
    with pytest.warns(ResourceWarning, match="unclosed Consumer: call its close"):  # noqa: PT031
        del member
        # The collector does nothing while it runs on another thread.
        until(lambda: gc.collect() >= 0 and broker.groups()[GROUP].members == ())
    until(lambda: not any(t.name == f"member-{GROUP}" for t in threading.enumerate()))


@pytest.mark.usefixtures("clock")
def test_reader_and_member_find_brokers_that_were_all_replaced():
    """Both go back to the bootstrap servers (KIP-899, KIP-1102)."""
    config = BrokerConfig(topics={"words": 4}, bootstrap_listener=True)
    settings = {"reconnect.backoff.max.ms": 200, "metadata.recovery.rebootstrap.trigger.ms": 500}
    with running_broker(config) as broker:
        fill(broker)
        with Consumer(
            {"bootstrap.servers": servers_of(broker), **SHORT, **settings}, topology=TOPOLOGY
        ) as member:
            member.subscribe(["words"])
            read(member, 40)
            broker.replace_nodes()
            fill(broker, 4)
            assert {record.offset() for record in read(member, 4)} == {10}
            member.commit(asynchronous=False)
            assert committed(broker) == dict.fromkeys(range(4), 11)
