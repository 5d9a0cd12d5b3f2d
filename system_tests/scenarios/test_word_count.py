"""The word count example: processes, state on disk, a broker, and SIGKILL."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 4
TASKS = {f"0_{number}" for number in range(PARTITIONS)}
CHANGELOG = "word-count-counts-changelog"
CHANGELOGS = [TopicPartition(CHANGELOG, number) for number in range(PARTITIONS)]
RESERVED = b"\0assignor/"
LIMIT_S = 240
SESSION_MS = 3000


class Member:
    """One process of the application; its output is read line by line."""

    def __init__(self, servers, state_dir):
        self.lines = []
        self._process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "assignor.examples.word_count",
                    "--state-dir",
                    str(state_dir),
                ),
                *("--bootstrap-server", servers),
                *("--session-ms", str(SESSION_MS)),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.lines.append(line.strip())

    def assigned(self):
        """(active tasks, standby tasks), as in its last line about them."""
        lines = [line for line in list(self.lines) if line.startswith("active tasks: ")]
        if not lines or self._process.poll() is not None:
            return set(), set()
        active, standby = lines[-1].split("; ")
        return set(active.split()) & TASKS, set(standby.split()) & TASKS

    def took(self):
        """Numbers of changes that it read, for each time it took tasks over."""
        lines = [line for line in list(self.lines) if line.startswith("restored tasks: ")]
        return [int(line.split("; ")[1].split()[0]) for line in lines]

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self):
        self._process.terminate()
        return self._process.wait(LIMIT_S)

    def close(self):
        self.kill()
        self._reader.join(LIMIT_S)
        self._process.stdout.close()


class Application:
    """Members by name, words written and the counts that the changelog has."""

    def __init__(self, servers, home):
        self.servers, self.home = servers, home
        self.members, self._all = {}, []
        self.written = Counter()
        self._reader, self._latest = None, {}
        self.producer = KafkaProducer(bootstrap_servers=servers)

    def start(self, name):
        self.members[name] = Member(self.servers, self.home / name)
        self._all.append(self.members[name])

    def write(self, times):
        for number in range(times):
            word = f"word-{number % 20}"
            self.written[word] += 1
            self.producer.send("words", key=word.encode())
        self.producer.flush()

    def counts(self):
        """The last count of each word in the changelog."""
        if self._reader is None:
            self._reader = KafkaConsumer(bootstrap_servers=self.servers)
            self._reader.assign(CHANGELOGS)
            self._reader.seek_to_beginning()
        ends = self._reader.end_offsets(CHANGELOGS)
        while any(self._reader.position(partition) < ends[partition] for partition in CHANGELOGS):
            for records in self._reader.poll(timeout_ms=200).values():
                for record in records:
                    if not record.key.startswith(RESERVED):
                        self._latest[record.key.decode()] = int(record.value)
        return Counter(self._latest)

    def until(self, holds, what):
        end = time.monotonic() + LIMIT_S
        while not holds():
            lines = {name: member.lines[-5:] for name, member in self.members.items()}
            assert time.monotonic() < end, f"not {what} in {LIMIT_S} s; last lines {lines}"
            time.sleep(0.1)

    def settled(self, *, members):
        """Wait until every task has one active and one standby member, on so many members."""

        def holds():
            assigned = [member.assigned() for member in self.members.values()]
            runs = [task for tasks, _ in assigned for task in tasks]
            keeps = [task for _, tasks in assigned for task in tasks]
            busy = [pair for pair in assigned if pair[0]]
            return sorted(runs) == sorted(keeps) == sorted(TASKS) and len(busy) == members

        self.until(holds, f"settled on {members} members")

    def counted(self):
        self.until(lambda: self.counts() == self.written, "counted")

    def copies(self):
        """(word, count) of every copy of state on a member's disk, with how many have it."""
        found = Counter()
        for name in self.members:
            for file in sorted((self.home / name).glob("0_*/counts.db")):
                # A member may be writing it at this moment; the next call finds it.
                with (
                    suppress(sqlite3.OperationalError),
                    closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as state,
                ):
                    rows = state.execute("select key, value from items").fetchall()
                    found.update((key.decode(), int(value)) for key, value in rows)
        return found

    def copied(self, times):
        """Wait until every count is complete on the disks of so many members."""

        def holds():
            found = self.copies()
            return all(found[counted] >= times for counted in self.written.items())

        self.until(holds, f"complete on {times} disks")

    def close(self):
        self.producer.close()
        if self._reader is not None:
            self._reader.close()
        for member in self._all:
            member.close()


@pytest.fixture
def application(tmp_path):
    with running_broker(BrokerConfig(topics={"words": PARTITIONS})) as broker:
        application = Application(broker.bootstrap_servers[0], tmp_path)
        try:
            yield application
        finally:
            application.close()


def test_a_lone_member_goes_on_from_its_state_after_a_kill(application):
    application.start("one")
    application.until(lambda: application.members["one"].assigned()[0] == TASKS, "running")
    application.write(100)
    application.copied(1)
    application.members["one"].kill()
    application.write(100)
    application.start("one")
    application.counted()
    assert application.members["one"].took()[0] == 0, "all that it had written was on its disk"
