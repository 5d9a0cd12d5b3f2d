"""A module of tests that leaves a process or a thread fails (`tests.leftovers`)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEAVES = """
import subprocess, threading, time
KEPT = []
class Client(threading.Thread):
    daemon = True
    def run(self): time.sleep(33)
def test_it():
"""


@pytest.mark.slow  # what is left is waited for
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("KEPT.append(subprocess.Popen(['sleep', '33']))", "process sleep 33"),
        ("Client().start()", "thread Thread-"),
    ],
)
def test_a_module_that_leaves_something_fails_and_the_next_one_does_not(tmp_path, body, named):
    (tmp_path / "test_a.py").write_text(f"{LEAVES}    {body}\n")
    (tmp_path / "test_b.py").write_text("def test_it(): pass\n")
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.leftovers", "-q", "-rE"]
    ended = subprocess.run(
        [sys.executable, *command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"test_a.py leaves {named}" in ended.stdout
    assert "test_b.py leaves" not in ended.stdout
