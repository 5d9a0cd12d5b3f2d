"""KIP-268's test matrix, 7 x 7 cells, with released patches.

The KIP marks cells with (*) that "require back porting of KAFKA-6054 to older branches". Such a
cell has two patches here: one with the backport and one without. No patch of 0.10.1 has it. The
last column, "post-2.0.x (simulate metadata version 4)", has two releases of 2.3, which write
version 4: one with the fix of KAFKA-8649 and one without.
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
"""The KIP's rows, each with the newest patch from before the KIP."""

COLUMNS: Final = (
    ("0.10.1.x", ((WITHOUT_BACKPORT, "0.10.1.1"), (WITH_BACKPORT, None))),
    ("0.10.2.x", ((WITHOUT_BACKPORT, "0.10.2.1"), (WITH_BACKPORT, "0.10.2.2"))),
    ("0.11.0.x", ((WITHOUT_BACKPORT, "0.11.0.2"), (WITH_BACKPORT, "0.11.0.3"))),
    ("1.0.x", ((WITHOUT_BACKPORT, "1.0.1"), (WITH_BACKPORT, "1.0.2"))),
    ("1.1.x", ((WITHOUT_BACKPORT, "1.1.0"), (WITH_BACKPORT, "1.1.1"))),
    ("2.0.x", ((RELEASED, "2.0.1"),)),
    ("post-2.0.x", ((WITHOUT_FIX, "2.3.0"), (WITH_FIX, "2.3.1"))),
)
"""The KIP's columns, each with the patches that are simulated for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KipVariant:
    """One cell with one patch.

    Attributes:
        name: with or without which fix; "" for a single patch.
        expected: expectation of the release table; None if no such patch was released.
        reason: the reason of the outcome, one sentence.
    """

    name: str
    expected: Expectation | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KipCell:
    """One cell of the KIP's table.

    Attributes:
        row, column: names in the KIP.
        starred: the KIP marks the cell with (*).
        variants: one per patch; empty if the KIP leaves the cell empty, since it is a rollback.
    """

    row: str
    column: str
    starred: bool
    variants: tuple[KipVariant, ...]


def kip268_cells(*, backport: bool | None = None) -> tuple[KipCell, ...]:
    """Return all 49 cells, row by row.

    Args:
        backport: only patches with the backport of KAFKA-6054 (True) or without it (False);
            default: both. It has no effect on cells without a (*).
    """
    hidden = {True: WITHOUT_BACKPORT, False: WITH_BACKPORT, None: None}[backport]
    return tuple(
        KipCell(
            row=row,
            column=column,
            starred=_is_upgrade(number, at) and variants[0][0] == WITHOUT_BACKPORT,
            variants=tuple(
                _variant(name, old, new, column) for name, new in variants if name != hidden
            )
            if _is_upgrade(number, at)
            else (),
        )
        for number, (row, old) in enumerate(ROWS)
        for at, (column, variants) in enumerate(COLUMNS)
    )


def kip268_pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of releases in the table, each once, in its order."""
    return tuple(
        dict.fromkeys(
            (variant.expected.old, variant.expected.new)
            for cell in kip268_cells()
            for variant in cell.variants
            if variant.expected is not None
        )
    )


def _is_upgrade(row: int, column: int) -> bool:
    """Whether a column is later than a row; columns begin one release after the rows."""
    return column >= row


def _variant(name: str, old: str, new: str | None, column: str) -> KipVariant:
    if new is None:
        reason = f"no patch of {column} has the backport; take 0.10.2.2 or later"
        return KipVariant(name=name, expected=None, reason=reason)
    expected = expect(find_release(old), find_release(new))
    return KipVariant(name=name, expected=expected, reason=expected.reason)
