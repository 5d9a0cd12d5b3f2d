"""How long nobody counts after a SIGKILL, and how fast a large group settles on one machine.

`python -m benchmarks.clients.failover [--kills 5] [--session-ms 1500] [--members 50]`. A failover
is from the kill until others count words of all tasks of the dead one, with a word for each task
every 50 ms; the goal is 1.2 x the session timeout + 1 s.
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
    """A word count; (when, line) of all that it says."""

    def __init__(self, servers, state_dir, session_ms):
        command = [sys.executable, "-u", "-m", "examples.word_count", "--state-dir", str(state_dir)]
        command += ["--bootstrap-server", servers[0], "--session-ms", str(session_ms)]
        self.said = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.said.append((time.monotonic(), line.strip()))

    def tasks(self):
        lines = [line for _, line in list(self.said) if line.startswith("runs ")]
        runs, _, keeps = (lines or ["runs , keeps "])[-1].removeprefix("runs ").partition(", keeps")
        return {t for t in runs.split() if "_" in t}, {t for t in keeps.split() if "_" in t}


def wait(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            print(f"it did not happen in {LIMIT_S} s", file=sys.stderr)
            sys.exit(BROKE_OFF)
        time.sleep(0.01)


def failovers(kills, session_ms):
    """Seconds without anybody counting, one for each kill."""
    found = []
    with running_broker(BrokerConfig(topics={"words": TASKS})) as broker:
        stop = threading.Event()
        talker = threading.Thread(target=talk, args=(broker.bootstrap_servers, stop))
        talker.start()
        with tempfile.TemporaryDirectory() as home:
            group = [
                Process(broker.bootstrap_servers, Path(home) / str(n), session_ms) for n in range(3)
            ]
            try:
                for number in range(kills):
                    wait(lambda: is_warm(group))
                    found.append(failover(group.pop(0), group))
                    place = Path(home) / str(number % 3)
                    group.append(Process(broker.bootstrap_servers, place, session_ms))
            finally:
                stop.set()
                for one in group:
                    one.process.terminate()
                for one in group:
                    one.process.wait()
                talker.join()
    return found


def failover(victim, group):
    """Kill one; seconds until the group counts for all its tasks."""
    tasks = victim.tasks()[0]
    time.sleep(1)  # words flow, and standbys follow
    victim.process.kill()
    killed = time.monotonic()
    wait(lambda: all(first_count(group, task, killed) for task in tasks))
    return max(first_count(group, task, killed) for task in tasks) - killed


def is_warm(group):
    runs = sorted(task for one in group for task in one.tasks()[0])
    keeps = sorted(task for one in group for task in one.tasks()[1])
    return len(runs) == len(keeps) == TASKS and all(one.tasks()[0] for one in group)


def first_count(group, task, after):
    times = [
        when
        for one in group
        for when, line in list(one.said)
        if when > after and line.startswith(f"{task} ") and task in one.tasks()[0]
    ]
    return min(times, default=None)


def talk(servers, stop):
    with KafkaProducer(bootstrap_servers=servers) as producer:
        while not stop.wait(0.05):
            for partition in range(TASKS):
                producer.send("words", key=b"word", partition=partition)


def settle(members):
    """Seconds until every one of so many members runs its share."""
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
        threads = [threading.Thread(target=live, args=(servers, one)) for one in group]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            wait(lambda: [len(one.active) for one in group] == [2] * members)
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
    given = parser.parse_args()
    goal = 1.2 * given.session_ms / 1000 + 1
    found = failovers(given.kills, given.session_ms)
    listed = " ".join(f"{one:.2f}" for one in found)
    print(f"failovers: {listed} s")
    name = f"longest of {given.kills} failovers, session {given.session_ms} ms"
    at_most("embedding", name, max(found), goal, "s")
    took = settle(given.members)
    at_most("embedding", f"{given.members} members settled", took, SETTLE_GOAL_S, "s")
    return int(max(found) > goal or took > SETTLE_GOAL_S)


if __name__ == "__main__":
    sys.exit(main())
