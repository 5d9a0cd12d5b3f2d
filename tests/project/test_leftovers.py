"""What a module of tests must end is found, what the session keeps is not (`tests.leftovers`)."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tests.leftovers import children, left_behind

ROOT = Path(__file__).resolve().parents[2]


def test_a_thread_that_goes_on_is_named_and_one_that_ends_is_waited_for():
    before, running = threading.enumerate(), set(children())
    ending, going_on = threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=ending.wait, name="ends", daemon=True),
        threading.Thread(target=going_on.wait, daemon=True),
        threading.Thread(target=going_on.wait, name="embedded-broker", daemon=True),
    ]
    for thread in threads:
        thread.start()
    timer = threading.Timer(0.1, ending.set)
    timer.start()
    assert left_behind(before, running, wait_s=1.0) == [f"thread {threads[1].name}"]
    going_on.set()
    for thread in threads:
        thread.join()
    assert left_behind(before, running) == []


@pytest.mark.slow  # what is left is waited for
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("KEPT.append(subprocess.Popen(['sleep', '33']))", "process sleep 33"),
        ("Client().start()", "thread Thread-"),
    ],
)
def test_a_module_that_leaves_something_fails_and_the_next_one_does_not(tmp_path, body, named):
    start = """
        import subprocess, threading, time
        KEPT = []
        class Client(threading.Thread):
            daemon = True
            def run(self): time.sleep(33)
        """
    (tmp_path / "test_a.py").write_text(
        textwrap.dedent(start)
        + f"def test_it():\n    {body}\n"
        + "import pytest\n@pytest.fixture\ndef broken():\n    yield\n    raise ValueError\n"
        + "def test_more(broken): pass\n"
    )
    (tmp_path / "test_b.py").write_text("def test_it(): pass\n")
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.leftovers", "-q", "-rE"]
    ended = subprocess.run(
        [sys.executable, *command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert f"test_a.py leaves {named}" in ended.stdout
    assert "test_b.py leaves" not in ended.stdout
