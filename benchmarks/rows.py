"""Rows of benchmarks: a figure beside its goal.

A row is printed, and appended as a JSON line to the file named by BENCHMARK_ROWS, if set;
`benchmarks.table` collects the rows of child processes from such files.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_VARIABLE = "BENCHMARK_ROWS"
_MARKS = {True: "met", False: "NOT MET", None: ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure; `met` is None if it has no goal or the goal is for another size."""

    part: str
    name: str
    goal: str
    measured: str
    met: bool | None

    @property
    def mark(self):
        return _MARKS[self.met]


def record(row):
    """Append a row to the file of BENCHMARK_ROWS, if set; return the row."""
    if file := os.environ.get(FILE_VARIABLE):
        with Path(file).open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(asdict(row)) + "\n")
    return row


def say(part, name, measured, goal="", *, met=None):
    """Print and record a row; return it."""
    row = Row(part=part, name=name, goal=goal, measured=shown(measured), met=met)
    print(f"{row.name:<58} {row.measured:>30}  {row.goal:<20} {row.mark}".rstrip(), flush=True)
    return record(row)


def at_most(part, name, measured, goal, unit="", *, has_goal=True):
    """Report a figure that must not exceed its goal; `has_goal` is False at another size."""
    met = measured <= goal if has_goal else None
    return say(part, name, _with(unit, measured), f"<= {_with(unit, goal)}", met=met)


def at_least(part, name, measured, goal, unit="", *, has_goal=True):
    """Report a figure that must not be below its goal."""
    met = measured >= goal if has_goal else None
    return say(part, name, _with(unit, measured), f">= {_with(unit, goal)}", met=met)


def shown(value):
    """The value as text: four significant digits, or thousands separated by commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:.4g}"
    return f"{value:,.0f}"


def _with(unit, value):
    return f"{shown(value)} {unit}".rstrip()


def read(file):
    """All rows of a file; none if it does not exist."""
    path = Path(file)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Row(**json.loads(line)) for line in lines]
