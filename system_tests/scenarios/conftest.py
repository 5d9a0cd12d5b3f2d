"""Fixtures of the live tests: run `rolling-bounce live` as a user does, and read its JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main
from system_tests.errors import EnvironmentFailureError
from system_tests.live.member_process import MemberProcess
from system_tests.real import RealBroker, broker_release
from system_tests.support import RealGroup
from system_tests.support.fork_server import ForkedProcess, ForkServer

COMMAND = (sys.executable, "-m", "system_tests.entry", "live")
GONE_S = 120
# On a machine that stalls for seconds no member loses its session, and waits are long enough. Eight
# records a second in each of six partitions show a pause of a rebalance, and the owners.
DEFAULTS = {"--timeout": 240, "--session-timeout-ms": 60_000, "--rate": 50, "--heartbeat-ms": 100}


@dataclass(frozen=True, slots=True)
class Run:
    """A finished `rolling-bounce` command with `--format json`."""

    status: int
    report: dict
    stderr: str

    def numbers(self, name):
        return next(check["numbers"] for check in self.report["checks"] if check["name"] == name)

    def failed(self):
        return [check["sentence"] for check in self.report["checks"] if not check["ok"]]

    def steps(self, kind):
        return [step for step in self.report["steps"] if step["kind"] == kind]


@pytest.fixture(scope="session", autouse=True)
def forked_members():
    """Member processes of this session are forked from one that has imported what they need.

    That one starts with the first member.
    """
    servers = []

    def start(module):
        if not servers:
            servers.append(ForkServer())
        return ForkedProcess(servers[0], [module])

    interpreter = MemberProcess.start_process
    MemberProcess.start_process = staticmethod(start)
    yield
    MemberProcess.start_process = interpreter
    for server in servers:
        server.close()


@pytest.fixture
def bounce(clock):
    """Run a live bounce to its end: the command in this process, each member in one of its own.

    The command as a process of its own is run by `started`, and by the tests of pages.
    """

    def run(arguments):
        for option, value in DEFAULTS.items():
            arguments += "" if option in arguments else f" {option} {value}"
        return run_command(f"live {arguments}")

    return run


def run_command(arguments):
    """Run `rolling-bounce` in this process; return its status, report and stderr."""
    done = invoke(*arguments.split(), "--format", "json")
    report = json.loads(done.stdout) if done.stdout else {}
    return Run(done.exit_code, report, done.stderr)


def invoke(*words):
    """Run `rolling-bounce` in this process; its handlers of signals end with it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        done = CliRunner().invoke(main, words)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def started(alone):
    """Start a live bounce and wait until its members run; it ends with the test."""
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
            fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return sorted(found)


def gone(pids):
    """Wait until all processes are gone or zombies; return False if they stay."""
    deadline = time.monotonic() + GONE_S
    while time.monotonic() < deadline:
        if not any(_is_running(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _is_running(pid):
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def _real_broker(name):
    """Start a broker; end the test run with a sentence if there is no Java or no jars."""
    try:
        broker = RealBroker(broker_release(name))
        broker.start()
    except EnvironmentFailureError as error:
        pytest.exit(str(error), returncode=3)
    return broker


@pytest.fixture(scope="session")
def kafka_3_9(clock):
    """The newest 3.9 broker, for all tests."""
    broker = _real_broker("kafka:3.9")
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def kafka_4(clock):
    """The newest broker, for all tests."""
    broker = _real_broker("kafka:4")
    yield broker
    broker.close()


@pytest.fixture
def word_count_on(tmp_path, clock):
    """Make a group on a broker; its members end with the test."""
    with ExitStack() as stack:

        def make(broker, **options):
            return stack.enter_context(RealGroup(broker.bootstrap_servers, tmp_path, **options))

        yield make
