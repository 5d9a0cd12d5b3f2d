"""The guard process and its command end together, in every case."""

import os
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a process with its parent"
)


@pytest.fixture
def guard(tmp_path, alone):
    folder = tmp_path / "work"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "system_tests.real.guard", str(folder), "sleep", "600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(process.stdout.readline())
    yield process, child, folder
    process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()


def is_gone(pid):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_the_end_of_its_input_ends_the_command_and_removes_the_folder(guard):
    process, child, folder = guard
    process.stdin.close()
    process.wait(timeout=120)
    assert is_gone(child)
    assert not folder.exists()


@pytest.mark.slow
def test_a_stop_reaches_the_command_and_the_folder_stays(guard):
    process, child, folder = guard
    process.terminate()
    process.wait(timeout=120)
    assert is_gone(child)
    assert folder.exists()


def test_a_killed_guard_ends_its_command(guard):
    process, child, _ = guard
    process.kill()
    process.wait(timeout=120)
    assert is_gone(child)
