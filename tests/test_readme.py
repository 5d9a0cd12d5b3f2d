"""The README's blocks run, and print what they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme import ROOT, blocks

CONSOLE = [block for block in blocks() if block.kind == "console"]
SHORT = [block for block in CONSOLE if block.mark != "slow"]
LONG = [block for block in CONSOLE if block.mark == "slow"]
PYTHON = [block for block in blocks() if block.kind == "python"]


def run(command, timeout=120):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def masked(text):
    return [re.sub(r"\d+", "0", line).split() for line in text.strip().splitlines()]


def check(block):
    for command, shown in block.commands:
        done = run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if block.mark == "exact":
            assert done.stdout.rstrip() == shown.rstrip()
        if block.mark == "shape":
            assert masked(done.stdout) == masked(shown)


@pytest.mark.parametrize("block", SHORT, ids=lambda block: str(block.line))
def test_console_blocks_run_and_print_what_they_show(block):
    check(block)


@pytest.mark.loop
@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("block", LONG, ids=lambda block: str(block.line))
def test_long_console_blocks_run(block):
    check(block)


@pytest.mark.parametrize("block", PYTHON, ids=lambda b: str(b.line))
def test_python_blocks_run(block):
    exec(compile(block.body, f"README.md:{block.line}", "exec"), {"__name__": "readme"})  # noqa: S102 the point


def test_there_are_blocks():
    assert CONSOLE
    assert PYTHON
