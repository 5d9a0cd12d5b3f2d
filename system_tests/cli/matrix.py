"""``rolling-bounce matrix``: upgrade paths between all releases, each checked by simulation."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from assignor.cli import Command, format_option, release_option, say, workers_option
from probing import ReleaseError, find_release
from system_tests.cli.options import EXIT_BAD, EXIT_ENVIRONMENT, refuse
from system_tests.cli.progress import counted
from system_tests.matrix import (
    Kind,
    KipCell,
    StoreError,
    Verdict,
    all_pairs,
    expect,
    gather_many,
    gather_topologies,
    grid_lines,
    kinds,
    kip268_cells,
    kip268_pairs,
    kip_document,
    kip_lines,
    legend_lines,
    pair_document,
    pair_lines,
    pairs_between,
    read_verdicts,
    render_page,
    to_text,
    topology_cells,
    topology_document,
    topology_lines,
    verdict_of,
)
from system_tests.topology_changes import ChangeKind

_NOTES = """
Every cell is simulated: the path of the cell must not break a rule; if the cell requires a setting
or a stop, a bounce without it must break one.
"""
_EXAMPLES = """
PROGRAM matrix  # all kinds of releases
PROGRAM matrix --kip268  # KIP-268's table, with reasons
PROGRAM matrix --kip268 --no-backport  # (*) cells, no backport
PROGRAM matrix --from 2.3.1 --to 4.4  # one pair
PROGRAM matrix --from 2.0.1  # one release to every kind
PROGRAM matrix --topology all  # changes of an application
"""
_EXITS = {
    0: "the simulation agrees with every cell",
    1: "the simulation disagrees with a cell",
    3: "a file cannot be written",
}


@click.command(
    "matrix",
    cls=Command,
    short_help="Show how a group gets from any release to any other, and why.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@click.option("--kip268", is_flag=True, help="Only the table of KIP-268 (7 x 7).")
@click.option(
    "--backport/--no-backport",
    default=None,
    help="With --kip268: (*) cells only with, or only without, the backport of KAFKA-6054.",
)
@release_option("--from", "old", "Release that the group runs; every kind by default.")
@release_option("--to", "new", "Release that the group is brought to; every kind by default.")
@click.option(
    "--topology",
    type=click.Choice([*map(str, sorted(ChangeKind)), "all"]),
    help="Only changes of this kind of the topology of a native group, instead of releases.",
)
@format_option("markdown")
@workers_option
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the verdicts of the whole matrix as JSON, one pair of releases per line.",
)
@click.option(
    "--missing",
    is_flag=True,
    help="With --write: keep FILE's verdicts, and simulate only the pairs that it lacks.",
)
def matrix(**given: Any) -> None:
    """Show for every pair of releases how a group gets from one to the other, and why.

    The release table states what to expect, the simulator checks it; a rollback is a pair like any
    other. RELEASE is x.y for its newest patch, x.y.z, or native.
    """
    if given["topology"] is not None:
        _show_topologies(given)
    if given["kip268"] and (given["old"] or given["new"]):
        refuse("--kip268 is a separate table; leave --from and --to out, or leave it out")
    if given["backport"] is not None and not given["kip268"]:
        refuse("--backport and --no-backport apply to --kip268 only; add --kip268")
    partial = given["kip268"] or given["old"] or given["new"]
    if partial and (given["write"] or given["form"] == "markdown"):
        refuse(
            "--write and --format markdown need the whole matrix; leave --from, --to, --kip268 out"
        )
    if given["missing"] and not given["write"]:
        refuse("--missing completes a file of verdicts; name it with --write FILE")
    try:
        rows, columns = _axes(given)
    except ReleaseError as error:
        refuse(str(error))
    cells = kip268_cells(backport=given["backport"]) if given["kip268"] or not partial else ()
    pairs = _pairs(rows, columns, cells, whole=not partial)
    verdicts, disagreements = _simulate(pairs, given)
    if given["write"]:
        _write(given["write"], verdicts)
    click.echo(_render(given["form"], rows, columns, cells, verdicts), nl=False)
    for disagreement in disagreements:
        say("rolling-bounce", disagreement)
    sys.exit(0 if all(verdict.agrees for verdict in verdicts.values()) else EXIT_BAD)


def _write(path: Path, verdicts: dict[tuple[str, str], Verdict]) -> None:
    try:
        path.write_text(to_text(verdicts.values()), encoding="utf-8")
    except OSError as error:
        refuse(f"{error}; choose another file", EXIT_ENVIRONMENT)


def _show_topologies(given: dict[str, Any]) -> NoReturn:
    """Simulate changes of the topology, print the table, and end with its status."""
    foreign = [name for name in ("kip268", "old", "new", "write", "missing") if given[name]]
    if foreign or given["backport"] is not None or given["form"] == "markdown":
        refuse(
            "--topology is a table of its own, as text or JSON; leave the options of releases,"
            " --write and --format markdown out"
        )
    kinds_shown = ChangeKind if given["topology"] == "all" else (ChangeKind(given["topology"]),)
    cells = topology_cells(tuple(kinds_shown))
    places = {cell: place for place, cell in enumerate(cells)}
    with counted("cells", len(cells)) as add:
        found = []
        for evidence in gather_topologies(cells, workers=given["workers"]):
            found.append(evidence)
            add(1)
    found.sort(key=lambda evidence: places[evidence.cell])
    if given["form"] == "json":
        click.echo(json.dumps(topology_document(found), indent=2))
    else:
        click.echo("\n".join(topology_lines(found)))
    broken = [sentence for evidence in found for sentence in evidence.broken]
    for sentence in broken:
        say("rolling-bounce", sentence)
    sys.exit(EXIT_BAD if broken else 0)


def _axes(given: dict[str, Any]) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
    """Return rows and columns of the table of kinds; empty with --kip268."""
    if given["kip268"]:
        return (), ()

    def axis(name: str | None) -> tuple[Kind, ...]:
        return kinds() if name is None else (Kind(releases=(find_release(name).name,)),)

    return axis(given["old"]), axis(given["new"])


def _pairs(
    rows: tuple[Kind, ...], columns: tuple[Kind, ...], cells: tuple[KipCell, ...], *, whole: bool
) -> tuple[tuple[str, str], ...]:
    if whole:
        return tuple(dict.fromkeys((*all_pairs(), *kip268_pairs())))
    shown = (
        (variant.expected.old, variant.expected.new)
        for cell in cells
        for variant in cell.variants
        if variant.expected is not None
    )
    between = pairs_between((kind.name for kind in rows), (kind.name for kind in columns))
    return tuple(dict.fromkeys((*shown, *between)))


def _simulate(
    pairs: tuple[tuple[str, str], ...], given: dict[str, Any]
) -> tuple[dict[tuple[str, str], Verdict], list[str]]:
    """Simulate the pairs, with their progress; return verdicts and disagreements.

    With --missing, pairs that the file has are taken from it, and what an interrupted run has
    simulated is written to it.
    """
    verdicts: dict[tuple[str, str], Verdict] = {}
    if given["missing"] and given["write"].exists():
        try:
            verdicts = {
                pair: row for pair, row in read_verdicts(given["write"]).items() if pair in pairs
            }
        except (StoreError, OSError) as error:
            refuse(f"{given['write']}: {error}")
    disagreements: list[str] = []
    todo = tuple(pair for pair in pairs if pair not in verdicts)
    try:
        with counted("pairs", len(todo)) as add:
            for evidence in gather_many(todo, workers=given["workers"]):
                verdicts[evidence.old, evidence.new] = verdict_of(evidence)
                disagreements += evidence.disagreements
                add(1)
    finally:
        if given["missing"]:
            _write(given["write"], verdicts)
    return verdicts, sorted(disagreements)


def _render(
    form: str,
    rows: tuple[Kind, ...],
    columns: tuple[Kind, ...],
    cells: tuple[KipCell, ...],
    verdicts: dict[tuple[str, str], Verdict],
) -> str:
    if form == "markdown":
        return render_page(verdicts)
    if form == "json":
        return json.dumps(_document(rows, columns, cells, verdicts), indent=2) + "\n"
    lines = kip_lines(cells, verdicts) if cells else []
    if len(rows) > 1 and len(columns) > 1:
        lines += ["", *grid_lines(rows, columns, verdicts), ""]
        lines += legend_lines()
    else:
        for row in rows:
            for column in columns:
                expected = expect(find_release(row.name), find_release(column.name))
                key = (expected.old, expected.new)
                lines += pair_lines(expected, verdicts.get(key))
    return "\n".join(lines) + "\n"


def _document(
    rows: tuple[Kind, ...],
    columns: tuple[Kind, ...],
    cells: tuple[KipCell, ...],
    verdicts: dict[tuple[str, str], Verdict],
) -> dict[str, object]:
    pairs = _pairs(rows, columns, (), whole=False)
    return {
        "kip268": kip_document(cells, verdicts),
        "kinds": [list(kind.releases) for kind in dict.fromkeys((*rows, *columns))],
        "pairs": [
            pair_document(expect(find_release(old), find_release(new)), verdicts.get((old, new)))
            for old, new in pairs
        ],
    }
