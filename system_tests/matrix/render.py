"""The matrix as text and JSON, and the signs and sentences that its Markdown page shares."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from probing import find_release
from probing.upgrades import formats_between
from system_tests.matrix.expectation import CellOutcome, Expectation, Kind, expect
from system_tests.matrix.kip268 import COLUMNS, ROWS, KipCell
from system_tests.matrix.store import Verdict

Verdicts = Mapping[tuple[str, str], Verdict]

SYMBOLS: Final = {
    CellOutcome.SAME: ".",
    CellOutcome.ONE_BOUNCE: "1",
    CellOutcome.TWO_BOUNCES: "2",
    CellOutcome.BRIDGE: "B",
    CellOutcome.BROKEN: "X",
    CellOutcome.REFUSED: "R",
    CellOutcome.OFFLINE: "O",
}
MEANINGS: Final = {
    CellOutcome.SAME: "same release, nothing to do",
    CellOutcome.ONE_BOUNCE: "one rolling bounce, without upgrade.from",
    CellOutcome.TWO_BOUNCES: "two rolling bounces, the first with upgrade.from",
    CellOutcome.BRIDGE: "bridge needed: upgrade through a release in between",
    CellOutcome.BROKEN: "broken by a known issue: take another release",
    CellOutcome.REFUSED: "the release refuses the upgrade.from that would be needed",
    CellOutcome.OFFLINE: "offline only: stop all members, then start all",
}
_NOT_SIMULATED: Final = "not simulated"


def symbol_of(
    expected: Expectation, verdict: Verdict | None, ends: tuple[Kind, Kind] | None = None
) -> str:
    """Return the sign of a cell; `legend_lines` explains its parts.

    Args:
        expected: its outcome.
        verdict: of the simulator; None: it was not simulated.
        ends: the kinds of both releases, which share the cell; None: the releases alone.
    """
    wrong = "?" if verdict is not None and not verdict.agrees else ""
    olds, news = (end.releases for end in ends) if ends else ([expected.old], [expected.new])
    is_crossed = any(
        formats_between(find_release(old), find_release(new)) for old in olds for new in news
    )
    formats = "*" if is_crossed and expected.outcome is CellOutcome.ONE_BOUNCE else ""
    fatal = "!" if expected.fatal_setting and expected.path.possible else ""
    return SYMBOLS[expected.outcome] + formats + fatal + wrong


def shown(expected: Expectation, verdict: Verdict | None) -> str:
    """Return the simulator's verdict on a cell, in words."""
    if verdict is None:
        return _NOT_SIMULATED
    if not verdict.agrees:
        return "the simulation disagrees"
    if verdict.unprepared:
        return f"as expected; one bounce without a setting breaks '{verdict.unprepared}'"
    if expected.outcome is CellOutcome.SAME:
        return "nothing to simulate"
    return "as expected"


def way_of(expected: Expectation) -> str:
    """Return the path of a pair in a few words."""
    if expected.outcome is CellOutcome.TWO_BOUNCES:
        return f"two bounces, upgrade.from={expected.upgrade_from} in the first"
    if expected.outcome is CellOutcome.BROKEN:
        detour = f"; go through {', '.join(expected.route)}" if expected.route else ""
        return f"broken: {expected.issue}{detour}"
    if expected.route:
        return f"{expected.outcome}: through {', '.join(expected.route)}"
    return expected.outcome.value


def grid_lines(rows: Sequence[Kind], columns: Sequence[Kind], verdicts: Verdicts) -> list[str]:
    """Return the table of kinds as text: a row for each old kind, a column for each new one."""
    wide = max(len(kind.label) for kind in rows)
    heads = [f"{number:>3}" for number in range(1, len(columns) + 1)]
    lines = [f"{'from / to':<{wide + 4}}{''.join(heads)}"]
    numbers = {kind: number for number, kind in enumerate(columns, 1)}
    for row in rows:
        signs = [f"{kinds_sign(row, column, verdicts):>3}" for column in columns]
        lines.append(f"{numbers.get(row, ''):>2}  {row.label:<{wide}}{''.join(signs)}")
    return lines


