"""Processes of a Quix application, the words that they get, and what came of it."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

ROOT = Path(__file__).resolve().parents[3]
APP = ROOT / "examples" / "quix_counts.py"
LIMIT_S = 420
QUIET_S = 6
WORDS_PER_S = 100


class RunFailedError(Exception):
    """A run did not come to its end; the message says where."""


class Process:
    """A process of the application, with the reports that it has written."""

    def __init__(self, name, servers, home, assignor, options):
        self.name, self.reports = name, []
        settings = [f"{key}={number}" for key, number in options.items()]
        command = [sys.executable, "-m", "benchmarks.clients.quix.member", assignor, *settings]
        with (home / f"{name}.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [*command, str(APP)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ
                | {"Quix__Broker__Address": servers, "Quix__State__Dir": str(home / name)},
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self._process.stdout as output:
            for line in output:
                # A process that is killed may leave half a line.
                with suppress(json.JSONDecodeError):
                    self.reports.append((self.name, json.loads(line)))

    @property
    def lives(self):
        return self._process.poll() is None

    def last(self, key):
        return self.reports[-1][1][key] if self.reports else ([] if key == "owned" else 0)

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def stop(self):
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()


class Outcome:
    """What the output topic has: the highest count of each word, and how long words waited."""

    def __init__(self, servers):
        self.highest, self.records, self.waits = {}, 0, []
        self._consumer = KafkaConsumer(
            "counts",
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def read(self):
        for records in self._consumer.poll(timeout_ms=200).values():
            now_ms = time.time() * 1000
            for record in records:
                count = json.loads(record.value)["count"]
                self.highest[record.key] = max(count, self.highest.get(record.key, 0))
                self.records += 1
                self.waits.append(now_ms - record.timestamp)

    def close(self):
        self._consumer.close()


class Group:
    """A run: processes start and end while words are written at a steady pace.

    Args:
        servers: of the broker.
        home: for state and logs.
        assignor: as the member process takes it, with its options.
        partitions: of the input topic.
    """

    def __init__(self, servers, home, assignor, options, partitions):
        self.servers, self.home, self.partitions = servers, home, partitions
        self.assignor, self.options = assignor, options
        self.written, self.processes, self.all = Counter(), {}, []
        admin = KafkaAdminClient(bootstrap_servers=servers)
        admin.create_topics([NewTopic(name, partitions, 1) for name in ("words", "counts")])
        admin.close()
        self.outcome = Outcome(servers)
        self._producer = KafkaProducer(bootstrap_servers=servers)
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write_on, daemon=True)

    def write(self, words):
        """Write words, each once, before the steady pace begins."""
        for number in range(words):
            self._send(number)
        self._producer.flush()
        self._writer = threading.Thread(target=self._write_on, args=(words,), daemon=True)

    def write_on(self):
        self._writer.start()

    def _write_on(self, words=1):
        choose = random.Random(7)
        while not self._stop.wait(1 / WORDS_PER_S):
            self._send(choose.randrange(words))

    def _send(self, number):
        word = f"word-{number}".encode()
        self.written[word] += 1
        self._producer.send("words", key=word, value=b"")

    def start(self, name):
        self.processes[name] = Process(name, self.servers, self.home, self.assignor, self.options)
        self.all.append(self.processes[name])

    def kill(self, name):
        self.processes.pop(name).kill()

    def end_writing(self):
        self._stop.set()
        self._writer.join()
        self._producer.flush()

    def close(self):
        self._stop.set()
        for process in self.all:
            if process.lives:
                process.stop()
        self.outcome.close()
        self._producer.close()

    def sum(self, key):
        """Records replayed, or followed, by all processes so far."""
        return sum(process.last(key) for process in self.all)

    def moves(self):
        """How often a partition went from one process to another."""
        reports = sorted(
            (report for process in self.all for report in list(process.reports)),
            key=lambda report: report[1]["at"],
        )
        owner, moves = {}, 0
        for name, report in reports:
            for partition in report["owned"]:
                moves += owner.get(partition, name) != name
                owner[partition] = name
        return moves

    def settled(self):
        """Wait until every process runs its share, and nothing has changed for some seconds.

        With standbys, until all have caught up: a process that is killed before has none.
        """
        since = time.monotonic()
        end, last = since + LIMIT_S, None
        while time.monotonic() - since < QUIET_S or not self._is_balanced():
            self.outcome.read()
            dead = [name for name, process in self.processes.items() if not process.lives]
            if dead or time.monotonic() > end:
                raise RunFailedError(
                    f"{self.assignor}: {', '.join(dead) or 'the group'} "
                    f"{'ended' if dead else f'did not settle in {LIMIT_S} s'}; see {self.home}"
                )
            now = {name: process.last("owned") for name, process in self.processes.items()}
            if now != last:
                since, last = time.monotonic(), now

    def _is_balanced(self):
        owned = [process.last("owned") for process in self.processes.values()]
        sizes = [len(each) for each in owned]
        every = sorted(partition for each in owned for partition in each)
        is_even = every == list(range(self.partitions)) and max(sizes) - min(sizes) <= 1
        return is_even and not any(each.last("restoring") for each in self.processes.values())

    def counted(self):
        """Wait until every word is counted; return whether each count is exact."""
        end = time.monotonic() + LIMIT_S
        while sum(self.outcome.highest.values()) < self.written.total():
            self.outcome.read()
            if time.monotonic() > end:
                break
        return self.outcome.highest == dict(self.written)
