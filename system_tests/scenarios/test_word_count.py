"""The word count as its users run it: processes, state on disk, a broker, and SIGKILL."""

import json
import os
import re
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

pytestmark = [pytest.mark.loop, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 4
TASKS = {f"0_{number}" for number in range(PARTITIONS)}
CHANGELOG = "word-count-counts-changelog"
CHANGELOGS = [TopicPartition(CHANGELOG, number) for number in range(PARTITIONS)]
LIMIT_S = 240
SESSION_MS = 1500


class Member:
    """One process of the application; its lines are read as they come."""

    def __init__(self, servers, state_dir):
        self.lines = []
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "examples.word_count", "--state-dir", str(state_dir)),
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
        """(tasks that it runs, tasks that it keeps warm), as it last said."""
        said = [line for line in list(self.lines) if line.startswith("runs ")]
        if not said or self._process.poll() is not None:
            return set(), set()
        runs, keeps = said[-1].removeprefix("runs ").split(", keeps ")
        return set(runs.split()) & TASKS, set(keeps.split()) & TASKS

    def took(self):
        """Records that it lacked, each time it took tasks over."""
        said = [line for line in list(self.lines) if line.startswith("took over")]
        return [int(line.split(", ")[1].split()[0]) for line in said]

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


class World:
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

    def say(self, times):
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
        while any(self._reader.position(one) < ends[one] for one in CHANGELOGS):
            for records in self._reader.poll(timeout_ms=200).values():
                for record in records:
                    said, word = json.loads(record.value), record.key.decode()
                    known = self._latest.get(word, (-1, 0))
                    self._latest[word] = max(known, (said["at"], said["count"]))
        return Counter({word: count for word, (_, count) in self._latest.items()})

    def until(self, holds, what):
        end = time.monotonic() + LIMIT_S
        while not holds():
            lines = {name: one.lines[-5:] for name, one in self.members.items()}
            assert time.monotonic() < end, f"not {what} in {LIMIT_S} s; last lines {lines}"
            time.sleep(0.1)

    def settled(self, *, members):
        """Every task runs once and is kept warm once, by so many members."""

        def holds():
            said = [one.assigned() for one in self.members.values()]
            runs = [task for tasks, _ in said for task in tasks]
            keeps = [task for _, tasks in said for task in tasks]
            busy = [one for one in said if one[0]]
            return sorted(runs) == sorted(keeps) == sorted(TASKS) and len(busy) == members

        self.until(holds, f"settled on {members} members")

    def counted(self):
        self.until(lambda: self.counts() == self.written, "counted")

    def copies(self):
        """(word, count) of every copy of state on a member's disk, with how many have it."""
        found = Counter()
        for name in self.members:
            for file in sorted((self.home / name).glob("0_*/counts.db")):
                # A member may be making or writing it just now; the next look finds it.
                with (
                    suppress(sqlite3.OperationalError),
                    closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as state,
                ):
                    found.update(state.execute("select word, count from counts").fetchall())
        return found

    def copied(self, times):
        """Every count is complete on the disks of so many members."""

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
def world(tmp_path):
    with running_broker(BrokerConfig(topics={"words": PARTITIONS})) as broker:
        world = World(broker.bootstrap_servers[0], tmp_path)
        try:
            yield world
        finally:
            world.close()


def identity(world, name):
    """The process id in a state directory."""
    files = [one for one in (world.home / name).glob("*process*") if one.suffix != ".lock"]
    return {
        id_
        for one in files
        for id_ in re.findall(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", one.read_bytes())
    }


def test_standbys_follow_and_counts_stay_exact_when_a_member_is_killed(world):
    for name in ("one", "two", "three"):
        world.start(name)
    world.settled(members=3)
    world.say(400)
    world.counted()
    world.copied(2)
    world.members.pop("one").kill()
    world.say(200)
    world.settled(members=2)
    world.counted()
    world.copied(2)
    was = identity(world, "one")
    world.start("one")
    world.settled(members=3)
    assert identity(world, "one") == was
    assert len(was) == 1
    world.say(100)
    world.counted()
    assert [one.stop() for one in world.members.values()] == [0, 0, 0]


def test_a_lone_member_goes_on_from_its_state_after_a_kill(world):
    world.start("one")
    world.until(lambda: world.members["one"].assigned()[0] == TASKS, "running")
    world.say(100)
    world.copied(1)
    world.members["one"].kill()
    world.say(100)
    world.start("one")
    world.counted()
    assert world.members["one"].took()[0] == 0, "all that it had written was on its disk"
