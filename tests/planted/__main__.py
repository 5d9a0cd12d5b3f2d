"""Plant faults in a copy of the sources, and require that each is noticed.

A fault of tests/planted/*.toml is noticed by a failing test, or by a rule that a simulated run
breaks; sources that cannot be imported prove nothing. What noticed it is written to
tests/planted/results.jsonl, from which docs/planted.md and docs/kips.md are generated. Without
--anew, only new and changed faults run. NAMES are rows of the ledger or parts of names of faults.

Exit status 1: a fault was not noticed, or with --check by other than what is stored; 2: the place
of a fault has moved.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from tests.ledger import WORLDS
from tests.planted.faults import Fault, MovedError, changed_source, read_faults
from tests.planted.results import (
    Result,
    is_as_expected,
    notice,
    noticers,
    read_results,
    write_results,
)
from tests.planted.runs import OTHER, Copy


@click.command(help=__doc__)
@click.option(
    "--world",
    "worlds",
    multiple=True,
    type=click.Choice((*WORLDS, OTHER)),
    help="Only tests of rows of the ledger in this environment, or only all others.",
)
@click.option("--anew", is_flag=True, help="Also run unchanged faults again.")
@click.option("--check", "checks", is_flag=True, help="As --anew, but write nothing.")
@click.option("--list", "lists", is_flag=True, help="List the faults and run none.")
@click.argument("names", nargs=-1)
def main(
    *, worlds: tuple[str, ...], anew: bool, checks: bool, lists: bool, names: tuple[str, ...]
) -> None:
    """Plant the faults of these names; all without names."""
    try:
        wanted = [fault for fault in read_faults() if not names or _is_named(fault, names)]
        for fault in wanted:
            changed_source(fault)
    except MovedError as error:
        click.echo(error, err=True)
        sys.exit(2)
    if lists:
        for fault in wanted:
            click.echo(f"{fault.name}  ({fault.place})")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        wrong = []
        for fault in wanted:
            asked = [
                by for by in noticers(fault) if not worlds or (by if fault.row else OTHER) in worlds
            ]
            wrong += _plant(copy, fault, asked, anew=anew or checks, writes=not checks)
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(bool(wrong))


def _is_named(fault: Fault, names: Collection[str]) -> bool:
    return any(
        name == fault.row if re.fullmatch(r"[0-9]+-[0-9]+", name) else name in fault.name
        for name in names
    )


def _plant(
    copy: Copy, fault: Fault, asked: Sequence[str], *, anew: bool, writes: bool
) -> list[str]:
    """Plant a fault for each of what is asked; return what did not notice it as it must."""
    results = read_results()
    stored = results.get(fault.name)
    known = {} if stored is None or stored.digest != fault.digest else stored.noticed
    noticed = {by: known[by] for by in noticers(fault) if by in known}
    wrong = []
    for by in asked:
        if not anew and by in noticed and is_as_expected(fault, noticed[by]):
            continue
        try:
            found = notice(copy, fault, by)
        except (MovedError, subprocess.TimeoutExpired) as error:
            wrong.append(f"{fault.name} ({by}): {error}")
            continue
        is_good = is_as_expected(fault, found)
        click.echo(f"{by:<5} {'noticed' if found else 'NOTHING':<7} {fault.name}")
        if not is_good:
            wrong.append(f"not noticed as it must be: {fault.name} ({by}): {found or 'nothing'}")
        elif not writes and isinstance(found, list) and found != known.get(by):
            wrong.append(f"{fault.name} ({by}): stored {known.get(by)}, now {found}")
        noticed[by] = found
    if writes:
        results[fault.name] = Result(fault.name, fault.digest, noticed)
        write_results(results)
    return wrong


if __name__ == "__main__":
    main()