def kinds_sign(row: Kind, column: Kind, verdicts: Verdicts) -> str:
    """Return the sign of a pair of kinds; within a kind, from its oldest release to its newest."""
    old, new = (row.releases[0] if row == column else row.name), column.name
    expected = expect(find_release(old), find_release(new))
    return symbol_of(expected, verdicts.get((old, new)), (row, column))


def legend_lines() -> list[str]:
    """Return one line per sign with its meaning."""
    lines = [f"{SYMBOLS[outcome]}  {MEANINGS[outcome]}" for outcome in CellOutcome]
    return [
        *lines,
        "*  some of them: KTable aggregations two bounces; foreign-key joins, suppress() offline",
        "!  the upgrade.from of the old release crashes or is refused at start: leave it out",
        "?  the simulation disagrees with the release table",
    ]


def pair_lines(expected: Expectation, verdict: Verdict | None) -> list[str]:
    """Return one pair as text: outcome, reason, verdict of the simulator, notes."""
    fatal = [f"  setting: {expected.fatal_setting}"] if expected.fatal_setting else []
    return [
        f"{expected.old} -> {expected.new}: {way_of(expected)}",
        f"  why: {expected.reason}",
        f"  simulated: {shown(expected, verdict)}",
        *fatal,
        *(f"  note: {note}" for note in expected.path.notes),
    ]


def pair_document(expected: Expectation, verdict: Verdict | None) -> dict[str, object]:
    """Return one pair as JSON types with stable keys."""
    return {
        "from": expected.old,
        "to": expected.new,
        "direction": expected.direction.value,
        "outcome": expected.outcome.value,
        "upgrade_from": expected.upgrade_from,
        "bounces": len(expected.path.bounces),
        "bridges": list(expected.path.bridges),
        "route": list(expected.route),
        "issue": expected.issue or None,
        "fatal_setting": expected.fatal_setting or None,
        "reason": expected.reason,
        "notes": list(expected.path.notes),
        "simulated": None if verdict is None else verdict.agrees,
        "without_a_setting": None if verdict is None else verdict.unprepared or None,
    }


def kip_document(cells: Iterable[KipCell], verdicts: Verdicts) -> list[dict[str, object]]:
    """Return KIP-268's table as JSON types."""
    return [
        {
            "row": cell.row,
            "column": cell.column,
            "starred": cell.starred,
            "variants": [
                {"variant": variant.name, "reason": variant.reason}
                | (
                    {"outcome": "never released"}
                    if variant.expected is None
                    else pair_document(
                        variant.expected,
                        verdicts.get((variant.expected.old, variant.expected.new)),
                    )
                )
                for variant in cell.variants
            ],
        }
        for cell in cells
    ]


def kip_sign(cell: KipCell, verdicts: Verdicts) -> str:
    """Return one cell of KIP-268's table: a sign for each variant, with (*) as in the KIP."""
    signs = [
        "-"
        if variant.expected is None
        else symbol_of(variant.expected, verdicts.get((variant.expected.old, variant.expected.new)))
        for variant in cell.variants
    ]
    return " / ".join(signs) + (" (*)" if cell.starred and signs else "")


def kip_table(cells: Sequence[KipCell], verdicts: Verdicts) -> list[list[str]]:
    """Return KIP-268's table as rows of text, the head first."""
    by_place = {(cell.row, cell.column): cell for cell in cells}
    head = ["from", *(column for column, _ in COLUMNS)]
    return [
        head,
        *(
            [row, *(kip_sign(by_place[row, column], verdicts) for column, _ in COLUMNS)]
            for row, _ in ROWS
        ),
    ]


def kip_lines(cells: Sequence[KipCell], verdicts: Verdicts) -> list[str]:
    """Return KIP-268's table as text, then each cell with its reason."""
    rows = kip_table(cells, verdicts)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += ["", "(*) two signs: without / with the backport of KAFKA-6054;"]
    lines += ["post-2.0.x: without / with the fix of KAFKA-8649; -: no such patch was released", ""]
    for cell in cells:
        for variant in cell.variants:
            name = f" ({variant.name})" if variant.name else ""
            lines.append(f"{cell.row} to {cell.column}{name}")
            if variant.expected is None:
                lines.append(f"  - {variant.reason}")
                continue
            key = (variant.expected.old, variant.expected.new)
            lines += [f"  {line}" for line in pair_lines(variant.expected, verdicts.get(key))]
    return lines
