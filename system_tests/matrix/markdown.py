"""docs/upgrades.md: the matrix as a page, from the release table and the stored verdicts."""

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

To see how to get from one release to another:

<!-- not run: docs/start-upgrade.md runs a plan -->
```sh
rolling-bounce plan --from 2.3.1 --to 4.1
rolling-bounce matrix --from 2.3.1 --to 4.1
```

`plan` prints the steps, `matrix` one cell of this page. Every cell was simulated. If a cell names a
working path, bounces with several seeds, sizes and orders broke no rule. If it demands a setting, a
bridge or a stop, a single bounce without it broke a rule.

`python -m docs.generate` writes this page from the release table of `probing/` and from the
simulation (`docs/upgrades.json`, written by `rolling-bounce matrix --write`)."""

_KIP = """## KIP-268's test matrix

For cells that the KIP marks (*) "require back porting of KAFKA-6054", the first sign is without the
backport, the second with it. In the last column, "simulate metadata version 4", the first sign is
for a patch release with KAFKA-8649, the second for one with its fix. `-`: no such patch was ever
released."""

_BIG = """## All kinds of releases

Releases that behave the same in a group share a row. The row is the old release, the column the new
one: cells above the diagonal are upgrades, cells below it rollbacks, and cells on it lead from the
oldest to the newest release of the row."""


def render_page(verdicts: Verdicts) -> str:
    """Return the page as Markdown."""
    parts = [_TOP, _legend(), _KIP, _kip_section(verdicts), _BIG, _grid(verdicts)]
    parts += ["## Upgrades that need more than one bounce", _reasons(verdicts)]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _legend() -> str:
    rows = [(f"`{SYMBOLS[outcome]}`", MEANINGS[outcome]) for outcome in CellOutcome]
    rows += [
        (
            "`*`",
            "after a sign: differs for applications with foreign-key joins or KTable aggregations",
        ),
        ("`!`", "after a sign: the obvious `upgrade.from` kills the member or is refused"),
        ("`?`", "after a sign: the simulation disagrees (never on this page)"),
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
            text = shown(expected, verdict)
            reasons.append((cell.row, cell.column, variant.name, way, expected.reason, text))
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
        (
            f"{expectation.old} to {expectation.new}",
            way_of(expectation),
            expectation.reason,
            _unprepared(expectation, verdicts),
        )
        for expectation in _expected()
        if expectation.outcome not in (CellOutcome.ONE_BOUNCE, CellOutcome.SAME)
    ]
    return _table(("pair", "outcome", "why", "one bounce without a setting breaks"), rows)


def _expected() -> Iterator[Expectation]:
    for old, new in all_pairs():
        yield expect(find_release(old), find_release(new))


def _unprepared(expectation: Expectation, verdicts: Verdicts) -> str:
    verdict = verdicts.get((expectation.old, expectation.new))
    return "" if verdict is None else verdict.unprepared
