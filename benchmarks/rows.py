"""A figure beside its goal: the one shape in which every benchmark says what it found.

A row is printed, and appended as a JSON line to the file that BENCHMARK_ROWS names, if any; that is
how `benchmarks.table` joins the rows of processes of their own.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_VARIABLE = "BENCHMARK_ROWS"
_MARKS = {True: "met", False: "NOT MET", None: ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure; `met` is None where it has no goal, or is not judged at this size."""

    part: str
    name: str
    goal: str
    measured: str
    met: bool | None

    @property
    def mark(self):
        return _MARKS[self.met]


def record(row):
    """Keep a row for the table of all."""
    if file := os.environ.get(FILE_VARIABLE):
        with Path(file).open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(asdict(row)) + "\n")
    return row


def say(part, name, measured, goal="", *, met=None):
    """Print a row and keep it."""
    row = Row(part=part, name=name, goal=goal, measured=shown(measured), met=met)
    print(f"{row.name:<58} {row.measured:>30}  {row.goal:<20} {row.mark}".rstrip(), flush=True)
    return record(row)


def at_most(part, name, measured, goal, unit="", *, judged=True):
    """Say a figure that must not be above its goal; `judged` is False for another size."""
    met = measured <= goal if judged else None
    return say(part, name, _with(unit, measured), f"<= {_with(unit, goal)}", met=met)


def at_least(part, name, measured, goal, unit="", *, judged=True):
    """Say a figure that must not be below its goal."""
    met = measured >= goal if judged else None
    return say(part, name, _with(unit, measured), f">= {_with(unit, goal)}", met=met)


def shown(value):
    """Four digits that count; thousands apart."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:.4g}"
    return f"{value:,.0f}"


def _with(unit, value):
    return f"{shown(value)} {unit}".rstrip()


def read(file):
    """All rows of a file; none of one that nobody wrote."""
    path = Path(file)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Row(**json.loads(line)) for line in lines]
