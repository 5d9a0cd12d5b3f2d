"""docs/upgrades.md: the whole matrix as a page, from the release table and the stored verdicts."""

from collections.abc import Iterable, Iterator, Sequence

from probing import find_release
from system_tests.matrix.expectation import CellOutcome, Expectation, all_pairs, expect, kinds
from system_tests.matrix.kip268 import kip268_cells
from system_tests.matrix.render import (
    MEANINGS,
    SYMBOLS,
    Verdicts,
    kip_table,
    shown,
    symbol_of,
    way_of,
)

_TOP = """# Upgrades and rollbacks

Printed by `python -m docs.generate` from the release table of `probing/` and from what the
simulator showed (`docs/upgrades.json`, written by `rolling-bounce matrix --write`). Ask for one
pair with `rolling-bounce matrix --from 2.3.1 --to 4.1`, for the steps with `rolling-bounce plan`.

Every cell was simulated: where a way is said to work, bounces with several seeds, sizes and orders
broke no rule; where a setting, a bridge or a stop is said to be needed, a single bounce without it
did break one."""

_KIP = """## KIP-268's test matrix

Cells that the KIP marks (*) "require back porting of KAFKA-6054": first without the backport, then
with it. In the last column, "simulate metadata version 4", first a patch in which KAFKA-8649 is
open, then one with its fix. `-`: no such patch was ever released."""

_BIG = """## Every kind of release with every other

Releases that no group could tell apart share a row. Read from the left to the top: above the
diagonal upgrades, below it rollbacks, on it from the oldest to the newest of the row."""


def render_page(verdicts: Verdicts) -> str:
    """Return the page."""
    parts = [_TOP, _legend(), _KIP, _kip_section(verdicts), _BIG, _grid(verdicts)]
    parts += ["## Ways that are not one bounce", _reasons(verdicts)]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _legend() -> str:
    rows = [(f"`{SYMBOLS[outcome]}`", MEANINGS[outcome]) for outcome in CellOutcome]
    rows += [
        ("`*`", "behind a sign: applications with foreign-key joins or KTable aggregations differ"),
        ("`!`", "behind a sign: the `upgrade.from` that one might set kills or is refused"),
        ("`?`", "behind a sign: the simulation disagrees (never on this page)"),
    ]
    return _table(("sign", "meaning"), rows)


def _kip_section(verdicts: Verdicts) -> str:
    cells = kip268_cells()
    head, *rows = kip_table(cells, verdicts)
    reasons = []
    for cell in cells:
        for variant in cell.variants:
            expected = variant.expected
            if expected is None:
                reasons.append((cell.row, cell.column, variant.name, "-", variant.reason, ""))
                continue
            verdict = verdicts.get((expected.old, expected.new))
            way = f"{expected.old} to {expected.new}: {way_of(expected)}"
            said = shown(expected, verdict)
            reasons.append((cell.row, cell.column, variant.name, way, expected.reason, said))
    columns = ("from", "to", "variant", "outcome", "why", "simulated")
    return f"{_table(head, rows)}\n\n{_table(columns, reasons)}"


def _grid(verdicts: Verdicts) -> str:
    found = kinds()
    head = ("from", "", *(str(number) for number in range(1, len(found) + 1)))
    rows = []
    for number, row in enumerate(found, 1):
        cells = []
        for column in found:
            old, new = (row.releases[0] if row == column else row.name), column.name
            expected = expect(find_release(old), find_release(new))
            cells.append(symbol_of(expected, verdicts.get((old, new))))
        rows.append((row.label, str(number), *cells))
    members = (
        (str(number), kind.name, ", ".join(kind.releases)) for number, kind in enumerate(found, 1)
    )
    listed = _table(("number", "simulated", "releases of this kind"), members)
    return f"{_table(head, rows)}\n\n{listed}"


def _reasons(verdicts: Verdicts) -> str:
    rows = [
        (f"{one.old} to {one.new}", way_of(one), one.reason, _unprepared(one, verdicts))
        for one in _expected()
        if one.outcome not in (CellOutcome.ONE_BOUNCE, CellOutcome.SAME)
    ]
    return _table(("way", "outcome", "why", "one bounce without a setting breaks"), rows)


def _expected() -> Iterator[Expectation]:
    for old, new in all_pairs():
        yield expect(find_release(old), find_release(new))


def _unprepared(one: Expectation, verdicts: Verdicts) -> str:
    verdict = verdicts.get((one.old, one.new))
    return "" if verdict is None else verdict.unprepared
