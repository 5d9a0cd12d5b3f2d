"""What starts a JVM is killed: its guard ends the JVM, and removes its temporary files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT_S = 240
# The JVM, with files of its own, and the shell that it is started by.
PARENT = """
import signal, subprocess, tempfile
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from spark_assign.cli.jvm import _guarded
with _guarded() as group:
    words = ["sh", "-c", "sleep 3600 & touch $0/file; echo; wait", tempfile.mkdtemp()]
    subprocess.run(words, stdin=subprocess.PIPE, check=True, **group)
"""


def wait_until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def running(mark):
    """Command lines of the processes with a variable in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes())
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.usefixtures("alone")
@pytest.mark.timeout(2 * WAIT_S)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_jvm_that_starts_ends_with_its_parent(tmp_path, how):
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    mark = str(tmp_path)
    with process:
        process.stdout.readline()  # its processes run
        assert len(running(mark)) == 4
        [directory] = tmp_path.iterdir()
        assert [path.name for path in directory.rglob("file")] == ["file"]
        process.send_signal(how)
        process.wait(WAIT_S)
        wait_until(lambda: running(mark) == [])
    assert list(tmp_path.iterdir()) == []
