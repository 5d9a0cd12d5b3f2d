"""The matrix as one self-contained HTML page: two tables, each cell with its reason as a title."""

from collections.abc import Sequence
from html import escape
from typing import Final

from probing import find_release
from system_tests.matrix import CellOutcome, Expectation, Kind, expect
from system_tests.matrix_kip268 import COLUMNS, ROWS, KipCell
from system_tests.matrix_render import MEANINGS, SYMBOLS, Verdicts, shown, symbol_of, way_of

# Told apart without colour too: every cell has its sign.
COLOURS: Final = {
    CellOutcome.SAME: "#eceff1",
    CellOutcome.ONE_BOUNCE: "#a5d6a7",
    CellOutcome.TWO_BOUNCES: "#fff59d",
    CellOutcome.BRIDGE: "#ffcc80",
    CellOutcome.BROKEN: "#ef9a9a",
    CellOutcome.REFUSED: "#ce93d8",
    CellOutcome.OFFLINE: "#b0bec5",
}
_STYLE: Final = """
body{font:14px/1.5 system-ui,sans-serif;margin:2rem;color:#1c2429;background:#fff}
table{border-collapse:collapse;margin:1rem 0 2rem}
th,td{border:1px solid #cfd8dc;padding:.25rem .5rem;text-align:center;font-weight:normal}
th{background:#f5f7f8}th.row{text-align:left;white-space:nowrap}
td{font-family:ui-monospace,monospace;cursor:help}td:hover{outline:2px solid #1c2429}
span.sign{display:inline-block;min-width:1.6rem;padding:0 .3rem;margin-right:.5rem;
text-align:center;font-family:ui-monospace,monospace}
"""


def page(
    rows: Sequence[Kind],
    columns: Sequence[Kind],
    kip_cells: Sequence[KipCell],
    verdicts: Verdicts,
) -> str:
    """Return the page; a table without rows is left out."""
    parts = ["<h1>Upgrades and rollbacks of Kafka Streams groups</h1>", _legend()]
    if kip_cells:
        parts += ["<h2>KIP-268's test matrix</h2>", _kip_table(kip_cells, verdicts)]
    if rows:
        parts += ["<h2>Every kind of release with every other</h2>"]
        parts += [_big_table(rows, columns, verdicts)]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<link rel="icon" href="data:,"><title>Upgrade matrix</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _legend() -> str:
    items = "<br>".join(
        f'<span class="sign" style="background:{COLOURS[outcome]}">{SYMBOLS[outcome]}</span>'
        f"{escape(MEANINGS[outcome])}"
        for outcome in CellOutcome
    )
    more = (
        "Behind a sign: * two bounces for foreign-key joins or KTable aggregations,"
        " ! the setting that one might make is fatal or refused, ? the simulation disagrees."
        " Hold the pointer over a cell for its reason."
    )
    return f"<p>{items}</p><p>{escape(more)}</p>"


def _cell(expected: Expectation, verdicts: Verdicts) -> tuple[str, str]:
    """Return sign and text under the pointer."""
    verdict = verdicts.get((expected.old, expected.new))
    lines = [
        f"{expected.old} to {expected.new}: {way_of(expected)}",
        expected.reason,
        f"Simulated: {shown(expected, verdict)}.",
        *([expected.fatal_setting] if expected.fatal_setting else []),
        *expected.path.notes,
    ]
    return symbol_of(expected, verdict), "\n".join(lines)


def _td(outcome: CellOutcome | None, sign: str, title: str) -> str:
    colour = COLOURS[outcome] if outcome else "#fff"
    return f'<td style="background:{colour}" title="{escape(title)}">{escape(sign)}</td>'


def _big_table(rows: Sequence[Kind], columns: Sequence[Kind], verdicts: Verdicts) -> str:
    head = "".join(f'<th title="{escape(kind.label)}">{escape(kind.name)}</th>' for kind in columns)
    lines = [f"<table><tr><th>from / to</th>{head}</tr>"]
    for row in rows:
        cells = []
        for column in columns:
            old = row.releases[0] if row == column else row.name
            expected = expect(find_release(old), find_release(column.name))
            cells.append(_td(expected.outcome, *_cell(expected, verdicts)))
        lines.append(f'<tr><th class="row">{escape(row.label)}</th>{"".join(cells)}</tr>')
    return "\n".join([*lines, "</table>"])


def _kip_table(cells: Sequence[KipCell], verdicts: Verdicts) -> str:
    by_place = {(cell.row, cell.column): cell for cell in cells}
    widths = {
        column: max(len(c.variants) for c in cells if c.column == column) for column, _ in COLUMNS
    }
    head = "".join(f'<th colspan="{widths[name]}">{name}</th>' for name, _ in COLUMNS)
    lines = [f"<table><tr><th>from / to</th>{head}</tr>"]
    for row, _ in ROWS:
        made = []
        for column, _ in COLUMNS:
            cell = by_place[row, column]
            for variant in cell.variants:
                if variant.expected is None:
                    made.append(_td(None, "-", variant.reason))
                    continue
                sign, title = _cell(variant.expected, verdicts)
                title = f"{variant.name}\n{title}" if variant.name else title
                made.append(_td(variant.expected.outcome, sign, title))
            if not cell.variants:
                made.append(f'<td colspan="{widths[column]}"></td>')
        lines.append(f'<tr><th class="row">{row}</th>{"".join(made)}</tr>')
    return "\n".join([*lines, "</table>"])
