"""One thread polls; others may call every other method, and `close`; a forked process may not."""

import math
import os
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException, TopicPartition

from assignor import Topology
from tests.assignor.adapters.confluent.harness import (
    GROUP,
    LIMIT_S,
    TOPOLOGY,
    Calls,
    committed,
    fill,
    poll_until,
)
from tests.assignor.embedding.clusters import until

WORDS = TopicPartition("words", 0)


@contextmanager
def polled_elsewhere(member, timeout=1.0):
    """Poll on another thread until it is closed; yield what its poll raised."""
    raised, stop, polled = [], threading.Event(), threading.Event()

    def run():
        try:
            while not stop.is_set():
                member.poll(timeout)
                polled.set()
        except RuntimeError as error:
            raised.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    # A poll without a timeout is too short to be seen: a look at it finds one after many seconds.
    if timeout == 0:
        assert polled.wait(LIMIT_S)
    else:
        until(lambda: member._polling.is_busy)
    try:
        yield raised
    finally:
        stop.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def in_time(call):
    """Return what a call returns; fail if it hangs."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive(), "the call hangs"
    return found[0]


def positions(member):
    return sum(max(0, each.offset) for each in member.position(member.assignment()))


@pytest.fixture
def member(broker, consumer):
    made, calls = consumer(), Calls()
    made.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], made)
    made.calls = calls
    return made


def test_methods_answer_while_another_thread_polls_without_an_end(broker, member):
    with polled_elsewhere(member, -1) as raised:
        assert len(in_time(member.assignment)) == 4
        assert in_time(lambda: member.position([WORDS]))[0].offset < 0
        assert in_time(lambda: member.committed([WORDS], timeout=LIMIT_S))[0].offset < 0
        assert in_time(lambda: member.get_watermark_offsets(WORDS, timeout=LIMIT_S)) == (0, 0)
        assert "words" in in_time(lambda: member.list_topics(timeout=LIMIT_S)).topics
        assert len(in_time(lambda: member.offsets_for_times([WORDS], timeout=LIMIT_S))) == 1
        in_time(lambda: member.pause([WORDS]))
        in_time(lambda: member.resume([WORDS]))
        in_time(lambda: member.seek(TopicPartition("words", 0, 0)))
        in_time(lambda: member.incremental_assign([TopicPartition("other", 0, 0)]))
        in_time(lambda: member.incremental_unassign([TopicPartition("other", 0)]))
        # The polling thread continues.
        fill(broker)
        until(lambda: positions(member) == 40)
        assert not raised
        in_time(member.close)


@pytest.mark.parametrize("timeout", [-1, 0])
def test_close_on_another_thread_ends_the_poll(broker, member, timeout):
    fill(broker)
    with polled_elsewhere(member, timeout) as raised:
        until(lambda: positions(member) == 40)
        in_time(member.close)
    assert raised == ["Consumer closed"]
    assert member.calls.owned == []
    assert broker.groups()[GROUP].members == ()
    assert sum(committed(broker).values()) == 40


def test_close_on_another_thread_while_none_polls(broker, member):
    in_time(member.close)
    assert member.calls.owned == []
    assert broker.groups()[GROUP].members == ()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        member.poll(0)


def test_poll_beside_a_close_on_another_thread_raises(member):
    begun, goes_on = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        assert goes_on.wait(LIMIT_S)

    member.subscribe(["words"], on_revoke=slow)
    thread = threading.Thread(target=member.close, daemon=True)
    thread.start()
    assert begun.wait(LIMIT_S)
    for timeout in (0, 0.1):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            member.poll(timeout)
    goes_on.set()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_a_second_polling_thread_is_refused(member):
    with polled_elsewhere(member) as raised:
        for read in (member.poll, lambda timeout: member.consume(1, timeout)):
            with pytest.raises(RuntimeError, match="another thread polls this consumer"):
                read(0.1)
        assert not raised


def test_a_callback_may_wait_for_another_thread_that_uses_the_consumer(consumer):
    member, seen = consumer(), []

    def asks(*_):
        seen.append(in_time(lambda: member.list_topics(timeout=LIMIT_S)))

    member.subscribe(["words"], on_assign=asks)
    poll_until(lambda: seen, member)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_gets_one_sentence(broker, member):
    calls = [
        lambda: member.poll(0),
        lambda: member.poll(1),
        lambda: member.consume(1, 1),
        lambda: member.commit(asynchronous=False),
        member.assignment,
    ]
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        refusals = 0
        for call in calls:
            try:
                call()
            except RuntimeError as error:
                refusals += "before this process was forked" in str(error)
        member.close()
        os.write(send, bytes([refusals]))
        os._exit(0)
    os.close(send)
    assert in_time(lambda: os.read(receive, 1)) == bytes([len(calls)])
    os.close(receive)
    os.waitpid(child, 0)
    fill(broker)
    poll_until(lambda: positions(member) == 40, member)


def test_methods_of_a_closed_consumer_raise(member):
    member.close()
    for call in (member.assignment, lambda: member.position([WORDS]), member.list_topics):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            call()


def test_arguments_of_the_wrong_kind_are_refused_as_by_confluent_kafka(member, consumer):
    with pytest.raises(TypeError, match="must be real number"):
        member.poll("x")
    with pytest.raises(TypeError, match="must be real number"):
        member.poll(None)
    with pytest.raises(ValueError, match="timeout=nan is refused; give seconds"):
        member.poll(math.nan)
    with pytest.raises(ValueError, match="timeout=nan is refused; give seconds"):
        member.consume(1, math.nan)
    for method in (consumer().assign, member.incremental_assign, member.incremental_unassign):
        with pytest.raises(TypeError, match="requires list of TopicPartition"):
            method(5)
        with pytest.raises(TypeError, match=r"expected cimpl\.TopicPartition"):
            method([5])
    with pytest.raises(TypeError, match="requires list of TopicPartition"):
        member.commit(offsets="x")
    with pytest.raises(TypeError, match="expected list of topic unicode strings"):
        member.subscribe("words")
    member.subscribe(("words",))


def test_a_timeout_of_the_wrong_kind_is_refused_also_when_a_record_is_ready(member, monkeypatch):
    record = SimpleNamespace(error=lambda: None)
    monkeypatch.setattr("assignor.adapters.confluent.consumer.read_one", lambda *_: [record])
    assert member.poll(0) is record
    with pytest.raises(TypeError, match="must be real number"):
        member.poll("x")


def test_a_program_with_two_versions_of_its_topology(broker, consumer):
    newer = Topology(version=2).add_source("words", topics=["words"])
    newer.add_source("other", topics=["other"])
    made, calls = consumer(topology=None, topologies=[TOPOLOGY, newer]), Calls()
    with pytest.raises(KafkaException, match="'other' of the topology is missing"):
        made.subscribe(["words"])
    made.subscribe(["words", "other"], **calls.callbacks)
    poll_until(lambda: len(made.assignment()) == 6, made)
    assert made.assignor.topology_versions(0)
