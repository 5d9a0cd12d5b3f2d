"""Which tests a lane takes, and no test uses a clock without saying so."""

import os
import signal
import subprocess
import sys

import pytest

from tests.ledger import read_marks
from tests.project.checkout import ROOT

TESTS = """
import asyncio, os, signal, subprocess, sys, threading, time
import pytest

@pytest.mark.nightly("takes minutes", but=("b",))
@pytest.mark.parametrize("value", ["a", "b"])
def test_some_at_night(value): pass

@pytest.mark.nightly("takes hours")
def test_all_at_night(): pass

def test_a_thread(): threading.Thread(target=int).start()

def test_a_process(): subprocess.run([sys.executable, "-c", ""], check=True)

def test_a_sleep(): time.sleep(0.001)

def test_a_coroutine(): asyncio.run(asyncio.sleep(0.001))

def test_an_event(): threading.Event().wait(0.001)

@pytest.mark.usefixtures("clock")
def test_a_clock(): time.sleep(0.001)

@pytest.mark.usefixtures("clock")
def test_own_signal(): os.kill(os.getpid(), signal.SIGCONT)

@pytest.mark.usefixtures("clock")
def test_a_raised_signal(): signal.raise_signal(signal.SIGCONT)

@pytest.mark.usefixtures("clock")
def test_a_timer():
    signal.setitimer(signal.ITIMER_VIRTUAL, 100)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)

@pytest.mark.usefixtures("alone")
def test_a_signal(): os.kill(os.getpid(), signal.SIGCONT)

def test_no_clock():
    time.sleep(0)
    asyncio.run(asyncio.sleep(0))
    event = threading.Event()
    event.set()
    event.wait(1)
"""
WITHOUT_CLOCK = {"a_thread", "a_process", "a_sleep", "a_coroutine", "an_event"}
WITHOUT_ALONE = {"own_signal", "a_raised_signal", "a_timer"}
ROW = '@pytest.mark.kip("268-10", "sim")\n'
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow]


def session(folder, *options, tests=TESTS, **environment):
    (folder / "conftest.py").write_text(
        (ROOT / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (folder / "test_it.py").write_text(tests, encoding="utf-8")
    outer = ("PYTEST_XDIST", "PYTEST_ADDOPTS", "PYTEST_CURRENT", "NIGHTLY", "HYPOTHESIS")
    inherited = {name: v for name, v in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "--rootdir=.",
            f"-c={os.devnull}",
            *options,
            ".",
        ],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def outcomes(ended):
    """Return name -> outcome of a session's tests."""
    lines = [line.split() for line in ended.stdout.splitlines()]
    return {
        words[1].rpartition("::")[2].partition(" ")[0]: words[0]
        for words in lines
        if words and words[0] in {"PASSED", "FAILED", "ERROR"} and "::" in words[1]
    }


def test_a_run_leaves_out_what_is_nightly_and_fails_what_uses_a_clock_without_its_fixture(tmp_path):
    found = outcomes(session(tmp_path, "-n", "1", "--dist", "loadgroup"))  # ids without "@group"
    assert not [name for name in found if "night" in name and name != "test_some_at_night[b]"]
    errors = {name.removeprefix("test_") for name, result in found.items() if result == "ERROR"}
    assert errors == WITHOUT_CLOCK | WITHOUT_ALONE


INTERRUPT = """
import signal
import pytest

@pytest.mark.usefixtures("alone")
def test_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
"""


def test_a_test_can_interrupt_itself_in_a_run_that_ignores_interrupts(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = session(tmp_path, tests=INTERRUPT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert outcomes(ended) == {"test_an_interrupt": "PASSED"}


@pytest.mark.parametrize(
    ("marks", "tests"),
    [
        ("clock and not alone", {"a_clock", *WITHOUT_ALONE}),
        ("nightly", {"some_at_night[a]", "some_at_night[b]", "all_at_night"}),
    ],
)
def test_marks_select_the_lanes_and_a_night_takes_everything(tmp_path, marks, tests):
    found = outcomes(session(tmp_path, "-m", marks, NIGHTLY="1"))
    assert {name.removeprefix("test_") for name in found} - {"no_clock"} == tests


@pytest.mark.parametrize(
    ("options", "old", "new", "error"),
    [
        ((), '@pytest.mark.nightly("takes h', ROW + '@pytest.mark.nightly("takes h', "a row"),
        (("-n", "2"), 'nightly("takes hours")', "nightly", "test_all_at_night: give its mark"),
        ((), TESTS, "import pytest\n@pytest.mark.nightly('r')\ndef test_it(): pass", "NIGHTLY=1"),
    ],
)
def test_a_nightly_proof_of_a_row_or_no_reason_is_a_usage_error(tmp_path, options, old, new, error):
    ended = session(tmp_path, *options, tests=TESTS.replace(old, new))
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert error in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_parameter_that_no_test_has_is_an_error_of_collection(tmp_path):
    ended = session(tmp_path, "-n", "1", tests=TESTS.replace('but=("b",)', 'but=("b", "typo")'))
    assert ended.returncode in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}
    assert "test_some_at_night: its mark nightly has but='typo'" in ended.stdout
    assert "choose from: 'a', 'b'" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_an_unknown_environment_of_the_ledger_is_a_usage_error(tmp_path):
    ended = session(tmp_path, "--ledger=cores")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "unknown environment" in ended.stderr


def test_a_skipped_proof_fails_the_ledger(tmp_path):
    mark = next(mark for mark in read_marks() if mark.world == "core")
    file, _, test = mark.test.partition("::")
    (tmp_path / file).parent.mkdir(parents=True)
    skipped = "import pytest\n\n@pytest.mark.skip\ndef {}(): pass\n"
    (tmp_path / file).write_text(skipped.format(test), encoding="utf-8")
    ended = session(tmp_path, "--ledger", "-k", test, tests="")
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"ledger: {mark.row} (core): {mark.test} ['skipped']" in ended.stdout


@pytest.mark.parametrize(
    ("ends", "verdict"), [("pytest.exit('bye', returncode=0)", "1\n"), ("os._exit(0)", "")]
)
def test_a_run_that_ends_early_with_status_0_is_not_green(tmp_path, ends, verdict):
    tests = f"import os, pytest\ndef test_a(): {ends}\ndef test_b(): pass\n"
    ended = session(tmp_path, "--verdict", ".verdict", tests=tests)
    assert (tmp_path / ".verdict").exists() == bool(verdict)
    if verdict:
        assert (tmp_path / ".verdict").read_text(encoding="utf-8") == verdict
        assert "2 tests did not run, as test_it.py::test_a" in ended.stdout
