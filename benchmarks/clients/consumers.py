"""Records per second of a confluent-kafka member of this package, beside other consumers.

Each figure is of a consumer in its own process that reads one topic: confluent-kafka's own consumer
(`range`), `assignor.adapters.confluent.Consumer`, and kafka-python with `StreamsAssignor`; the
latter two assign tasks. "fetched before": librdkafka has all records in its queue, so that only the
work of the client is measured; "from the broker": with fetching, from the first record on.

`python -m benchmarks.clients.consumers` takes five minutes on the embedded broker;
`--bootstrap-server HOST:PORT` takes another one. Rounds alternate between the consumers, and the
best of each counts, which other load of the machine disturbs least. Exit status 1: the goal is
missed.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from contextlib import contextmanager

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.confluent import Consumer
from assignor.adapters.kafka_python import StreamsAssignor
from benchmarks.rows import at_least, say

PART = "consumers"
PARTITIONS = 4
VALUE = b"x" * 100
GOAL = 0.9  # of confluent-kafka's own consumer, with consume(500)
BATCH = 500
TIMEOUT_S = 120
OWN, PLAIN, PYTHON = "this package", "confluent-kafka", "kafka-python"
# confluent-kafka 2.16 reads slowly where it may wait 0.2 s or more; a fair loop waits less.
CALLS = {
    "consume(500, 0.1)": lambda consumer: len(consumer.consume(BATCH, 0.1)),
    "consume(500, 1.0)": lambda consumer: len(consumer.consume(BATCH, 1.0)),
    "poll(0.1)": lambda consumer: consumer.poll(0.1) is not None,
}
WITH_GOAL = "consume(500, 0.1)"
_QUEUE = {
    "queued.min.messages": 10_000_000,
    "queued.max.messages.kbytes": 2_000_000,
    "statistics.interval.ms": 100,
}


def topology_of(topic):
    return Topology().add_source("in", topics=[topic])


def reader_of(client, servers, topic, *, fetched_before):
    """Return a subscribed librdkafka consumer, and a function that returns its queue's length."""
    queued = {}

    def noted(text):
        partitions = json.loads(text)["topics"].get(topic, {}).get("partitions", {})
        queued.update({name: values["fetchq_cnt"] for name, values in partitions.items()})

    settings = {
        "bootstrap.servers": servers,
        "group.id": f"bench-{time.monotonic_ns()}",
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **(_QUEUE | {"stats_cb": noted} if fetched_before else {}),
    }
    if client == PLAIN:
        consumer = confluent_kafka.Consumer(settings)
    else:
        consumer = Consumer(settings, topology=topology_of(topic))
    consumer.subscribe([topic])
    return consumer, lambda: sum(queued.values())


def read_by_librdkafka(client, call, servers, topic, records, *, fetched_before):
    """Return seconds and records, measured after the first records have come."""
    consumer, queued = reader_of(client, servers, topic, fetched_before=fetched_before)
    seen = 0
    while not seen:
        seen += len(consumer.consume(1, 1.0))
    while fetched_before and queued() < records - seen - PARTITIONS:
        time.sleep(0.2)
        seen += len(consumer.consume(1, 0))
    read = CALLS[call]
    first, began_s = seen, time.perf_counter()
    while seen < records:
        seen += read(consumer)
    took_s = time.perf_counter() - began_s
    consumer.close()
    return took_s, seen - first


def read_by_kafka_python(servers, topic, records):
    assignor = StreamsAssignor(topology_of(topic))
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=f"bench-{time.monotonic_ns()}",
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
    )
    assignor.attach(consumer)
    seen = 0
    while not seen:
        seen += sum(map(len, consumer.poll(1000).values()))
    first, began_s = seen, time.perf_counter()
    while seen < records:
        seen += sum(map(len, consumer.poll(1000, max_records=BATCH).values()))
    took_s = time.perf_counter() - began_s
    consumer.close()
    assignor.close()
    return took_s, seen - first


def be_reader(wanted):
    """Read as the JSON says; print records per second."""
    if wanted["client"] == PYTHON:
        took_s, seen = read_by_kafka_python(wanted["servers"], wanted["topic"], wanted["records"])
    else:
        took_s, seen = read_by_librdkafka(**wanted)
    print(json.dumps(seen / took_s))


def rate(**wanted):
    """Records per second of a consumer in its own process."""
    command = [sys.executable, "-m", "benchmarks.clients.consumers", "--reader"]
    ended = subprocess.run(
        [*command, json.dumps(wanted)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
    )
    return json.loads(ended.stdout.splitlines()[-1])


@contextmanager
def broker_at(servers):
    """Yield bootstrap servers, of an embedded broker in its own process where none is given."""
    if servers:
        yield servers
        return
    command = [sys.executable, "-m", "system_tests.broker", "--port", "0", "--format", "json"]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield ",".join(json.loads(broker.stdout.readline())["listening"])
    finally:
        broker.terminate()
        broker.wait()


def fill(servers, topic, records):
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(TIMEOUT_S)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 0})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(TIMEOUT_S):
        raise SystemExit(f"not all of {records} records were written in {TIMEOUT_S} s")


def measure(servers, topic, records, rounds):
    """Return (client, call, fetched before) -> most records per second."""
    kinds = list(itertools.product((PLAIN, OWN), CALLS, (True, False)))
    kinds.append((PYTHON, "", False))
    rates = {kind: [] for kind in kinds}
    for _, kind in itertools.product(range(rounds), kinds):
        client, call, before = kind
        wanted = {"client": client, "call": call, "fetched_before": before}
        rates[kind].append(rate(**wanted, servers=servers, topic=topic, records=records))
    return {kind: max(values) for kind, values in rates.items()}


def report(rates):
    """Print figures; return whether the goal is met."""
    rows = []
    for before, call in itertools.product((True, False), CALLS):
        where = "fetched before" if before else "from the broker"
        plain, own = rates[PLAIN, call, before], rates[OWN, call, before]
        say(PART, f"{PLAIN}, {call}, {where}", f"{plain:,.0f} records/s")
        say(PART, f"{OWN}, {call}, {where}", f"{own:,.0f} records/s")
        name = f"{OWN} / {PLAIN}, {call}, {where}"
        rows.append(at_least(PART, name, own / plain, GOAL, has_goal=call == WITH_GOAL))
    python = rates[PYTHON, "", False]
    say(PART, f"{PYTHON}, from the broker", f"{python:,.0f} records/s")
    say(PART, f"{OWN} / {PYTHON}, {WITH_GOAL}", rates[OWN, WITH_GOAL, False] / python)
    return all(row.met is not False for row in rows)


def main():
    """Measure, print rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bootstrap-server", default="")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        be_reader(json.loads(options.reader))
        return 0
    with broker_at(options.bootstrap_server) as servers:
        topic = f"bench-{time.monotonic_ns()}"
        fill(servers, topic, options.records)
        return 0 if report(measure(servers, topic, options.records, options.rounds)) else 1


if __name__ == "__main__":
    sys.exit(main())
