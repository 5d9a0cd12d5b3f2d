"""What a script shows of a client: for each step what it returns or raises, and its positions.

A real client polls for as long as the scripted one says that something comes, so that a slow
machine cannot make a difference. Records and errors of different partitions have no order.
"""

import asyncio
from contextlib import contextmanager
from unittest import mock

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException
from confluent_kafka import TopicPartition as Position
from kafka import TopicPartition as KafkaPartition

from assignor import UnreadableRecord
from assignor.adapters.aiokafka.records import name_unreadable_records
from assignor.adapters.kafka_python.bounded import BoundedConsumer
from system_tests.broker import BrokerConfig, running_broker
from system_tests.broker.faults import Fault
from system_tests.broker.handlers import records as handlers
from tests.assignor.adapters.contract import aiokafka, confluent, kafka_python
from tests.assignor.adapters.contract.cluster import (
    POISON,
    TOPIC,
    Clock,
    Cluster,
    batch_of,
    shorten,
    spoil_last,
)
from tests.assignor.adapters.contract.scripts import (
    BY_ORDER,
    DESERIALIZING,
    SCRIPTS,
    WITHOUT_RESET,
)

IDLE_POLLS = 8
LIMIT_POLLS = 300
POLL_S = 0.2
CLIENTS = ("kafka_python", "aiokafka", "confluent")


def scripts_of(client):
    """Return name -> script of a client."""
    if client == "confluent":  # librdkafka returns partitions in an order of chance
        return {n: s for n, s in (SCRIPTS | WITHOUT_RESET).items() if n not in BY_ORDER}
    return SCRIPTS | WITHOUT_RESET | DESERIALIZING


def reset_of(name):
    """Return `auto_offset_reset` for a script."""
    return "none" if name in WITHOUT_RESET else "earliest"


def deserialized(value):
    if value.startswith(POISON):
        raise ValueError("poison")
    return value


class Deserializer:
    """A deserializer of both clients that have one."""

    def __call__(self, value):
        return deserialized(value)

    def deserialize(self, topic, headers, data):
        return deserialized(data)


def described(error):
    """Return what an application sees of an error."""
    if isinstance(error, UnreadableRecord):
        return "unreadable", error.partition, error.offset
    return "error", type(error).__name__


class RealCluster:
    """The embedded broker, with the methods of `Cluster`."""

    def __init__(self, broker):
        self._broker, self._refusals = broker, {}
        self._find = handlers._find
        self.incarnation = 1

    def _change(self, number, change):
        def go(embedded):
            change(embedded.cluster.catalog.log(TOPIC, number))
            embedded.cluster.announce_append()

        self._broker.call(go)

    def write(self, number, *values):
        def append(log):
            for value in values:
                log.append(batch_of(value + b" %d %d" % (self.incarnation, log.end_offset)))

        self._change(number, append)

    def damage(self, number, damage):
        def append(log):
            log.append(batch_of(POISON + b" %d %d" % (self.incarnation, log.end_offset)))
            spoil_last(log, damage)

        self._change(number, append)

    def delete_records(self, number, count):
        self._change(number, lambda log: shorten(log, count))

    def delete_topic(self):
        self._broker.call(lambda embedded: embedded.cluster.delete_topic(TOPIC))

    def make_anew(self, *values):
        def go(embedded):
            embedded.cluster.delete_topic(TOPIC)
            embedded.cluster.create_topic(TOPIC, 2)
            for value in values:
                embedded.cluster.catalog.log(TOPIC, 0).append(batch_of(value))
            embedded.cluster.announce_append()

        self.incarnation += 1
        self._broker.call(go)

    def fail_fetch(self, times):
        self._broker.inject(Fault(api="Fetch", drop=True, times=times))

    def refuse_fetch(self, number, code, times):
        self._refusals[number] = [code, times]

    @contextmanager
    def refusing(self):
        """Answer fetches of partitions with errors, while the block runs."""

        def find(call, topic, partition, leader_epoch=-1):
            refusal = self._refusals.get(partition)
            if refusal is None or type(call.request).__name__ != "FetchRequest":
                return self._find(call, topic, partition, leader_epoch)
            refusal[1] -= 1
            if not refusal[1]:
                del self._refusals[partition]
            return handlers._Found(refusal[0])

        handlers._find = find
        try:
            yield
        finally:
            handlers._find = self._find


