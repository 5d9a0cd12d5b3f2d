"""From kafka-python's own range assignor to cooperative tasks, and back, without a full stop.

A member lists every assignor that it can follow, the wanted one first; the coordinator takes one
that all members know. So one bounce adds the native one, eager as the stock ones are, and the next
leaves the stock one out and may be cooperative: from then on every possible leader waits for owners
(KIP-429).
"""

import threading
import time
from contextlib import ExitStack

import pytest
from kafka import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from system_tests.broker import BrokerConfig, running_broker
from system_tests.support.stock_consumer import StockConsumer

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]
PARTITIONS = 6
NAMES = ("a", "b", "c")


def streams_assignor(protocol):
    topology = Topology().add_source("in", topics=["in"])
    return StreamsAssignor(topology, rebalance_protocol=protocol)


STEPS = {
    "stock": lambda: [RangePartitionAssignor],
    "both": lambda: [streams_assignor("eager"), RangePartitionAssignor],
    "cooperative": lambda: [streams_assignor("cooperative")],
}


class Owners(ConsumerRebalanceListener):
    """The owners of all partitions; records two owners of one partition."""

    def __init__(self, name, owner, doubles):
        self.name, self.owner, self.doubles = name, owner, doubles

    def on_partitions_assigned(self, assigned):
        for where in assigned:
            former = self.owner.setdefault(where.partition, self.name)
            if former != self.name:
                self.doubles.append((where.partition, former, self.name))

    def on_partitions_revoked(self, revoked):
        for where in revoked:
            if self.owner.get(where.partition) == self.name:
                del self.owner[where.partition]


class Member(threading.Thread):
    """A consumer in a thread, until it is stopped."""

    def __init__(self, bootstrap, listener, assignors):
        super().__init__(daemon=True)
        self.bootstrap, self.listener, self.assignors = bootstrap, listener, assignors
        self.stopping = threading.Event()
        self.error = None
        self.start()

    def run(self):
        consumer = StockConsumer(
            bootstrap_servers=self.bootstrap,
            group_id="g",
            partition_assignment_strategy=self.assignors,
            enable_auto_commit=False,
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
            metrics_enabled=False,
        )
        consumer.partitions_for_topic("in")
        for assignor in self.assignors:
            if isinstance(assignor, StreamsAssignor):
                assignor.attach(consumer)
        consumer.subscribe(["in"], listener=self.listener)
        try:
            while not self.stopping.is_set():
                consumer.poll(timeout_ms=100)
        except Exception as error:  # noqa: BLE001 the test's thread raises it again
            self.error = error
        finally:
            consumer.close()

    def stop(self):
        self.stopping.set()
        self.join(300)
        assert not self.is_alive()


def wait_until(condition, members):
    deadline = time.monotonic() + 300
    while not condition():
        for member in members.values():
            if member.error is not None:
                raise member.error
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


def test_a_stock_group_becomes_cooperative_in_two_bounces_and_comes_back_in_two():
    owner, doubles, members, seen = {}, [], {}, []
    with ExitStack() as stack:
        broker = stack.enter_context(running_broker(BrokerConfig(topics={"in": PARTITIONS})))
        stack.callback(lambda: [member.stop() for member in members.values()])

        def settled():
            group = broker.groups()["g"]
            return group.state == "Stable" and len(group.members) == len(members)

        for step in ("stock", "both", "cooperative", "both", "stock"):
            for name in NAMES:
                if name in members:
                    members.pop(name).stop()
                listener = Owners(name, owner, doubles)
                members[name] = Member(broker.bootstrap_servers, listener, STEPS[step]())
                wait_until(lambda: len(owner) == PARTITIONS and settled(), members)
            wait_until(lambda: set(owner.values()) == set(NAMES), members)
            seen.append(broker.groups()["g"].protocol_name)
    assert doubles == []
    assert seen == ["range", "stream", "stream", "stream", "range"]
