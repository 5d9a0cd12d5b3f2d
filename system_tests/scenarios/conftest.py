"""What the live tests share: run `rolling-bounce live` as a user would, and read its JSON."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from system_tests.errors import SurroundingsError
from system_tests.real import RealBroker, broker_release
from system_tests.support import RealGroup

COMMAND = (sys.executable, "-m", "system_tests.cli.main", "live")
GONE_S = 120
# A machine that stands still for seconds puts nobody out of the group, and is waited for.
PATIENT = {"--timeout": 240, "--session-timeout-ms": 60_000}


@dataclass(frozen=True, slots=True)
class Run:
    """A finished `rolling-bounce live --format json`."""

    status: int
    report: dict
    stderr: str

    def numbers(self, name):
        return next(check["numbers"] for check in self.report["checks"] if check["name"] == name)

    def failed(self):
        return [check["sentence"] for check in self.report["checks"] if not check["ok"]]

    def steps(self, kind):
        return [step for step in self.report["steps"] if step["kind"] == kind]


@pytest.fixture
def bounce():
    """Run a live bounce to its end."""

    def run(arguments, *, timeout_s=800):
        for option, value in PATIENT.items():
            arguments += "" if option in arguments else f" {option} {value}"
        done = subprocess.run(
            [*COMMAND, *arguments.split(), "--format", "json"],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        report = json.loads(done.stdout) if done.stdout else {}
        return Run(done.returncode, report, done.stderr)

    return run


@pytest.fixture
def started():
    """Start a live bounce and wait until its members run; ended at the latest with the test."""
    running = []

    def start(arguments):
        process = subprocess.Popen(
            [*COMMAND, *arguments.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        for line in process.stdout:
            if "settled" in line:
                break
        return process, children_of(process.pid)

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def children_of(pid):
    """Process ids of the children of a process (Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return sorted(found)


def gone(pids):
    """Wait until all processes are gone, or only zombies; False when they stay."""
    deadline = time.monotonic() + GONE_S
    while time.monotonic() < deadline:
        if not any(_is_running(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _is_running(pid):
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def _real_broker(name):
    """Start a broker; without a Java, or without its jars, the run ends with a sentence."""
    try:
        broker = RealBroker(broker_release(name))
        broker.start()
    except SurroundingsError as error:
        pytest.exit(str(error), returncode=3)
    return broker


@pytest.fixture(scope="session")
def kafka_3_9():
    """The newest 3.9 broker, for all tests."""
    broker = _real_broker("kafka:3.9")
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def kafka_4():
    """The newest broker, for all tests."""
    broker = _real_broker("kafka:4")
    yield broker
    broker.close()


@pytest.fixture
def word_count_on(tmp_path):
    """Make a group of its own on a broker; whatever is left of it ends with the test."""
    with ExitStack() as stack:

        def make(broker, **options):
            return stack.enter_context(RealGroup(broker.bootstrap_servers, tmp_path, **options))

        yield make
