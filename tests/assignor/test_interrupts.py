"""Ctrl-C ends a program, whatever it does: imports, swallows the interrupt, or takes its time.

Each program writes a file when it is there, and is interrupted then; nothing waits for a time.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assignor.cli.toolkit import exit_status

WAIT_S = 240
LINE = "assignor: interrupted.\n"
# A module that the program imports, and that is never done; it swallows every interrupt.
ENDLESS = """
import os, time
while True:
    open(f"{os.environ['FOLDER']}/begun", "a").close()
    try:
        time.sleep(0.01)
    except BaseException:
        open(f"{os.environ['FOLDER']}/interrupted", "a").close()
"""
STRATEGY = f"""
def of_client(state):
{ENDLESS.replace(chr(10), chr(10) + "    ")}
"""
PROGRAM = """
from assignor import interrupts
interrupts.GRACE_S = {grace}
interrupts.run_program("assignor", "assignor.cli.main")
"""
pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def start(tmp_path):
    """Start a program whose folder has further modules."""
    started = []

    def start(*words, grace=1.5, script="", **modules):
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        path = os.pathsep.join((str(tmp_path), str(Path.cwd())))
        program = [sys.executable, "-c", PROGRAM.format(grace=grace), *words]
        process = subprocess.Popen(
            ["sh", "-c", script, *program] if script else program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path, "FOLDER": str(tmp_path)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for(path):
    deadline = time.monotonic() + WAIT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} is not there"
        time.sleep(0.01)


def interrupt(process):
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=WAIT_S)
    return process.returncode, stdout, stderr


def assigning(tmp_path):
    """Words that run the strategy `own`."""
    problem = tmp_path / "problem.json"
    source = Path(__file__).parent / "problems" / "join.jsonl"
    problem.write_text(source.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    return "assign", "--problem", str(problem), "--strategy", "own:of_client"


def test_an_import_is_interrupted_without_a_traceback(start, tmp_path):
    process = start("negotiate", "--members", "10/11", rich=ENDLESS)
    wait_for(tmp_path / "begun")
    assert interrupt(process) == (130, "", LINE)
    assert not (tmp_path / "interrupted").exists()  # it is ended, and not interrupted


def test_a_command_that_swallows_the_interrupt_is_ended_all_the_same(start, tmp_path):
    process = start(*assigning(tmp_path), own=STRATEGY)
    wait_for(tmp_path / "begun")
    assert interrupt(process) == (130, "", LINE)
    assert (tmp_path / "interrupted").exists()


def test_the_second_interrupt_ends_a_command_that_cleans_up(start, tmp_path):
    process = start(*assigning(tmp_path), own=STRATEGY, grace=3600)
    wait_for(tmp_path / "begun")
    process.send_signal(signal.SIGINT)
    wait_for(tmp_path / "interrupted")
    assert process.poll() is None
    assert interrupt(process) == (130, "", LINE)


def test_without_standard_error_the_status_is_the_same(start, tmp_path):
    process = start(*assigning(tmp_path), own=STRATEGY, script='exec "$0" "$@" 2>&-')
    wait_for(tmp_path / "begun")
    assert interrupt(process) == (130, "", "")


def test_a_failure_after_an_interrupt_is_reported_as_the_interrupt(monkeypatch, capsys):
    def fails():
        raise OSError("the broker does not answer")

    monkeypatch.setattr(exit_status, "was_interrupted", lambda: True)
    with pytest.raises(SystemExit) as caught:
        exit_status.end("assignor", fails)
    assert (caught.value.code, capsys.readouterr().err) == (130, LINE)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EMFILE, "this process has no file descriptors left; raise its limit (ulimit -n)"),
        (errno.EACCES, "a.py: Permission denied"),
    ],
)
def test_a_file_that_gets_no_descriptor_is_not_named_as_the_cause(number, sentence, capsys):
    def fails():
        raise OSError(number, os.strerror(number), "a.py")

    with pytest.raises(SystemExit) as caught:
        exit_status.end("assignor", fails)
    assert (caught.value.code, capsys.readouterr().err) == (3, f"assignor: {sentence}.\n")
