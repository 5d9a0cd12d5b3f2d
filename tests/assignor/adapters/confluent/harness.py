"""Consumers of a topology on an embedded broker, and helpers that wait for what they do."""

import threading
import time
from collections import Counter

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from assignor import Topology
from assignor.adapters.confluent import Consumer
from system_tests.coordinator import LeaveGroup, LeavingMember

LIMIT_S = 120
GROUP = "words-group"
TOPOLOGY = Topology().add_source("words", topics=["words"])
SHORT = {
    "group.id": GROUP,
    "auto.offset.reset": "earliest",
    "heartbeat.interval.ms": 100,
    "session.timeout.ms": 60_000,
    "log_level": 0,
}


def servers_of(broker):
    return ",".join(broker.bootstrap_servers)


def refusal(call):
    """Return the sentence with which a call refuses its arguments."""
    with pytest.raises(KafkaException) as raised:
        call()
    error = raised.value.args[0]
    assert error.code() == KafkaError._INVALID_ARG
    return error.str()


def fill(broker, count=40, *, topic="words", partitions=4):
    """Write records 0, 1, 2 ... to the partitions in turn."""
    producer = Producer({"bootstrap.servers": servers_of(broker), "log_level": 0})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % partitions)
    assert producer.flush(LIMIT_S) == 0


def poll_until(holds, *consumers, timeout=0.02):
    """Poll all in turn until a condition holds; return the records."""
    seen = []
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, "the condition never held"
        for consumer in consumers:
            message = consumer.poll(timeout)
            if message is not None and message.error() is None:
                seen.append(message)
    return seen


def read(consumer, count, **more):
    """Return that many records."""
    records = []
    end = time.monotonic() + LIMIT_S
    while len(records) < count:
        assert time.monotonic() < end, f"{len(records)} of {count} records"
        records += [m for m in consumer.consume(count - len(records), 0.1) if m.error() is None]
    return records


def next_error(consumer):
    """Return the next error that `poll` returns."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        message = consumer.poll(0.05)
        if message is not None and message.error() is not None:
            return message.error()
    raise AssertionError("no error came")


def remove(broker, member):
    """Remove a consumer's member from the group, as the coordinator does after its session."""
    leaving = LeaveGroup(group_id=GROUP, members=(LeavingMember(member.memberid()),))
    broker.run(broker._broker.cluster.ask(leaving))


def is_idle(member, *, idle_s=301):
    """Let the application of a consumer be idle for so long, at the least; return True.

    A look of the member after a poll begins anew: call it until the member has noticed.
    """
    member._mailbox._polled_s -= idle_s
    return True


def numbers(partitions):
    return sorted(partition.partition for partition in partitions)


def committed(broker, topic="words", group=GROUP):
    """Return partition -> committed offset."""
    return {
        key.partition: value.offset
        for key, value in broker.committed(group).items()
        if key.topic == topic
    }


class Calls:
    """Rebalance callbacks that keep their calls: (name, partitions, thread)."""

    def __init__(self):
        self.calls = []
        self.threads = set()

    def _keep(self, name):
        def callback(consumer, partitions):
            assert isinstance(consumer, Consumer)
            assert all(isinstance(each, TopicPartition) for each in partitions)
            self.threads.add(threading.get_ident())
            self.calls.append((name, numbers(partitions)))

        return callback

    @property
    def callbacks(self):
        return {f"on_{name}": self._keep(name) for name in ("assign", "revoke", "lost")}

    def of(self, name):
        return [partitions for called, partitions in self.calls if called == name]

    @property
    def owned(self):
        """What the callbacks left to the consumer."""
        owned = Counter()
        for name, partitions in self.calls:
            for partition in partitions:
                owned[partition] += 1 if name == "assign" else -1
        assert set(owned.values()) <= {0, 1}, "a partition twice"
        return sorted(owned.elements())
