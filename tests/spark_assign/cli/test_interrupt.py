"""Ctrl-C while a strategy hangs: the command ends soon, without an output and without processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from assignor.cli.main import main as assignor

WAIT_S, END_S = 240, 30
STRATEGY = """
import os, time
def hang(state):
    open(os.environ["STARTED"], "w").close()
    time.sleep(3_600)
"""


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_of(session):
    """The processes of a session of the system that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
        except OSError:  # it has ended
            continue
        if int(number) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.nightly("starts Spark; every run interrupts one Spark job")
@pytest.mark.usefixtures("alone")
@pytest.mark.timeout(400)
def test_ctrl_c_ends_a_job_that_hangs(tmp_path):
    groups, started, out = (tmp_path / name for name in ("groups.jsonl", "started", "out"))
    words = ["sample", "--groups", "4", "--out", str(groups)]
    assert CliRunner().invoke(assignor, words).exit_code == 0
    (tmp_path / "hanging.py").write_text(STRATEGY, encoding="utf-8")
    out.mkdir()
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-m", "spark_assign.entry", "batch"]
    command += ["--in", groups, "--out", out / "plans", "--strategy", "hanging:hang"]
    process = subprocess.Popen(
        [*map(str, command), "--cores", "1"],
        env=os.environ | {"PYTHONPATH": path, "STARTED": str(started)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(started.exists, WAIT_S)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=END_S)
        assert process.returncode == 130
        assert stderr.splitlines()[-1] == "spark-assign: interrupted."
        assert list(out.iterdir()) == []
        wait_until(lambda: not processes_of(process.pid), END_S)
    finally:
        for number in processes_of(process.pid):
            os.kill(number, signal.SIGKILL)
        process.wait()
