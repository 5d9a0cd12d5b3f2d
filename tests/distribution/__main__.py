"""Install the wheel without extras and with each single extra, on several Pythons, and use it.

    python -m tests.distribution --pythons "3.11 3.12 3.13" [--extras "kafka report"] [--dist dist]

A Python is a version on the PATH, or a path. pip creates every environment, so a package index must
be reachable. Exit status: 0 all checks hold, 1 a check fails, 3 a Python is missing or pip failed.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tests.distribution.archives import ROOT, archives_in, build
from tests.distribution.checks import WITH, checks_for, wrong_with
from tests.distribution.environments import NotInstalled, find_python, installed, workplace

EXTRAS = ("", *WITH)
PROGRAM = ROOT / "tests/typing/api.py"
FAULTY, ENVIRONMENT_FAILED = 1, 3


def types_wrong_with(python, folder):
    """Check a user's program against the installed types; mypy's errors, or None."""
    shutil.copy(PROGRAM, folder / "program.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache"]
    command += ["--python-executable", python, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return f"types: {done.stdout[-1500:]}{done.stderr[-500:]}" if done.returncode else None


def tried(wheel, extra, python, home):
    """(number of checks, failures, seconds to install, seconds in total) of one environment."""
    began = time.monotonic()
    own = installed(wheel, extra, home / "venv", python=python)
    ready = time.monotonic()
    place, checks = workplace(home / "place"), checks_for(extra)
    wrong = [found for check in checks if (found := wrong_with(check, own, place))]
    if not extra and (found := types_wrong_with(own, place)):
        wrong.append(found)
    return len(checks) + (not extra), wrong, ready - began, time.monotonic() - began


def run(wheel, pythons, extras, say):
    """Rows (python, extra, verdict) of all environments, and the worst exit status."""
    rows, status = [], 0
    for wanted, python in pythons:
        for extra in extras:
            with tempfile.TemporaryDirectory() as home:
                try:
                    count, wrong, install, whole = tried(wheel, extra, python, Path(home))
                except NotInstalled as error:
                    count, wrong, status = 0, [f"pip: {error}"], ENVIRONMENT_FAILED
            verdict = f"{len(wrong)} of {count} checks fail" if wrong else f"{count} checks hold"
            if count:
                verdict += f"; {install:.0f} s to install, {whole:.0f} s in all"
            status = status or (FAULTY if wrong else 0)
            rows.append((wanted, extra or "(none)", verdict))
            say(*rows[-1], wrong)
    return rows, status


@click.command(help=__doc__.split("\n\n", maxsplit=1)[0])
@click.option("--pythons", default="3.11 3.12 3.13", show_default=True, help="Versions or paths.")
@click.option("--extras", help="Only these; `none`: without extras. [default: all]")
@click.option(
    "--dist", type=click.Path(path_type=Path), help="Folder of the wheel. [default: build it]"
)
def main(pythons, extras, dist):
    found = [(wanted, find_python(wanted)) for wanted in pythons.split()]
    absent = [wanted for wanted, python in found if python is None]
    chosen = tuple("" if extra == "none" else extra for extra in (extras or "").split()) or EXTRAS
    if unknown := [extra for extra in chosen if extra not in EXTRAS]:
        raise click.UsageError(f"no checks for {unknown}; known: none, {', '.join(WITH)}")

    def say(python, extra, verdict, wrong):
        click.echo(f"Python {python}, {extra}: {verdict}")
        for sentence in wrong:
            click.echo(f"  {sentence}", err=True)

    with tempfile.TemporaryDirectory() as folder:
        if dist is None:
            build(ROOT, dist := Path(folder))
        present = [pair for pair in found if pair[1] is not None]
        rows, status = run(archives_in(dist).wheel.resolve(), present, chosen, say)
    table = Table("Python", "extra", "outcome", title="the wheel outside its checkout")
    for row in rows:
        table.add_row(*row)
    Console(width=100).print(table)
    if absent:
        click.echo(
            f"not on this machine: Python {', '.join(absent)}; install them, or name their "
            'interpreters by path: --pythons "3.11 PATH"',
            err=True,
        )
    sys.exit(status or (ENVIRONMENT_FAILED if absent else 0))


if __name__ == "__main__":
    main()
