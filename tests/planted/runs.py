"""Runs tests and simulated runs in a copy of the sources that has a fault."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from tests.ledger import read_marks, read_rows
from tests.planted.faults import ROOT, Fault, MovedError, changed_source, path_of
from tests.project.checkout import NAMES

NOT: Final = "not: "
OTHER: Final = "other"
"""What notices a fault that is not of a row of the ledger: its tests or commands."""
LIMIT_S: Final = 1_800
_QUIETLY: Final = ("-p", "no:cacheprovider")
_FAILED: Final = re.compile(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)


def worlds_of(fault: Fault) -> tuple[str, ...]:
    """Return the environments in which a fault must be noticed."""
    if not fault.row:
        return (OTHER,)
    where = {row.id: row.where for row in read_rows()}
    return fault.worlds or where[fault.row]


class Copy:
    """A copy of all files that git tracks, and of new ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writes = 0
        self._whole: dict[str, list[str]] = {}
        self._passing: dict[str, bool] = {}
        for name in NAMES:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Plant a fault while the context is open.

        Raises:
            MovedError: the place of the fault has moved.
        """
        path = self._folder / path_of(fault)
        whole = path.read_text(encoding="utf-8")
        self._write(path, changed_source(fault))
        try:
            yield
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: str) -> None:
        """Write a file with a time of its own: byte code is of a file's time in seconds and size.

        It is no time of a clock, which some seconds later could be the same one.
        """
        path.write_text(text, encoding="utf-8")
        self._writes += 1
        os.utime(path, (self._writes, self._writes))

    def failing_tests(self, fault: Fault, tests: Sequence[str]) -> list[str]:
        """Return the first test that fails with a fault, as a node id without parameters.

        Raises:
            MovedError: the place of the fault has moved, the tests end with an error, or the one
                that fails does so without the fault, too.
        """
        with self.planted(fault):
            done = self._run("pytest", "-x", "-q", "-rf", *_QUIETLY, *tests)
        failing = sorted(set(_FAILED.findall(done.stdout)))
        if done.returncode and not failing:
            output = done.stdout + done.stderr
            raise MovedError(f"{fault.name}: the tests do not run:\n{output[-1000:]}")
        if failing and not self.passes(failing[0]):
            raise MovedError(f"{fault.name}: {failing[0]} fails without the fault, too")
        return failing

    def passes(self, test: str) -> bool:
        """Return whether a test passes without a fault."""
        if test not in self._passing:
            self._passing[test] = self._run("pytest", "-q", *_QUIETLY, test).returncode == 0
        return self._passing[test]

    def changed_rules(self, fault: Fault, command: str) -> list[str]:
        """Return the rules that a command breaks with a fault only, then those without it only.

        The latter begin with "not: ".

        Raises:
            MovedError: the place of the fault has moved, or the command cannot be run.
        """
        if command not in self._whole:
            self._whole[command] = self.broken_rules(command)
        whole, broken = self._whole[command], self.broken_rules(command, fault)
        missed = [f"{NOT}{rule}" for rule in whole if rule not in broken]
        return [rule for rule in broken if rule not in whole] + missed

    def broken_rules(self, command: str, fault: Fault | None = None) -> list[str]:
        """Return the rules that a command breaks, with a fault or without one.

        Raises:
            MovedError: the place of the fault has moved, or the command cannot be run.
        """
        with nullcontext() if fault is None else self.planted(fault):
            done = self._run("tests.planted.oracles", command)
        if done.returncode:
            raise MovedError(f"{command} does not run:\n{done.stderr[-1000:]}")
        rules: list[str] = json.loads(done.stdout)
        return rules

    def _run(self, module: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self._folder,
            env={**_inherited(), "PYTHONPATH": str(self._folder)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )


def _inherited() -> dict[str, str]:
    """Return the environment of this process without what a surrounding test run adds.

    Runs in a copy keep their byte code, or each compiles all modules again.
    """
    outer = ("PYTEST_", "NIGHTLY", "HYPOTHESIS", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(outer)}


def tests_of(row: str, world: str) -> list[str]:
    """Return the node ids of the tests that are marked with a row in an environment."""
    return sorted(mark.test for mark in read_marks() if (mark.row, mark.world) == (row, world))
