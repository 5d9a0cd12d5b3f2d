"""Processes of an application are killed at each step of their work: its state stays exact.

What docs/embedding.md promises is checked as it stands there: state is exactly-once, outputs are
at-least-once, and committed offsets are never ahead of what is processed. Each step has words of
its own, so that a wrong count names its step.
"""

import os
import random
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from system_tests.broker import BrokerConfig, running_broker
from system_tests.json_lines import write_line
from system_tests.live.member_process import MemberProcess
from system_tests.support.counting_member import (
    COUNTS,
    GROUP,
    LETTERS,
    OUTPUT,
    STEPS,
    WORDS,
    CountingConfig,
)
from tests.nightly import sample

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

PARTITIONS = 4
STORES = (LETTERS, COUNTS)
CHANGELOGS = {name: f"{GROUP}-{name}-changelog" for name in STORES}
RESERVED = b"\0assignor/"
LIMIT_S = 240
KILLED = -9


class Member:
    """One process; its output is read line by line."""

    def __init__(self, config):
        self.config, self.lines, self.errors = config, [], []
        self._process = MemberProcess.start_process("system_tests.support.counting_member")
        self._process.stdin.write(write_line(config) + "\n")
        self._process.stdin.flush()
        self._readers = [
            threading.Thread(target=self._read, args=pipe, daemon=True)
            for pipe in ((self._process.stdout, self.lines), (self._process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream, lines):
        lines.extend(line.strip() for line in stream)

    @property
    def status(self):
        return self._process.poll()

    @property
    def has_restored(self):
        return any(line.startswith("restored tasks: ") for line in self.lines)

    def kill(self):
        self._process.kill()
        self._process.wait(LIMIT_S)

    def stop(self):
        self._process.terminate()
        return self._process.wait(LIMIT_S)

    def close(self):
        self.kill()
        for reader in self._readers:
            reader.join(LIMIT_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            stream.close()


class Application:
    """Its members, the words that were written, and what came of them."""

    def __init__(self, broker, home):
        self._servers, self._home = broker.bootstrap_servers[0], home
        self._broker, self._members = broker, []
        self.written = Counter()
        self._producer = KafkaProducer(bootstrap_servers=self._servers)
        self._reader = KafkaConsumer(bootstrap_servers=self._servers)
        self._latest = {name: {} for name in STORES}
        self._outputs = Counter()

    def start(self, disk, step=None):
        config = CountingConfig(
            bootstrap_servers=self._servers, state_dir=str(self._home / disk), step=step
        )
        self._members.append(Member(config))
        return self._members[-1]

    def write(self, label, times=1):
        """Write words of a label to all partitions, `times` each."""
        for number in range(2 * PARTITIONS * times):
            word = f"{number % 2}{label}-{number % PARTITIONS}"
            self.written[word] += 1
            self._producer.send(WORDS, key=word.encode(), partition=number % PARTITIONS)
        self._producer.flush()

    def expected(self):
        letters = Counter()
        for word, times in self.written.items():
            letters[word[0], word[-1]] += times
        return {COUNTS: dict(self.written), LETTERS: letters}

    def read(self):
        """Read the changelogs and the outputs up to their ends."""
        topics = {changelog: name for name, changelog in CHANGELOGS.items()}
        wanted = [TopicPartition(t, n) for t in (*topics, OUTPUT) for n in range(PARTITIONS)]
        if self._reader.assignment() != set(wanted):
            self._reader.assign(wanted)
            self._reader.seek_to_beginning()
        ends = self._reader.end_offsets(wanted)
        while any(self._reader.position(where) < ends[where] for where in wanted):
            for where, records in self._reader.poll(timeout_ms=200).items():
                for record in records:
                    key = record.key.decode(errors="replace")
                    if where.topic == OUTPUT:
                        self._outputs[key] += 1
                    elif not record.key.startswith(RESERVED):
                        name = topics[where.topic]
                        at = key if name == COUNTS else (key, str(where.partition))
                        self._latest[name][at] = int(record.value)
        return self._latest

    def until(self, holds, what):
        end = time.monotonic() + LIMIT_S
        while not holds():
            failed = [m.errors for m in self._members if m.status not in (None, 0, KILLED)]
            if failed or time.monotonic() > end:
                running = [(m.lines[-3:], m.errors[-9:]) for m in self._members if m.status is None]
                pytest.fail(f"not {what()} in {LIMIT_S} s; {failed or running}")
            time.sleep(0.05)

    def ended(self, member):
        """Write words until a member has killed itself at its step."""
        step = member.config.step

        def has_ended():
            self.write(step)
            return member.status is not None

        self.until(has_ended, lambda: f"at step {step!r}")
        self.until(lambda: f"killed {step}" in member.lines or member.errors, lambda: "read")
        assert (member.lines[-1], member.status) == (f"killed {step}", KILLED), member.errors

    def is_exact(self):
        """Wait until everything is counted; nothing is counted twice."""
        expected = self.expected()

        def is_counted():
            found = self.read()
            pairs = [(n, expected[s].get(key, 0)) for s in STORES for key, n in found[s].items()]
            if any(number > most for number, most in pairs):
                pytest.fail(self.wrong())
            return found == expected

        self.until(is_counted, self.wrong)
        lost = {word: n for word, n in self.written.items() if self._outputs[word] < n}
        assert not lost, "outputs are at-least-once"

    def wrong(self):
        found, expected = self.read(), self.expected()
        listed = {
            (name, key): (found[name].get(key), number)
            for name in STORES
            for key, number in expected[name].items()
            if found[name].get(key) != number
        }
        return f"exact: store and key -> counted and written: {listed}"

    def is_committed(self):
        """Whether the input offsets of the group are behind the last records."""
        ends = self._reader.end_offsets([TopicPartition(WORDS, n) for n in range(PARTITIONS)])
        committed = self._broker.committed(GROUP)
        found = {(topic, number): at.offset for (topic, number), at in committed.items()}
        return found == {(where.topic, where.partition): end for where, end in ends.items()}

    def copies(self, disk):
        """The state of all tasks on a disk whose process has ended."""
        found = {name: {} for name in STORES}
        for file in sorted((self._home / disk).glob("0_*/*.db")):
            with closing(sqlite3.connect(file)) as state:
                for key, value in state.execute("select key, value from items"):
                    word, name, task = key.decode(), file.stem, file.parent.name
                    found[name][word if name == COUNTS else (word, task[-1])] = int(value)
        return found

    def close(self):
        self._producer.close()
        self._reader.close()
        for member in self._members:
            member.close()


@pytest.fixture
def application(tmp_path):
    topics = {WORDS: PARTITIONS, OUTPUT: PARTITIONS}
    with running_broker(BrokerConfig(topics=topics)) as broker:
        made = Application(broker, tmp_path)
        try:
            yield made
        finally:
            made.close()


def steps_of_this_run():
    """Pairs of steps, which share a disk."""
    numbered = list(enumerate(STEPS))
    pairs = sample(
        [numbered[at : at + 2] for at in range(0, len(numbered), 2)],
        every=5,
        reason="22 steps take two minutes; each kill waits for a session",
    )
    return [step for pair in pairs for step in pair]


def test_a_kill_at_each_step_changes_no_count(application):
    kept = application.start("standby")
    application.until(lambda: kept.has_restored, lambda: "running")
    for number, step in steps_of_this_run():
        # Two steps on one disk, so that the second one continues from the state of the killed
        # process; then another disk, which is behind. A takeover begins without any state.
        disk = f"new-{number}" if "restoring" in step else f"disk-{number // 2 % 2}"
        application.ended(application.start(disk, step))
    application.is_exact()
    last = application.start("disk-0")
    application.until(lambda: last.has_restored, lambda: "running")
    application.write("at the end", 5)
    application.is_exact()
    application.until(application.is_committed, lambda: "committed")
    assert last.stop() == 0
    application.write("by the standby")
    application.is_exact()
    assert kept.stop() == 0
    assert application.copies("standby") == application.expected()


@pytest.mark.nightly("30 kills, three minutes; every run kills at 6 steps")
def test_kills_at_random_moments_change_no_count(application):
    seed = int(os.environ.get("KILL_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"KILL_SEED={seed} repeats the moments")  # noqa: T201 shown if the test fails
    moments = random.Random(seed)  # noqa: S311 repeatable, not secret
    running = {disk: application.start(disk) for disk in ("one", "two", "three")}
    for number in range(30):
        disk = moments.choice(sorted(running))
        until_s = time.monotonic() + moments.uniform(0, 3)
        while time.monotonic() < until_s:
            application.write(f"{number}")
        running[disk].kill()
        if moments.random() < 0.5:
            application.write(f"{number}, one member less", 3)
        running[disk] = application.start(disk)
    application.is_exact()
    application.until(application.is_committed, lambda: "committed")
