"""What a script shows of a client: for each step what it returns or raises, and its positions.

A real client polls for as long as the scripted one says that something comes, so that a slow
machine cannot make a difference. Records and errors of different partitions have no order.
"""

from contextlib import contextmanager
from unittest import mock

from confluent_kafka import Consumer

from system_tests.broker import BrokerConfig, running_broker
from system_tests.broker.faults import Fault
from system_tests.broker.handlers import records as handlers
from tests.assignor.adapters.contract import aiokafka, confluent, kafka_python
from tests.assignor.adapters.contract.calls import (
    Aiokafka,
    Confluent,
    Deserializer,
    KafkaPython,
)
from tests.assignor.adapters.contract.cluster import (
    POISON,
    TOPIC,
    Clock,
    Cluster,
    append_transaction,
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
CLIENTS = ("kafka_python", "aiokafka", "confluent")


def scripts_of(client):
    """Return name -> script of a client."""
    if client == "confluent":  # librdkafka returns partitions in an order of chance
        return {n: s for n, s in (SCRIPTS | WITHOUT_RESET).items() if n not in BY_ORDER}
    return SCRIPTS | WITHOUT_RESET | DESERIALIZING


def reset_of(name):
    """Return `auto_offset_reset` for a script."""
    return "none" if name in WITHOUT_RESET else "earliest"


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

    def write_transaction(self, number, value):
        def append(log):
            value_here = value + b" %d %d" % (self.incarnation, log.end_offset)
            append_transaction(log, value_here)

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

            calls = Aiokafka(lambda: aiokafka.Loop(clock), begin, bootstrap_servers="memory:1")
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
