"""docs/upgrades.md: the matrix as a page, from the release table and the stored verdicts."""

import re
from collections.abc import Iterable, Iterator, Sequence

from probing import RELEASES, find_release
from system_tests.matrix.expectation import CellOutcome, Expectation, all_pairs, expect, kinds
from system_tests.matrix.kip268 import kip268_cells
from system_tests.matrix.render import (
    MEANINGS,
    SYMBOLS,
    Verdicts,
    kinds_sign,
    kip_table,
    shown,
    way_of,
)

_SIGNS = """## The signs

Every cell of the tables below was simulated. If a cell names a working path, bounces with several
seeds, sizes and orders broke no rule. If it demands a setting, a bridge or a stop, a single bounce
without it broke a rule. `rolling-bounce matrix --from 2.3.1 --to 4.1` prints one cell."""

_KIP = """## KIP-268's test matrix

For cells that the KIP marks (*) "require back porting of KAFKA-6054", the first sign is without the
backport, the second with it. In the last column, "simulate metadata version 4", the first sign is
for a patch release with KAFKA-8649, the second for one with its fix. `-`: no such patch was ever
released."""

_BIG = """## All kinds of releases

Releases that behave the same in a group share a row. The row is the old release, the column the new
one: cells above the diagonal are upgrades, cells below it rollbacks, and cells on it lead from the
oldest to the newest release of the row. Each row has a number, and the column with that number is
of the same releases."""


_LONG = """## Paths that need more than one bounce

By the earlier one of the two releases; the other one has the rows of all releases with the same
answer. An upgrade leads from the earlier release to a later one, a rollback back to it. The last
column is the rule that a single bounce without a setting breaks."""


def render_page(verdicts: Verdicts) -> str:
    """Return the sections of the page that the simulation is the source of, as Markdown."""
    parts = [_SIGNS, _legend(), _BIG, _grid(verdicts), _LONG, _reasons(verdicts)]
    parts += [_KIP, _kip_section(verdicts)]
    return "\n\n".join(parts) + "\n"


def first_releases() -> tuple[str, ...]:
    """Return the releases that have a section of paths with more than one bounce, in order."""
    return tuple(_long_paths())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _legend() -> str:
    rows = [(f"`{SYMBOLS[outcome]}`", MEANINGS[outcome]) for outcome in CellOutcome]
    rows += [
        (
            "`*`",
            "for some of them other with foreign-key joins, KTable aggregations or suppress()",
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
        cells = [kinds_sign(row, column, verdicts) for column in found]
        rows.append((row.label, str(number), *cells))
    members = (
        (str(number), kind.name, ", ".join(kind.releases)) for number, kind in enumerate(found, 1)
    )
    listed = _table(("number", "simulated", "releases of this kind"), members)
    return f"{_table(head, rows)}\n\n{listed}"


def _reasons(verdicts: Verdicts) -> str:
    return "\n\n".join(
        f"### {earlier}\n\n{_paths_table(earlier, found, verdicts)}"
        for earlier, found in _long_paths().items()
    )


def _long_paths() -> dict[str, list[Expectation]]:
    """Return the paths that need more than one bounce, by their earlier release."""
    order = {name: at for at, name in enumerate(release.name for release in RELEASES)}
    found: dict[str, list[Expectation]] = {}
    for path in _expected():
        if path.outcome not in (CellOutcome.ONE_BOUNCE, CellOutcome.SAME):
            found.setdefault(min(path.old, path.new, key=order.__getitem__), []).append(path)
    return {name: found[name] for name in sorted(found, key=order.__getitem__)}


def _paths_table(earlier: str, found: Sequence[Expectation], verdicts: Verdicts) -> str:
    """Return the paths of a release: those with the same answer share a row."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for path in found:
        is_upgrade = path.old == earlier
        later = path.new if is_upgrade else path.old
        texts = (way_of(path), path.reason, _unprepared(path, verdicts))
        way, why, broken = (_without_name(text, later) for text in texts)
        rows.setdefault(("upgrade" if is_upgrade else "rollback", way, why, broken), []).append(
            later
        )
    lines = [
        (direction, ", ".join(later), way, why, broken)
        for (direction, way, why, broken), later in rows.items()
    ]
    columns = ("direction", "later release", "outcome", "why", "one bounce breaks")
    return _table(columns, lines)


def _without_name(text: str, later: str) -> str:
    """Return a text in which the later release has no name, as a row is of several."""
    return re.sub(rf"(?<![\d.]){re.escape(later)}(?![\d.]*\d)", "the later release", text)


def _expected() -> Iterator[Expectation]:
    for old, new in all_pairs():
        yield expect(find_release(old), find_release(new))


def _unprepared(expectation: Expectation, verdicts: Verdicts) -> str:
    verdict = verdicts.get((expectation.old, expectation.new))
    return "" if verdict is None else verdict.unprepared
