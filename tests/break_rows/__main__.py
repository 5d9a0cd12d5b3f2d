"""Break the product's code row by row, and require that tests marked with the row fail.

Each break of tests/break_rows/breaks.toml is applied to a copy of the sources. There the tests run
that are marked with its row, world by world (core, sim, loop, real). Only failing tests count;
sources that cannot be imported prove nothing. The failing tests are written to docs/breaks.json,
from which docs/kips.md is generated. Without --anew, only new and changed breaks run.

Exit status 1: no test failed for a break; 2: the place of a break has moved.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from tests.break_rows.places import (
    ROOT,
    Break,
    MovedError,
    broken_source,
    copy_sources,
    path_of,
    read_breaks,
)
from tests.ledger import WORLDS, Mark, read_marks, read_rows

RESULTS: Final = ROOT / "docs" / "breaks.json"
LIMIT_S: Final = 1_800
_FAILED = re.compile(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)


def read_results() -> dict[str, dict[str, Any]]:
    """The stored results: name of a break -> its place, old, new, and failing tests by world."""
    if not RESULTS.exists():
        return {}
    return json.loads(RESULTS.read_text(encoding="utf-8"))["breaks"]


def worlds_of(break_: Break) -> tuple[str, ...]:
    """The worlds in which a test must fail for a break."""
    where = {row.id: row.where for row in read_rows()}
    return break_.worlds or where[break_.row]


def is_current(break_: Break, result: dict[str, Any] | None) -> bool:
    """Whether a result belongs to this break in its current form."""
    return result is not None and all(
        result[name] == getattr(break_, name) for name in ("place", "old", "new")
    )


def tests_of(marks: Sequence[Mark], row: str, world: str) -> list[str]:
    """Node ids of the tests that are marked with a row in a world."""
    return sorted(mark.test for mark in marks if (mark.row, mark.world) == (row, world))


def red_tests(break_: Break, tests: Sequence[str], copy: Path) -> list[str]:
    """The tests that fail with a break, as node ids without parameters.

    Raises:
        MovedError: the break makes sources that cannot be imported, or a test that hangs.
    """
    path = copy / path_of(break_)
    whole = path.read_text(encoding="utf-8")
    path.write_text(broken_source(break_), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        path.write_text(whole, encoding="utf-8")
    if done.returncode not in (0, 1) or "error during collection" in done.stdout:
        raise MovedError(f"{break_.name}: the tests do not run:\n{done.stdout[-2000:]}")
    return sorted(set(_FAILED.findall(done.stdout)))


@click.command(help=__doc__)
@click.option(
    "--world", "worlds", multiple=True, type=click.Choice(WORLDS), help="Run only in these worlds."
)
@click.option("--anew", is_flag=True, help="Also run unchanged breaks again.")
@click.option("--list", "lists", is_flag=True, help="List the breaks and run none.")
@click.argument("rows", nargs=-1)
def main(*, worlds: tuple[str, ...], anew: bool, lists: bool, rows: tuple[str, ...]) -> None:
    """Run the breaks of the rows; without rows, all breaks."""
    wanted = [break_ for break_ in read_breaks() if not rows or break_.row in rows]
    try:
        for break_ in wanted:
            broken_source(break_)
    except MovedError as error:
        click.echo(error, err=True)
        sys.exit(2)
    if lists:
        for break_ in wanted:
            click.echo(f"{break_.name}  ({break_.place})")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy_sources(Path(folder))
        unnoticed = [
            line for break_ in wanted for line in _run(break_, worlds, Path(folder), anew=anew)
        ]
    for line in unnoticed:
        click.echo(f"no test failed: {line}", err=True)
    sys.exit(bool(unnoticed))


def _run(break_: Break, worlds: Sequence[str], copy: Path, *, anew: bool) -> list[str]:
    """Run a break in its worlds; return the worlds in which no test failed."""
    results, marks = read_results(), read_marks()
    result = results.get(break_.name)
    if anew or not is_current(break_, result):
        result = {"place": break_.place, "old": break_.old, "new": break_.new, "red": {}}
    unnoticed = []
    for world in worlds_of(break_):
        if (worlds and world not in worlds) or result["red"].get(world):
            continue
        try:
            red = red_tests(break_, tests_of(marks, break_.row, world), copy)
        except (MovedError, subprocess.TimeoutExpired) as error:
            click.echo(f"{world:<5} {error}", err=True)
            red = []
        click.echo(f"{world:<5} {'red' if red else 'GREEN':<6} {break_.name}")
        unnoticed += [] if red else [f"{break_.name} ({world})"]
        result["red"][world] = red
    results[break_.name] = result
    known = {each.name for each in read_breaks()}
    kept = {name: results[name] for name in sorted(results) if name in known}
    RESULTS.write_text(json.dumps({"breaks": kept}, indent=1) + "\n", encoding="utf-8")
    return unnoticed


if __name__ == "__main__":
    main()
