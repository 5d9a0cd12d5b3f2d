"""A command that works ends with all its processes, whatever ends it (`tests/cli/endings.py`)."""

import random
import signal
import sys
import time

import pytest

from tests.cli.endings import COMMANDS, SIGNALS, WAIT_S, Run, Signal, without_spark, write_groups

INTERRUPT = Signal(signal.SIGINT, to_group=True)
KILL = Signal(signal.SIGKILL)
# Each command is interrupted; one of each way to hold processes is killed.
KILLED = ("simulate", "explore", "live", "spark-assign")
PAIRS = [
    pytest.param(
        name,
        how,
        id=f"{name}-{how}",
        marks=()
        if how == INTERRUPT or (how == KILL and name in KILLED)
        else pytest.mark.nightly("every run has a Ctrl-C of each command, and some are killed"),
    )
    for name in COMMANDS
    for how in SIGNALS
]
pytestmark = [
    pytest.mark.usefixtures("alone"),
    pytest.mark.slow,
    pytest.mark.timeout(2 * WAIT_S),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the processes in /proc"),
]


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "groups.jsonl"
    write_groups(path)
    return path


@pytest.mark.parametrize(("name", "how"), PAIRS)
def test_a_command_that_works_ends_with_all_its_processes(name, how, tmp_path, groups):
    if name == "spark-assign" and (why := without_spark()):
        pytest.skip(why)
    run = Run(COMMANDS[name], tmp_path, groups)
    try:
        ends = time.monotonic() + WAIT_S
        while len(run.running()) < COMMANDS[name].processes:
            assert run.process.poll() is None, "it ended by itself"
            assert time.monotonic() < ends, "its processes have not started"
            time.sleep(0.05)
        draw = random.Random(f"{name} {how}")  # noqa: S311 the same moment in each run
        time.sleep(draw.uniform(0, 0.5))
        ending = run.end(how)
    finally:
        run.kill()
    assert ending.orphans == []
    assert ending.temporary == []
    assert how != INTERRUPT or ending.is_tidy(), (ending.status, ending.left, ending.stderr)
