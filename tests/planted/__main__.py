"""Plant faults in a copy of the sources, and require that each is noticed.

A fault of tests/planted/*.toml is noticed by a failing test, or by a rule that a simulated run
breaks; sources that cannot be imported prove nothing. What noticed it is written to
tests/planted/results.jsonl, from which docs/planted.md and docs/kips.md are generated (`python -m
docs.generate`). NAMES are rows of the ledger or parts of names of faults; without NAMES and --anew,
only new and changed faults run.

Exit status 1: a fault was not noticed, or with --check by other than what is stored; 2: no fault
has this name, or a file of faults is wrong or out of date.
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
    except (MovedError, ValueError) as error:
        click.echo(error, err=True)
        sys.exit(2)
    if unknown := [n for n in names if not any(_is_named(fault, [n]) for fault in wanted)]:
        raise click.UsageError(f"no fault is named {unknown[0]!r}; --list prints the names")
    if lists:
        for fault in wanted:
            click.echo(f"{fault.name}  ({fault.place})")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        wrong, current = [], 0
        for fault in wanted:
            known = {} if names or anew or checks else _known(fault)
            asked = [by for by in _noticers_in(fault, worlds) if by not in known]
            current += not asked
            wrong += _plant(copy, fault, asked, writes=not checks)
    if current:
        click.echo(f"{current} faults are current, or of another --world: not run; see --anew")
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(bool(wrong))


def _is_named(fault: Fault, names: Collection[str]) -> bool:
    return any(
        name == fault.row if re.fullmatch(r"[0-9]+-[0-9]+", name) else name in fault.name
        for name in names
    )


def _noticers_in(fault: Fault, worlds: Collection[str]) -> list[str]:
    """Return what must notice a fault, of some environments only unless there are none."""
    return [by for by in noticers(fault) if not worlds or (by if fault.row else OTHER) in worlds]


def _known(fault: Fault) -> dict[str, str | list[str]]:
    """Return the stored results of a fault in its present form."""
    stored = read_results().get(fault.name)
    if stored is None or stored.digest != fault.digest:
        return {}
    return {by: stored.noticed[by] for by in noticers(fault) if by in stored.noticed}


def _plant(copy: Copy, fault: Fault, asked: Sequence[str], *, writes: bool) -> list[str]:
    """Plant a fault for each of what is asked; return what did not notice it as it must."""
    known = _known(fault)
    noticed = {by: found for by, found in known.items() if by not in asked}
    wrong = []
    for by in asked:
        try:
            found = notice(copy, fault, by)
        except (MovedError, subprocess.TimeoutExpired) as error:
            wrong.append(f"{fault.name} ({by}): {error}")
            continue
        click.echo(f"{by:<5} {'noticed' if found else 'NOTHING':<7} {fault.name}")
        if not is_as_expected(fault, found):
            wrong.append(f"not noticed as it must be: {fault.name} ({by}): {found or 'nothing'}")
            if fault.rule and not found:
                wrong.append("  if another row gives the same result, say so in `reason`")
            continue
        if not writes and found != known.get(by):
            wrong.append(f"{fault.name} ({by}): stored {known.get(by)}, now {found}")
        noticed[by] = found
    if writes and asked:
        in_order = {by: noticed[by] for by in noticers(fault) if by in noticed}
        write_results({**read_results(), fault.name: Result(fault.name, fault.digest, in_order)})
    return wrong


if __name__ == "__main__":
    main()