class KafkaPython:
    """Calls of a script on a `KafkaConsumer`."""

    def __init__(self, **settings):
        self.consumer = BoundedConsumer(
            group_id="app",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            value_deserializer=Deserializer(),
            **settings,
        )

    def assign(self, *numbers):
        self.consumer.assign([KafkaPartition(TOPIC, number) for number in numbers])

    def poll(self, most):
        try:
            batch = self.consumer.poll(timeout_ms=POLL_S * 1000, max_records=most)
        except Exception as error:
            return [described(error)]
        return [("record", p.partition, r.offset) for p, found in batch.items() for r in found]

    def positions(self):
        found = self.consumer._subscription.all_consumed_offsets()
        return {partition.partition: at.offset for partition, at in found.items()}

    def seek(self, number, offset):
        self.consumer.seek(KafkaPartition(TOPIC, number), offset)

    def pause(self, number):
        self.consumer.pause(KafkaPartition(TOPIC, number))

    def resume(self, number):
        self.consumer.resume(KafkaPartition(TOPIC, number))

    def commit(self):
        self.consumer.commit()

    def close(self):
        self.consumer.close()


class Aiokafka:
    """Calls of a script on an `AIOKafkaConsumer`."""

    def __init__(self, loop_factory, begin, **settings):
        self._runner = asyncio.Runner(loop_factory=loop_factory)

        async def start():
            consumer = AIOKafkaConsumer(
                group_id="app",
                enable_auto_commit=False,
                fetch_max_wait_ms=100,
                value_deserializer=Deserializer(),
                **settings,
            )
            await begin(consumer)
            name_unreadable_records(consumer)
            return consumer

        self.consumer = self._runner.run(start())

    def _call(self, function, *arguments):
        async def call():
            return function(*arguments)

        return self._runner.run(call())

    def assign(self, *numbers):
        self._call(self.consumer.assign, [AioPartition(TOPIC, number) for number in numbers])

    def poll(self, most):
        get = self.consumer.getmany(timeout_ms=POLL_S * 1000, max_records=most)
        try:
            batch = self._runner.run(get)
        except Exception as error:
            return [described(error)]
        return [("record", p.partition, r.offset) for p, found in batch.items() for r in found]

    def positions(self):
        found = self.consumer._subscription.subscription.assignment.all_consumed_offsets()
        return {partition.partition: at.offset for partition, at in found.items()}

    def seek(self, number, offset):
        self._call(self.consumer.seek, AioPartition(TOPIC, number), offset)

    def pause(self, number):
        self._call(self.consumer.pause, AioPartition(TOPIC, number))

    def resume(self, number):
        self._call(self.consumer.resume, AioPartition(TOPIC, number))

    def commit(self):
        self._runner.run(self.consumer.commit())

    def close(self):
        self._runner.run(self.consumer.stop())
        self._runner.close()


