"""Time of a failover after a SIGKILL, and time until a large group settles on one machine.

`python -m benchmarks.clients.failover [--kills 5] [--session-ms 1500] [--members 50]`. A failover
lasts from the kill until other members count words of all tasks of the killed one; a word per task
is written every 50 ms. The goal is 1.2 x the session timeout + 1 s.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.polling import polled
from assignor.embedding import RunningTasks
from benchmarks.rows import at_most
from system_tests.broker import BrokerConfig, running_broker

TASKS = 4
LIMIT_S = 60
BROKE_OFF = 3
SETTLE_GOAL_S = 10.0


class Process:
    """A word count process, with (time, line) of its output."""

    def __init__(self, servers, state_dir, session_ms):
        command = [
            sys.executable,
            "-u",
            "-m",
            "assignor.examples.word_count",
            "--state-dir",
            str(state_dir),
        ]
        command += ["--bootstrap-server", servers[0], "--session-ms", str(session_ms)]
        self.output = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.output.append((time.monotonic(), line.strip()))

    def tasks(self):
        lines = [line for _, line in list(self.output) if line.startswith("active tasks: ")]
        runs, _, keeps = (lines or [""])[-1].partition("; standby tasks: ")
        return {t for t in runs.split() if "_" in t}, {t for t in keeps.split() if "_" in t}


def wait(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            print(f"the group did not settle within {LIMIT_S} s", file=sys.stderr)
            sys.exit(BROKE_OFF)
        time.sleep(0.01)


def failovers(kills, session_ms):
    """Seconds of each failover."""
    found = []
    with running_broker(BrokerConfig(topics={"words": TASKS})) as broker:
        stop = threading.Event()
        writer = threading.Thread(target=write_words, args=(broker.bootstrap_servers, stop))
        writer.start()
        with tempfile.TemporaryDirectory() as folder:
            group = [
                Process(broker.bootstrap_servers, Path(folder) / str(n), session_ms)
                for n in range(3)
            ]
            try:
                for number in range(kills):
                    wait(lambda: is_warm(group))
                    found.append(failover(group.pop(0), group))
                    state_dir = Path(folder) / str(number % 3)
                    group.append(Process(broker.bootstrap_servers, state_dir, session_ms))
            finally:
                stop.set()
                for member in group:
                    member.process.terminate()
                for member in group:
                    member.process.wait()
                writer.join()
    return found


def failover(victim, group):
    """Kill a member; seconds until the group counts words of all its tasks."""
    tasks = victim.tasks()[0]
    time.sleep(1)  # words flow, and standbys follow
    victim.process.kill()
    killed = time.monotonic()
    wait(lambda: all(first_count(group, task, killed) for task in tasks))
    return max(first_count(group, task, killed) for task in tasks) - killed


def is_warm(group):
    runs = sorted(task for member in group for task in member.tasks()[0])
    keeps = sorted(task for member in group for task in member.tasks()[1])
    return len(runs) == len(keeps) == TASKS and all(member.tasks()[0] for member in group)


def first_count(group, task, after):
    times = [
        when
        for member in group
        for when, line in list(member.output)
        if when > after and line.startswith(f"{task} ") and task in member.tasks()[0]
    ]
    return min(times, default=None)


def write_words(servers, stop):
    with KafkaProducer(bootstrap_servers=servers) as producer:
        while not stop.wait(0.05):
            for partition in range(TASKS):
                producer.send("words", key=b"word", partition=partition)


def settle(members):
    """Seconds until each of so many members runs its share."""
    topology = (
        Topology()
        .add_source("read", topics=["words"])
        .add_processor("count", parents=["read"])
        .add_state_store("counts", processors=["count"])
    )
    stop, group = threading.Event(), [RunningTasks() for _ in range(members)]

    def live(servers, listener):
        assignor = StreamsAssignor(topology, application_id="app", listener=listener)
        consumer = KafkaConsumer(
            "words",
            bootstrap_servers=servers,
            group_id="app",
            partition_assignment_strategy=[assignor],
            session_timeout_ms=30_000,
        )
        assignor.attach(consumer)
        for _ in polled(consumer, assignor, stop=stop):
            pass
        consumer.close()
        assignor.close()

    with running_broker(BrokerConfig(topics={"words": 2 * members})) as broker:
        servers = broker.bootstrap_servers
        threads = [threading.Thread(target=live, args=(servers, listener)) for listener in group]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            wait(lambda: [len(member.active) for member in group] == [2] * members)
            took = time.monotonic() - began
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--session-ms", type=int, default=1500)
    parser.add_argument("--members", type=int, default=50)
    options = parser.parse_args()
    goal = 1.2 * options.session_ms / 1000 + 1
    found = failovers(options.kills, options.session_ms)
    listed = " ".join(f"{duration:.2f}" for duration in found)
    print(f"failovers: {listed} s")
    name = f"longest of {options.kills} failovers, session {options.session_ms} ms"
    at_most("embedding", name, max(found), goal, "s")
    took = settle(options.members)
    at_most("embedding", f"{options.members} members settled", took, SETTLE_GOAL_S, "s")
    return int(max(found) > goal or took > SETTLE_GOAL_S)


if __name__ == "__main__":
    sys.exit(main())
