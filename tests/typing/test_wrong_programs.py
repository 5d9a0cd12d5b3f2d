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
    """Line of each marked statement -> (its code, code of the error, part of the error)."""
    lines = SOURCE.splitlines()
    functions = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)]
    for statement in (each for function in functions for each in function.body):
        found = MARK.search(lines[statement.lineno - 2])
        if found:
            yield statement.lineno, (ast.unparse(statement), *found.groups())


MARKED = dict(marked())


@pytest.fixture(scope="module")
def errors():
    """Line -> (code, text) of each error."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--show-error-codes", PROGRAMS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return {int(line): (code, text) for line, text, code in ERROR.findall(done.stdout)}


@pytest.mark.slow
@pytest.mark.parametrize("line", sorted(MARKED))
def test_a_wrong_program_is_refused(errors, line):
    statement, code, part = MARKED[line]
    assert line in errors, f"mypy accepts: {statement}"
    assert errors[line][0] == code
    assert part in errors[line][1]


@pytest.mark.slow
def test_nothing_else_is_refused(errors):
    assert errors.keys() == MARKED.keys()
    assert len(MARKED) > 20
