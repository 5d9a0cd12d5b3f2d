"""librdkafka that reaches no broker while the member of the group does."""

from types import SimpleNamespace

import pytest

from assignor.adapters.confluent import reader
from assignor.adapters.confluent.events import Mailbox
from assignor.adapters.confluent.settings import divided
from tests.assignor.adapters.confluent.harness import GROUP, LIMIT_S, Calls, next_error, poll_until
from tests.assignor.embedding.clusters import until

BASE = {"bootstrap.servers": "a:1", "group.id": "g", "reconnect.backoff.max.ms": 100}


def test_a_reader_without_brokers_gives_its_partitions_up(broker, consumer):
    """librdkafka issue 5301: it forgets all brokers when a metadata answer names none."""
    calls = Calls()
    member = consumer({"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 200})
    watch = member._member._reader
    watch.limit_s, watch._interval_s = 3.0, 1.0  # instead of the session and a third of it
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    address = broker.call(lambda embedded: embedded.cluster.address_by_node.pop(1))
    assert member.list_topics("words", timeout=LIMIT_S).brokers == {}
    broker.call(lambda embedded: embedded.cluster.node_started(1, address))
    error = next_error(member)
    assert error.fatal()
    assert "librdkafka has reached no broker for 3 s while the group member has" in error.str()
    poll_until(lambda: calls.of("lost"), member)
    until(lambda: broker.groups()[GROUP].members == ())


@pytest.fixture
def watched(monkeypatch):
    """A watch, and its environment: the time, when the member heard, what the reader reaches."""
    state = SimpleNamespace(now_s=0.0, heard_s=0.0, reaches=False, asked=0, mailbox=Mailbox())
    monkeypatch.setattr(reader, "time", SimpleNamespace(monotonic=lambda: state.now_s))

    def reaches(topic, timeout_s):
        assert (topic, timeout_s) == ("words", 1.0)
        state.asked += 1
        return state.reaches

    settings = divided(BASE | {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500})
    watch = reader.ReaderWatch(settings, state.mailbox, reaches)

    def step(seconds, *, is_heard=True):
        state.now_s += seconds
        state.heard_s = state.now_s if is_heard else state.heard_s
        is_lost = watch.is_lost("words", state.heard_s)
        while (event := state.mailbox.take()) is not None:
            event.call()
        return is_lost

    state.step = step
    return state


def test_a_reader_is_lost_when_it_reaches_nothing_for_a_session(watched):
    assert [watched.step(1.0) for _ in range(6)] == [False] * 4 + [True] * 2


def test_a_reader_that_reaches_a_broker_is_asked_three_times_a_session(watched):
    watched.reaches = True
    assert not any(watched.step(0.1) for _ in range(300))
    assert 8 <= watched.asked / 30.0 * 10 <= 11


def test_a_reader_is_not_lost_while_the_member_hears_nothing_either(watched):
    for _ in range(20):
        assert not watched.step(1.0, is_heard=False)
    # Both come back; the reader has a session to follow.
    assert not any(watched.step(1.0) for _ in range(3))
    watched.reaches = True
    assert not any(watched.step(1.0) for _ in range(9))


def test_a_reader_has_two_of_its_longest_pauses_to_connect():
    settings = divided(BASE | {"session.timeout.ms": 3000, "reconnect.backoff.max.ms": 10_000})
    assert reader.ReaderWatch(settings, Mailbox(), lambda *_: True).limit_s == 20.0
