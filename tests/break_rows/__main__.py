"""Break the product's code row by row, and demand that the row's marked tests go red.

Each break of tests/break_rows/breaks.toml is made in a copy of the sources; there the tests run
that are marked with its row, world by world. Red is a test that fails: sources that cannot be
imported are no proof. What went red is kept in docs/breaks.json, from which docs/kips.md is
printed. Only breaks that are new or changed are run, unless --anew says otherwise.

Exit status 1: a break that nobody noticed; 2: a break whose place has moved.
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
    """What was measured: name of a break -> its place, old, new, and the red tests by world."""
    if not RESULTS.exists():
        return {}
    return json.loads(RESULTS.read_text(encoding="utf-8"))["breaks"]


def worlds_of(one: Break) -> tuple[str, ...]:
    """In which worlds a break must be noticed."""
    where = {row.id: row.where for row in read_rows()}
    return one.worlds or where[one.row]


def is_current(one: Break, result: dict[str, Any] | None) -> bool:
    """Whether a result is one of this very break."""
    return result is not None and all(
        result[name] == getattr(one, name) for name in ("place", "old", "new")
    )


def tests_of(marks: Sequence[Mark], row: str, world: str) -> list[str]:
    """Node ids of the tests that are marked with a row in a world."""
    return sorted(mark.test for mark in marks if (mark.row, mark.world) == (row, world))


def red_tests(one: Break, tests: Sequence[str], copy: Path) -> list[str]:
    """The tests that fail with a break, as node ids without parameters.

    Raises:
        MovedError: the break makes sources that cannot be imported, or a test that hangs.
    """
    path = copy / path_of(one)
    whole = path.read_text(encoding="utf-8")
    path.write_text(broken_source(one), encoding="utf-8")
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
        raise MovedError(f"{one.name}: the tests do not run:\n{done.stdout[-2000:]}")
    return sorted(set(_FAILED.findall(done.stdout)))


@click.command(help=__doc__)
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS), help="only these")
@click.option("--anew", is_flag=True, help="run breaks again that were run before")
@click.option("--list", "lists", is_flag=True, help="say which breaks there are, and run none")
@click.argument("rows", nargs=-1)
def main(*, worlds: tuple[str, ...], anew: bool, lists: bool, rows: tuple[str, ...]) -> None:
    """Run the breaks of the rows, all of them by itself."""
    wanted = [one for one in read_breaks() if not rows or one.row in rows]
    try:
        for one in wanted:
            broken_source(one)
    except MovedError as error:
        click.echo(error, err=True)
        sys.exit(2)
    if lists:
        for one in wanted:
            click.echo(f"{one.name}  ({one.place})")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy_sources(Path(folder))
        unnoticed = [line for one in wanted for line in _run(one, worlds, Path(folder), anew=anew)]
    for line in unnoticed:
        click.echo(f"nobody noticed: {line}", err=True)
    sys.exit(bool(unnoticed))


def _run(one: Break, worlds: Sequence[str], copy: Path, *, anew: bool) -> list[str]:
    """Run a break in its worlds; those that did not notice it."""
    results, marks = read_results(), read_marks()
    result = results.get(one.name)
    if anew or not is_current(one, result):
        result = {"place": one.place, "old": one.old, "new": one.new, "red": {}}
    unnoticed = []
    for world in worlds_of(one):
        if (worlds and world not in worlds) or result["red"].get(world):
            continue
        try:
            red = red_tests(one, tests_of(marks, one.row, world), copy)
        except (MovedError, subprocess.TimeoutExpired) as error:
            click.echo(f"{world:<5} {error}", err=True)
            red = []
        click.echo(f"{world:<5} {'red' if red else 'GREEN':<6} {one.name}")
        unnoticed += [] if red else [f"{one.name} ({world})"]
        result["red"][world] = red
    results[one.name] = result
    known = {each.name for each in read_breaks()}
    kept = {name: results[name] for name in sorted(results) if name in known}
    RESULTS.write_text(json.dumps({"breaks": kept}, indent=1) + "\n", encoding="utf-8")
    return unnoticed


if __name__ == "__main__":
    main()
