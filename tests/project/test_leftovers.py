"""What a module of tests must end is found, what the session keeps is not (`tests.leftovers`)."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEAVING = """
    import subprocess, threading
    from tests import leftovers

    leftovers.WAIT_S = 0.1
    never = threading.Event()

    def test_it():
        for name in ("of-a-client", "embedded-broker"):
            threading.Thread(target=never.wait, name=name, daemon=True).start()
        threading.kept = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    """


@pytest.mark.usefixtures("clock")
def test_a_module_that_leaves_something_fails_and_the_next_one_does_not(tmp_path):
    (tmp_path / "test_a.py").write_text(textwrap.dedent(LEAVING), encoding="utf-8")
    (tmp_path / "test_b.py").write_text("def test_it(): pass\n", encoding="utf-8")
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.leftovers", "-q", "-rE"]
    ended = subprocess.run(
        [sys.executable, *command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "test_a.py leaves process cat, thread of-a-client\n" in ended.stdout
    assert "test_b.py leaves" not in ended.stdout
