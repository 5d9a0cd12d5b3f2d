"""What `tests.stress` reads from the lines of pytest, and when it prints."""

import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests import stress
from tests.stress import Lane, command_of

LINES = """
[gw0] [  1%] PASSED tests/a.py::test_first[a b]
[gw1] [  2%] PASSED tests/b.py::test_other
[gw0] [  3%] FAILED tests/a.py::test_second
[gw1] [  4%] SKIPPED tests/b.py::test_skipped
[gw0] [  5%] PASSED tests/a.py::test_second_again
[gw0] [  5%] ERROR tests/a.py::test_second_again
=== FAILURES ===
PASSED tests/printed_by.py::a_test
=== short test summary info ===
FAILED tests/a.py::test_second - AssertionError
"""
# Prints the lines of a lane; of the second one a part, and then interrupts its parent.
PYTEST = f"""
import os, signal, sys, time
print({LINES!r}, flush=True)
if sys.argv[1:]:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(1_000)
sys.exit(1)
"""


def read(lane, lines):
    for line in lines.splitlines(keepends=True):
        lane.read(line)
    return lane


def test_a_failure_has_the_tests_before_it_in_its_process():
    lane = read(Lane(seed=7, lane="clock"), LINES)
    assert (lane.passed, lane.skipped) == (3, 1)
    first, second = lane.failures
    assert first == ("tests/a.py::test_second", ("tests/a.py::test_first[a",))
    assert second[0] == "tests/a.py::test_second_again"


def test_a_run_is_repeated_by_its_seed():
    words = command_of("clock", 7, 2, ["tests/a.py"])
    assert words[-5:] == ["-n", "2", "--shuffle", "7", "tests/a.py"]
    lane = read(Lane(seed=1, lane="alone"), "tests/a.py::test_it PASSED   [100%]\n")
    assert (lane.passed, lane.failures) == (1, [])


@pytest.mark.usefixtures("alone")
def test_a_failure_is_printed_when_it_occurs_and_an_interrupt_prints_the_sums(monkeypatch):
    def start(words):
        return subprocess.Popen(
            [sys.executable, "-c", PYTEST, *(["stop"] if "0" in words else [])],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(stress, "start", start)
    try:
        words = ["--load", "0", "--workers", "2", "--from-seed", "7", "--runs", "2"]
        ended = CliRunner().invoke(stress.main, words)
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert ended.exit_code == 130
    lines = ended.output.splitlines()
    assert lines[0] == "seed 7, clock: FAILED tests/a.py::test_second"
    assert lines[2].startswith("    repeat: python -m pytest -m 'clock and not alone and not real'")
    assert lines[6] == "seed 7, clock: 3 passed, 1 skipped, 2 failed"
    assert lines[-1] == (
        "interrupted: 2 runs from seed 7 with 0 busy processes; whole are none;"
        " 6 tests passed, 4 failed; 1 runs with a failure"
    )