class Confluent:
    """Calls of a script on librdkafka's consumer, made as the facade makes them."""

    def __init__(self, kind, servers):
        self.consumer = kind(
            {
                "bootstrap.servers": servers,
                "group.id": "app",
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 100,
                "log_level": 0,
            }
        )
        self._read, self._committed = set(), {}

    def assign(self, *numbers):
        begins = self._committed
        gone = [Position(TOPIC, n) for n in sorted(self._read - {*numbers})]
        new = [
            Position(TOPIC, n, begins.get(n, OFFSET_BEGINNING))
            for n in sorted({*numbers} - self._read)
        ]
        if gone:
            self.consumer.incremental_unassign(gone)
        if new:
            self.consumer.incremental_assign(new)
        self._read = {*numbers}

    def poll(self, most):
        found = set()
        for message in self.consumer.consume(most or 100, POLL_S):
            error, place = message.error(), (message.partition(), message.offset())
            found.add(("record", *place) if error is None else ("error", error.name(), *place))
        return sorted(found)

    def positions(self):
        found = self.consumer.position([Position(TOPIC, n) for n in sorted(self._read)])
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def seek(self, number, offset):
        to = Position(TOPIC, number, offset)
        try:
            self.consumer.seek(to)
        except KafkaException:  # nothing is fetched
            self.consumer.incremental_unassign([to])
            self.consumer.incremental_assign([to])

    def pause(self, number):
        self.consumer.pause([Position(TOPIC, number)])

    def resume(self, number):
        self.consumer.resume([Position(TOPIC, number)])

    def commit(self):
        self._committed |= self.positions()

    def close(self):
        self.consumer.close()


def trace_of(name, client, clients, expected=None):
    """Return the trace of a script; `clients` is `scripted` or `real`."""
    # aiokafka fetches partitions in an order of chance.
    in_order = mock.patch("aiokafka.consumer.fetcher.random.shuffle", lambda found: found.sort())
    with in_order, clients(client, reset_of(name)) as (cluster, calls):
        return traced(scripts_of(client)[name], cluster, calls, expected)


def traced(script, cluster, client, expected=None):
    """Return [(events, positions)], one for each step of a client.

    Args:
        expected: the trace of another client, which says how long to wait for events.
    """
    trace = []
    for number, (name, arguments) in enumerate(script):
        if not hasattr(client, name) and name != "take":
            getattr(cluster, name)(*arguments)
            continue
        events = []
        if name == "take":
            most = arguments[0] if arguments else None
            wanted = None if expected is None else expected[len(trace)][1]
            events = _taken(client, most, wanted)
        else:
            getattr(client, name)(*arguments)
        trace.append((number, sorted(events), client.positions()))
    return trace


def _taken(client, most, wanted):
    events = []
    for _ in range(LIMIT_POLLS if wanted else IDLE_POLLS):
        # An error may come several times, by the time that a call takes.
        events += [each for each in client.poll(most) if each not in events]
        if events and len(events) >= len(wanted or events):
            break
    return events


@contextmanager
def scripted(client, reset, release=(99,)):
    """Yield (cluster, calls) of a scripted client; librdkafka's differs by its release."""
    clock = Clock()
    cluster = Cluster(clock)
    with clock.installed():
        if client == "kafka_python":
            calls = KafkaPython(
                bootstrap_servers="memory:1",
                auto_offset_reset=reset,
                **kafka_python.settings(cluster),
            )
        elif client == "confluent":
            calls = Confluent(confluent.reader_of(cluster, release), "memory:1")
        else:

            async def begin(consumer):
                options = {"auto_offset_reset": reset, "value_deserializer": Deserializer()}
                await aiokafka.join(consumer, cluster, subscribes=False, **options)

            calls = Aiokafka(
                lambda: aiokafka.Loop(clock), begin, bootstrap_servers="memory:1"
            )
        yield cluster, calls
        calls.close()


@contextmanager
def real(client, reset):
    """Yield (cluster, calls) of a real client on an embedded broker."""
    with running_broker(BrokerConfig(topics={TOPIC: 2})) as broker:
        cluster = RealCluster(broker)
        servers = broker.bootstrap_servers
        settings = {
            "bootstrap_servers": servers,
            "auto_offset_reset": reset,
        }
        if client == "kafka_python":
            calls = KafkaPython(**settings)
        elif client == "confluent":
            calls = Confluent(Consumer, ",".join(servers))
        else:
            calls = Aiokafka(None, lambda consumer: consumer.start(), **settings)
        with cluster.refusing():
            yield cluster, calls
        calls.close()
