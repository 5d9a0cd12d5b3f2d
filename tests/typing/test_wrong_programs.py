"""mypy --strict refuses wrong uses of the adapters, and nothing else in the same file."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("wrong_programs.py")
ROOT = PROGRAMS.parents[2]
SOURCE = PROGRAMS.read_text(encoding="utf-8")
MARK = re.compile(r"# refused: ([\w-]+): (.+)$")
ERROR = re.compile(r"^[^:]+:(\d+): error: (.*)  \[([\w-]+)\]$", re.MULTILINE)


def marked():
    """Line of each marked statement -> (code of the error, part of the error)."""
    lines = SOURCE.splitlines()
    functions = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)]
    for statement in (each for function in functions for each in function.body):
        found = MARK.search(lines[statement.lineno - 2])
        if found:
            yield statement.lineno, found.groups()


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
def test_every_wrong_program_is_refused_and_nothing_else():
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--show-error-codes", PROGRAMS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = {int(line): (code, text) for line, text, code in ERROR.findall(done.stdout)}
    wrong = dict(marked())
    assert len(wrong) > 20
    assert errors.keys() == wrong.keys(), done.stdout + done.stderr
    for line, (code, part) in wrong.items():
        assert errors[line][0] == code, (line, errors[line])
        assert part in errors[line][1], line
