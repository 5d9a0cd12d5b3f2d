"""All figures of the project in one table: goal, measured, met or not.

    python -m benchmarks.table [--quick] [--only "encoding live"] [--out FILE]

Every part runs in a process of its own. All parts take about 45 minutes on two cores; with --quick,
about ten minutes, at sizes for which some goals are not checked. FILE gets the rows as JSON lines.
Exit status 1: a goal is missed, or a part failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.rows import FILE_VARIABLE, Row, read

ROOT = Path(__file__).resolve().parent.parent
_PYTEST = (
    "-m",
    "pytest",
    "--benchmark-only",
    "-q",
    "-s",
    "-p",
    "no:cacheprovider",
    "--timeout=900",
)
_COLUMNS = ("--benchmark-columns=min,median,rounds",)
_STYLES = {True: "green", False: "bold red", None: ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process: its command after `python`, and the options of a full and of a quick run."""

    name: str
    run: tuple[str, ...]
    whole: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()


PARTS = (
    Part(
        name="encoding",
        run=(*_PYTEST, *_COLUMNS, "benchmarks/encoding/codec.py", "benchmarks/encoding/views.py"),
    ),
    Part(
        name="fuzzing",
        run=("-m", "benchmarks.encoding.fuzz"),
        whole=("--seconds", "120"),
        quick=("--seconds", "20"),
    ),
    Part(
        name="simulator",
        run=("-m", "benchmarks.simulator"),
        whole=("--bounces", "500", "--seeds", "20000", "--clusters", "1000"),
        quick=("--bounces", "100", "--seeds", "1000", "--clusters", "100", "--skip-matrix"),
    ),
    Part(
        name="assignor",
        run=("-m", "benchmarks.assign"),
        whole=("--random", "2000"),
        quick=("--random", "100", "--quick"),
    ),
    Part(name="growth", run=("-m", "benchmarks.assign.shapes"), quick=("--quick",)),
    Part(name="embedding", run=(*_PYTEST, *_COLUMNS, "benchmarks/clients/embedding.py")),
    Part(
        name="failover",
        run=("-m", "benchmarks.clients.failover"),
        whole=("--kills", "5"),
        quick=("--kills", "2"),
    ),
    Part(
        name="rebootstrap",
        run=("-m", "benchmarks.clients.rebootstrap"),
        whole=("--seconds", "60", "--rounds", "5"),
        quick=("--seconds", "5", "--rounds", "2"),
    ),
    Part(
        name="consumers",
        run=("-m", "benchmarks.clients.consumers"),
        quick=("--records", "20000", "--pairs", "2"),
    ),
    Part(
        name="polls",
        run=("-m", "benchmarks.clients.polls"),
        quick=("--seconds", "8", "--joins", "1"),
    ),
    Part(name="live", run=("-m", "benchmarks.clients.live"), whole=("--fresh",)),
    Part(
        name="spark-batch",
        run=("-m", "benchmarks.spark.batch"),
        whole=("--groups", "5000"),
        quick=("--groups", "200", "--runs", "1"),
    ),
    Part(
        name="spark-crossover",
        run=("-m", "benchmarks.spark.crossover"),
        quick=("--groups", "40"),
    ),
    Part(
        name="spark-group",
        run=("-m", "benchmarks.spark.group"),
        whole=("--tasks", "10000000"),
        quick=("--tasks", "100000"),
    ),
)


def run(part: Part, *, quick: bool, problems: Path | None) -> list[Row]:
    """Run a part and return its rows; its output is not captured."""
    more = part.quick if quick else part.whole
    if problems is not None and part.name == "assignor":
        more = (*more, "--problems", str(problems))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.jsonl")
        environment = {**os.environ, FILE_VARIABLE: str(file)}
        command = [sys.executable, *part.run, *more]
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        rows = read(file)
    # Status 1 with a row that missed its goal is a result; any other status but 0 is a failure.
    if status and (status != 1 or not any(row.met is False for row in rows)):
        message = f"ended with status {status}"
        rows.append(Row(part=part.name, name="failed", goal="", measured=message, met=False))
    return rows


def table_of(rows: Sequence[Row]) -> Table:
    """All rows, part by part."""
    table = Table("figure", "goal", "measured", "met", title="figures")
    table.columns[2].justify = "right"
    last = None
    for row in rows:
        if row.part != last:
            table.add_section()
            table.add_row(Text(row.part, style="bold"))
            last = row.part
        mark = Text(row.mark, style=_STYLES[row.met])
        table.add_row(f"  {row.name}", row.goal, row.measured, mark)
    return table


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Use small sizes.")
@click.option(
    "--only",
    metavar="PARTS",
    help=f"Run only these parts; choose from {' '.join(part.name for part in PARTS)}.",
)
@click.option(
    "--problems", type=click.Path(exists=True, path_type=Path), help="Folder of problem sets."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="File for the rows (JSON lines)."
)
def main(*, quick: bool, only: str | None, problems: Path | None, out: Path | None) -> None:
    names = [part.name for part in PARTS]
    chosen = (only or " ".join(names)).split()
    if unknown := sorted(set(chosen) - set(names)):
        raise click.UsageError(f"unknown part {', '.join(unknown)}; choose from {', '.join(names)}")
    console, rows = Console(width=140, highlight=False), []
    for part in PARTS:
        if part.name in chosen:
            console.rule(part.name)
            began = time.monotonic()
            rows += run(part, quick=quick, problems=problems)
            console.print(f"{part.name}: {time.monotonic() - began:.0f} s")
    console.print(table_of(rows))
    if out is not None:
        out.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")
    with_goal = [row for row in rows if row.met is not None]
    missed = [row for row in with_goal if not row.met]
    console.print(
        f"{len(with_goal)} goals, {len(with_goal) - len(missed)} met, {len(missed)} missed"
    )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
