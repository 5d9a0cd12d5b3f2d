"""Load of a client while no broker answers, and its time to recover with new brokers.

Each figure is of a consumer in its own process on the embedded broker: CPU time and connection
attempts while no broker answers, then milliseconds from the replacement of all brokers, or from a
demand (error 129), to the recovery. "alone" is the client without a supervisor.

`python -m benchmarks.clients.rebootstrap` takes five minutes; `--seconds 10 --rounds 3` less.
Exit status 1: a goal is missed.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import statistics
import subprocess
import sys
import time

from aiokafka import AIOKafkaConsumer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.inet import KafkaNetSocket

from assignor.adapters.rebootstrap import (
    aiokafka as rebootstrap_aiokafka,
)
from assignor.adapters.rebootstrap import (
    kafka_python as rebootstrap_kafka_python,
)
from benchmarks.rows import at_most
from system_tests.broker import BrokerConfig, Fault, running_broker

PART = "rebootstrap"
TOPIC = "in"
CLIENTS = ("kafka-python", "aiokafka")
CPU_GOAL = 5.0  # per cent of a core
REACTION_GOAL_MS = 1_000
GO_ON_GOAL_MS = 2_000  # beyond the trigger
TRIGGER_MS = 1_000
BACKOFF_MAX_MS, JITTER = 1_000, 0.2
# Most attempts until the back-off has its largest value: three old brokers and the bootstrap
# server, seven each.
RAMP = 4 * 7
_BROKERS = BrokerConfig(nodes=3, bootstrap_listener=True, topics={TOPIC: 3})


def most_attempts(seconds):
    """Most attempts that the back-off allows in this time."""
    return RAMP + seconds / (BACKOFF_MAX_MS / 1_000 * (1 - JITTER))


class KafkaPython:
    """A kafka-python consumer; `step` polls once."""

    def __init__(self, servers, *, supervised):
        self.attempts = 0
        self._consumer = KafkaConsumer(
            bootstrap_servers=servers,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
            metadata_max_age_ms=200,
            reconnect_backoff_max_ms=BACKOFF_MAX_MS,
        )
        # A leader that does not know the topic yet would assign nothing.
        self._consumer.partitions_for_topic(TOPIC)
        self._consumer.subscribe([TOPIC])
        self.supervisor = supervised and rebootstrap_kafka_python.supervise(
            self._consumer, metadata_recovery_rebootstrap_trigger_ms=TRIGGER_MS
        )
        original = KafkaNetSocket.connect

        async def connect(*arguments, **more):
            self.attempts += 1
            return await original(*arguments, **more)

        KafkaNetSocket.connect = connect

    async def step(self):
        with contextlib.suppress(KafkaError):
            return sum(map(len, self._consumer.poll(timeout_ms=200).values()))
        return 0

    async def close(self):
        self._consumer.close(timeout_ms=1_000)


class Aiokafka:
    """An aiokafka consumer; `step` fetches once."""

    def __init__(self, servers, *, supervised):
        self.attempts = 0
        self._servers, self._supervised = servers, supervised

    async def start(self):
        loop = asyncio.get_running_loop()
        original = loop.create_connection

        async def create_connection(*arguments, **more):
            self.attempts += 1
            return await original(*arguments, **more)

        loop.create_connection = create_connection
        self._consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self._servers,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
            metadata_max_age_ms=200,
        )
        await self._consumer.start()
        self.supervisor = self._supervised and rebootstrap_aiokafka.supervise(
            self._consumer, metadata_recovery_rebootstrap_trigger_ms=TRIGGER_MS
        )

    async def step(self):
        return sum(map(len, (await self._consumer.getmany(timeout_ms=200)).values()))

    async def close(self):
        """Do nothing: closing a consumer without brokers does not return."""


async def child(client, servers, *, supervised, seconds):
    """Read three records, then wait for a request on standard input and print its result."""
    reader = (KafkaPython if client == "kafka-python" else Aiokafka)(servers, supervised=supervised)
    if client == "aiokafka":
        await reader.start()
    read = 0
    while read < 3:
        read += await reader.step()
    print("ready", flush=True)
    asked = sys.stdin.readline().strip()
    if asked == "gone":
        began, used, tried = time.monotonic(), time.process_time(), reader.attempts
        while time.monotonic() - began < seconds:
            await reader.step()
        took = time.monotonic() - began
        cpu = 100 * (time.process_time() - used) / took
        print(json.dumps({"cpu": cpu, "attempts": reader.attempts - tried, "seconds": took}))
    elif asked == "replaced":
        while read < 6:
            read += await reader.step()
        print(json.dumps({"at_s": time.monotonic()}))
    else:
        while not reader.supervisor.rebootstraps:
            await reader.step()
        print(json.dumps({"at_s": reader.supervisor.rebootstraps[0].at_ms / 1_000}))
    sys.stdout.flush()


@contextlib.contextmanager
def consumer(broker, client, *, supervised=True, seconds=0.0):
    """Run a child process that has read the first records."""
    servers = broker.bootstrap_servers
    write(servers)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.clients.rebootstrap", "--child", client),
            *("--servers", servers[0], "--seconds", str(seconds)),
            *(() if supervised else ("--alone",)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def write(servers):
    producer = KafkaProducer(bootstrap_servers=servers)
    for partition in range(3):
        producer.send(TOPIC, value=b"x", partition=partition)
    producer.flush()
    producer.close()


def ask(process, what):
    process.stdin.write(f"{what}\n")
    process.stdin.flush()


def answer(process):
    return json.loads(process.stdout.readline())


def gone(client, *, supervised, seconds):
    """CPU time and connection attempts while no broker answers."""
    with (
        running_broker(_BROKERS) as broker,
        consumer(broker, client, supervised=supervised, seconds=seconds) as process,
    ):
        broker.stop()
        ask(process, "gone")
        return answer(process)


def replaced_ms(client):
    """Milliseconds from the replacement of all brokers to reading records of the new ones."""
    with running_broker(_BROKERS) as broker, consumer(broker, client) as process:
        ask(process, "replaced")
        began = time.monotonic()
        broker.replace_nodes()
        write(broker.bootstrap_servers)
        return (answer(process)["at_s"] - began) * 1_000


def stuck_ms(client):
    """As `replaced_ms`, but the old brokers keep their connections and do not answer."""
    with running_broker(_BROKERS) as broker, consumer(broker, client) as process:
        ask(process, "replaced")
        old = broker.call(lambda embedded: embedded.live)
        broker.start_node(4, port=0)
        for node_id in old:
            broker.inject(Fault(node_id=node_id, delay_ms=3_600_000, times=10**6))
        began = time.monotonic()
        for topic in range(3):
            broker.call(
                lambda embedded, p=topic: embedded.cluster.catalog.topic(TOPIC).leaders.__setitem__(
                    p, 4
                )
            )
        broker.call(lambda embedded: [embedded.cluster.address_by_node.pop(n) for n in old])
        broker.move_coordinator("g", 4)
        write(broker.bootstrap_servers)
        return (answer(process)["at_s"] - began) * 1_000


def demanded_ms(client):
    """Milliseconds from the demand of a server to the rebootstrap; metadata is 200 ms old."""
    with running_broker(_BROKERS) as broker, consumer(broker, client) as process:
        ask(process, "demanded")
        began = time.monotonic()
        broker.demand_rebootstrap()
        return (answer(process)["at_s"] - began) * 1_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time without brokers")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each measurement")
    for hidden in ("--child", "--servers"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.child:
        work = child(
            options.child, options.servers, supervised=not options.alone, seconds=options.seconds
        )
        asyncio.run(work)
        return 0
    return report(options.seconds, options.rounds)


def report(seconds, rounds):
    found = []
    most = most_attempts(seconds)
    print(f"no broker answers for {seconds:.0f} s")
    for client in CLIENTS:
        for supervised in (True, False):
            seen = gone(client, supervised=supervised, seconds=seconds)
            name = client if supervised else f"{client} alone"
            for figure, value, goal, unit in (
                (f"CPU without brokers, {name}", seen["cpu"], CPU_GOAL, "%"),
                (
                    f"attempts without brokers, {name}",
                    seen["attempts"],
                    most,
                    "",
                ),
            ):
                found.append(at_most(PART, figure, value, goal, unit, has_goal=supervised))
    rows = (
        ("all brokers replaced, records read after", replaced_ms, GO_ON_GOAL_MS),
        (f"old ones stuck, trigger {TRIGGER_MS} ms", stuck_ms, TRIGGER_MS + GO_ON_GOAL_MS),
        ("REBOOTSTRAP_REQUIRED, followed after", demanded_ms, REACTION_GOAL_MS),
    )
    for title, measure, goal_ms in rows:
        for client in CLIENTS:
            took = [measure(client) for _ in range(rounds)]
            median = statistics.median(took)
            found.append(at_most(PART, f"{title}, {client}", median, goal_ms, "ms"))
            print(f"  worst of {rounds}: {max(took):.0f} ms")
    return int(any(row.met is False for row in found))


if __name__ == "__main__":
    sys.exit(main())
