"""Records per second of a confluent-kafka member of this package, beside other consumers.

    python -m benchmarks.clients.consumers [--records 500000] [--pairs 10] [--bootstrap-server ...]

confluent-kafka's own consumer (`range`) and `assignor.adapters.confluent.Consumer` each have a
process, in which they read one topic again and again, in turns. A pair is a turn of each, one right
after the other; the ratio of a call is the median over all pairs, after a first one that does not
count. Each reads `--records` times `--pairs` records, and has room for `--records`.

- "fetched before": librdkafka has all records in its queue, so that only the work of the client is
  measured. The goal is on wall time there, so let nothing else run. Other load takes wall time from
  one turn and not from the next; the processor time of the reading thread, which is busy until a
  call returns, hardly changes with it. Threads in the background work by the second, not by the
  record, and have a row of their own.
- "from the broker": the turn begins with an empty queue and ends with the last record. The broker
  takes most of the wall time; there is no goal.

kafka-python with `StreamsAssignor` reads a part of the topic. Exit status 1: the goal is missed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

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
PYTHON_RECORDS = 50_000
TIMEOUT_S = 300
OWN, PLAIN, PYTHON = "this package", "confluent-kafka", "kafka-python"
# confluent-kafka 2.16 reads slowly where it may wait 0.2 s or more; a fair loop waits less.
CALLS = {
    "consume(500, 0.1)": lambda consumer: len(consumer.consume(BATCH, 0.1)),
    "consume(500, 1.0)": lambda consumer: len(consumer.consume(BATCH, 1.0)),
    "poll(0.1)": lambda consumer: consumer.poll(0.1) is not None,
}
WITH_GOAL = "consume(500, 0.1)"
BEFORE, FROM_BROKER = "fetched before", "from the broker"
_QUEUE = {
    "queued.min.messages": 10_000_000,
    "queued.max.messages.kbytes": 2_000_000,
    "statistics.interval.ms": 50,
}


class Turn(NamedTuple):
    """Seconds of a turn, and processor seconds of the reading thread and of all other threads."""

    wall_s: float
    processor_s: float
    others_s: float
    records: int


def topology_of(topic):
    return Topology().add_source("in", topics=[topic])


class LibrdkafkaReader:
    """A subscribed librdkafka consumer of this process, which reads the topic from its begin."""

    def __init__(self, client, servers, topic, records, where):
        self._topic, self._records, self._where = topic, records, where
        self._queued = {}
        settings = {
            "bootstrap.servers": servers,
            "group.id": f"bench-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **(_QUEUE | {"stats_cb": self._note} if where == BEFORE else {}),
        }
        if client == PLAIN:
            self._consumer = confluent_kafka.Consumer(settings)
        else:
            self._consumer = Consumer(settings, topology=topology_of(topic))
        self._consumer.subscribe([topic])
        while not self._consumer.consume(1, 1.0):
            pass

    def _note(self, text):
        partitions = json.loads(text)["topics"].get(self._topic, {}).get("partitions", {})
        self._queued = {name: values["fetchq_cnt"] for name, values in partitions.items()}

    def turn(self, call):
        seen, read = 0, CALLS[call]
        began = Clock()
        for number in range(PARTITIONS):
            self._consumer.seek(confluent_kafka.TopicPartition(self._topic, number, 0))
        if self._where == BEFORE:
            self._queued = {}
            # Each partition has the length of the queue that they share.
            while max(self._queued.values(), default=0) < self._records - seen - PARTITIONS:
                began.check()
                time.sleep(0.1)
                seen += len(self._consumer.consume(1, 0))
            began = Clock()
        first = seen
        while seen < self._records:
            seen += read(self._consumer)
        return began.turn(seen - first)

    def close(self):
        self._consumer.close()


class KafkaPythonReader:
    """A kafka-python consumer with `StreamsAssignor`."""

    def __init__(self, servers, topic, records):
        self._records = min(records, PYTHON_RECORDS)
        self._assignor = StreamsAssignor(topology_of(topic))
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=f"bench-{time.monotonic_ns()}",
            auto_offset_reset="earliest",
            partition_assignment_strategy=[self._assignor],
        )
        self._assignor.attach(self._consumer)
        while not self._consumer.poll(1000, max_records=1):
            pass

    def turn(self, _):
        self._consumer.seek_to_beginning()
        seen, began = 0, Clock()
        while seen < self._records:
            began.check()
            seen += sum(map(len, self._consumer.poll(1000, max_records=BATCH).values()))
        return began.turn(seen)

    def close(self):
        self._consumer.close()
        self._assignor.close()


class Clock:
    """Wall time and processor time of this thread and process since it was made."""

    def __init__(self):
        self._began = self._now()

    @staticmethod
    def _now():
        return time.perf_counter(), time.thread_time(), time.process_time()

    def check(self):
        """End the process if a turn takes too long."""
        if time.perf_counter() - self._began[0] > TIMEOUT_S:
            raise SystemExit(f"not all records came in {TIMEOUT_S} s")

    def turn(self, records):
        wall_s, thread_s, process_s = (
            now - began for now, began in zip(self._now(), self._began, strict=True)
        )
        return Turn(wall_s, thread_s, process_s - thread_s, records)


def be_reader(wanted):
    """Take a turn for each line of stdin, which names the call; print what it took."""
    if wanted["client"] == PYTHON:
        reader = KafkaPythonReader(wanted["servers"], wanted["topic"], wanted["records"])
    else:
        reader = LibrdkafkaReader(**wanted)
    for line in sys.stdin:
        print(json.dumps(reader.turn(line.strip())), flush=True)
    reader.close()


class ReaderProcess:
    """A reader in its own process."""

    def __init__(self, **wanted):
        command = [sys.executable, "-m", "benchmarks.clients.consumers", "--reader"]
        self._process = subprocess.Popen(
            [*command, json.dumps(wanted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, call=""):
        self._process.stdin.write(f"{call}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a reader ended with exit status {self._process.wait()}")
        return Turn(*json.loads(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._process:
            self._process.stdin.close()


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


def measure(calls, pairs, wanted):
    """Return (call, where) -> pairs of turns, plain and own; every second pair begins with own."""
    found = {}
    for where in (BEFORE, FROM_BROKER):
        with ExitStack() as stack:
            plain, own = (
                stack.enter_context(ReaderProcess(client=client, where=where, **wanted))
                for client in (PLAIN, OWN)
            )
            for call in calls:
                turns = found[call, where] = []
                for number in range(pairs + 1):
                    order = (plain, own) if number % 2 else (own, plain)
                    taken = {reader: reader.turn(call) for reader in order}
                    turns.append((taken[plain], taken[own]))
                del turns[0]
    return found


def report(found):
    """Print figures; return whether the goal is met."""
    rows = []
    for (call, where), pairs in found.items():
        for name, turns in zip((PLAIN, OWN), zip(*pairs, strict=True), strict=True):
            wall, processor = (
                statistics.median(turn.records / turn[column] for turn in turns)
                for column in (0, 1)
            )
            figure = f"{wall:,.0f}, {processor:,.0f} records/s"
            say(PART, f"{name}, {call}, {where}: wall, processor", figure)
            others = statistics.median(turn.others_s / turn.wall_s for turn in turns)
            say(PART, "  its other threads", f"{others * 1000:.3g} ms a second")
        for column, clock in enumerate(("wall", "processor")):
            ratios = [
                (plain[column] / plain.records) / (own[column] / own.records)
                for plain, own in pairs
            ]
            has_goal = (call, where, clock) == (WITH_GOAL, BEFORE, "wall")
            name = f"{OWN} / {PLAIN}, {call}, {where}, {clock}"
            ratio = statistics.median(ratios)
            rows.append(at_least(PART, name, ratio, GOAL, has_goal=has_goal))
            say(PART, "  lowest and highest of its pairs", f"{min(ratios):.3g}, {max(ratios):.3g}")
    return all(row.met is not False for row in rows)


def main():
    """Measure, print rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=500_000, help="of a turn")
    parser.add_argument("--pairs", type=int, default=10, help="turns of each consumer")
    parser.add_argument("--call", action="append", choices=CALLS, help="default: all")
    parser.add_argument("--bootstrap-server", default="", help="default: the embedded broker")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        be_reader(json.loads(options.reader))
        return 0
    with broker_at(options.bootstrap_server) as servers:
        wanted = {"servers": servers, "topic": f"bench-{time.monotonic_ns()}"}
        wanted["records"] = options.records
        fill(servers, wanted["topic"], options.records)
        is_met = report(measure(options.call or CALLS, options.pairs, wanted))
        with ReaderProcess(client=PYTHON, **wanted) as reader:
            python = reader.turn()
        say(PART, f"{PYTHON}, {FROM_BROKER}", f"{python.records / python.wall_s:,.0f} records/s")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
