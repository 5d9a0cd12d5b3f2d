"""The README's first application as it stands: it counts, moves little, and leaves on SIGTERM."""

import re
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from kafka import KafkaProducer

from system_tests.broker import BrokerConfig, running_broker
from tests.docs.page_session import environment
from tests.docs.pages import ROOT, blocks

pytestmark = [pytest.mark.usefixtures("alone"), pytest.mark.slow, pytest.mark.timeout(900)]

LIMIT_S, TASKS = 240, 12
_ACTIVE = re.compile(r"^active tasks: (.*);", re.MULTILINE)


class Process:
    """The application in a process; what it prints goes into a file."""

    def __init__(self, folder, name):
        self.output = folder / name
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "app.py"],
                cwd=folder,
                env=environment(),
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def text(self):
        return self.output.read_text(encoding="utf-8")

    def assignments(self):
        """The active tasks of each assignment."""
        return [set(tasks.split()) - {"none"} for tasks in _ACTIVE.findall(self.text())]

    def active(self):
        return (self.assignments() or [set()])[-1]


class Group:
    def __init__(self, folder):
        self.folder, self.running, self.ended = folder, {}, []

    def start(self, name):
        """Start a process; return how many tasks left another one."""
        before = self.seen()
        self.running[name] = Process(self.folder, name)
        return self.moved_until_even(before)

    def stop(self, name):
        """End a process by SIGTERM; return how many tasks left a process that stays."""
        gone = self.running.pop(name)
        self.ended.append(gone)
        before = self.seen()
        gone.process.send_signal(signal.SIGTERM)
        assert gone.process.wait(LIMIT_S) == 0, gone.text()
        return self.moved_until_even(before)

    def seen(self):
        return {name: len(each.assignments()) for name, each in self.running.items()}

    def moved_until_even(self, before):
        self.until(lambda: self.loads() == self.even())
        moved = set()
        for name, seen in before.items():
            found = self.running[name].assignments()[seen - 1 :]
            moved.update(*(earlier - later for earlier, later in pairwise(found)))
        return len(moved)

    def loads(self):
        return sorted(len(each.active()) for each in self.running.values())

    def even(self):
        share, more = divmod(TASKS, len(self.running))
        return [share] * (len(self.running) - more) + [share + 1] * more

    def until(self, holds):
        end = time.monotonic() + LIMIT_S
        while not holds():
            ended = [each for each in self.running.values() if each.process.poll() is not None]
            texts = {name: each.text() for name, each in self.running.items()}
            assert not ended, texts
            assert time.monotonic() < end, texts
            time.sleep(0.05)

    def close(self):
        for each in (*self.running.values(), *self.ended):
            each.process.kill()
            each.process.wait()


@pytest.fixture
def group(tmp_path):
    made = Group(tmp_path)
    yield made
    made.close()


def test_the_first_application_counts_moves_little_and_leaves_on_sigterm(group, tmp_path):
    [app] = [block.body for block in blocks(ROOT / "README.md") if block.marked("file") == "app.py"]
    with running_broker(BrokerConfig(topics={"words": TASKS})) as broker:
        [server] = broker.bootstrap_servers
        (tmp_path / "app.py").write_text(app.replace("localhost:9092", server), encoding="utf-8")
        producer = KafkaProducer(bootstrap_servers=[server])

        def say(word):
            producer.send("words", key=word.encode())
            producer.flush()

        def is_printed(line):
            every = (*group.running.values(), *group.ended)
            return any(line in each.text().splitlines() for each in every)

        group.start("one")
        group.start("two")
        say("to")
        group.until(lambda: is_printed("to 1"))
        assert (group.start("three"), group.start("four")) == (4, 3)
        for number, name in enumerate(("four", "three", "one"), 2):
            before = broker.requests("LeaveGroup")[-1:]
            assert group.stop(name) == 0
            assert broker.requests("LeaveGroup")[-1:] != before
            say("to")
            group.until(lambda number=number: is_printed(f"to {number}"))
        assert not any("heartbeat_interval_ms" in each.text() for each in group.ended)
        producer.close()
