"""KIP-268's own test matrix, seven by seven, each cell against patches that were really released.

The KIP marks cells with (*) that "require back porting of KAFKA-6054 to older branches". Such a
cell has two patches here: one with the backport and one without. Of 0.10.1 no patch ever had it.
The last column, "post-2.0.x (simulate metadata version 4)", is 2.1 to 2.3 as they came, which write
4: with the fix of KAFKA-8649 and without.
"""

from dataclasses import dataclass
from typing import Final

from probing import find_release
from system_tests.matrix.expectation import Expectation, expect

WITH_BACKPORT: Final = "with KAFKA-6054"
WITHOUT_BACKPORT: Final = "without KAFKA-6054"
WITH_FIX: Final = "with the fix of KAFKA-8649"
WITHOUT_FIX: Final = "without the fix of KAFKA-8649"
RELEASED: Final = ""

ROWS: Final = (
    ("0.10.0.x", "0.10.0.1"),
    ("0.10.1.x", "0.10.1.1"),
    ("0.10.2.x", "0.10.2.1"),
    ("0.11.0.x", "0.11.0.2"),
    ("1.0.x", "1.0.1"),
    ("1.1.x", "1.1.0"),
    ("2.0.x", "2.0.1"),
)
"""The KIP's rows, each with the newest patch that knows nothing of the KIP."""

COLUMNS: Final = (
    ("0.10.1.x", ((WITHOUT_BACKPORT, "0.10.1.1"), (WITH_BACKPORT, None))),
    ("0.10.2.x", ((WITHOUT_BACKPORT, "0.10.2.1"), (WITH_BACKPORT, "0.10.2.2"))),
    ("0.11.0.x", ((WITHOUT_BACKPORT, "0.11.0.2"), (WITH_BACKPORT, "0.11.0.3"))),
    ("1.0.x", ((WITHOUT_BACKPORT, "1.0.1"), (WITH_BACKPORT, "1.0.2"))),
    ("1.1.x", ((WITHOUT_BACKPORT, "1.1.0"), (WITH_BACKPORT, "1.1.1"))),
    ("2.0.x", ((RELEASED, "2.0.1"),)),
    ("post-2.0.x", ((WITHOUT_FIX, "2.3.0"), (WITH_FIX, "2.3.1"))),
)
"""The KIP's columns, each with the patches that stand for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KipVariant:
    """One cell with one patch.

    Attributes:
        name: with or without which fix, "" where there is no choice.
        expected: what the release table says; None where no such patch was ever released.
        reason: one sentence.
    """

    name: str
    expected: Expectation | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KipCell:
    """One cell of the KIP's table.

    Attributes:
        row, column: as the KIP writes them.
        starred: marked (*) there.
        variants: one a patch; none where the KIP leaves the cell empty, since it leads backwards.
    """

    row: str
    column: str
    starred: bool
    variants: tuple[KipVariant, ...]


def kip268_cells(*, backport: bool | None = None) -> tuple[KipCell, ...]:
    """Return all 49 cells, row by row.

    Args:
        backport: only patches with the backport of KAFKA-6054 (True) or without it (False); both
            by default. Cells without a (*) do not depend on it.
    """
    hidden = {True: WITHOUT_BACKPORT, False: WITH_BACKPORT, None: None}[backport]
    return tuple(
        KipCell(
            row=row,
            column=column,
            starred=_leads_on(number, at) and variants[0][0] == WITHOUT_BACKPORT,
            variants=tuple(
                _variant(name, old, new, column) for name, new in variants if name != hidden
            )
            if _leads_on(number, at)
            else (),
        )
        for number, (row, old) in enumerate(ROWS)
        for at, (column, variants) in enumerate(COLUMNS)
    )


def kip268_pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of releases that the table stands on, each once, in its order."""
    return tuple(
        dict.fromkeys(
            (variant.expected.old, variant.expected.new)
            for cell in kip268_cells()
            for variant in cell.variants
            if variant.expected is not None
        )
    )


def _leads_on(row: int, column: int) -> bool:
    """Tell whether a column is later than a row: columns begin one release after the rows."""
    return column >= row


def _variant(name: str, old: str, new: str | None, column: str) -> KipVariant:
    if new is None:
        reason = f"no patch of {column} ever had the backport; take 0.10.2.2 or later"
        return KipVariant(name=name, expected=None, reason=reason)
    expected = expect(find_release(old), find_release(new))
    return KipVariant(name=name, expected=expected, reason=expected.reason)
