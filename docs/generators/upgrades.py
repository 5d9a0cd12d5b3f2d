"""docs/upgrades.md: every pair of releases, and what else changes between releases.

From the release table, from docs/upgrades.json, and from the rows of `system_tests/plan`.
"""

from pathlib import Path

from system_tests.matrix.markdown import render_page
from system_tests.matrix.store import read
from system_tests.plan import CHANGES, NOT_CHECKED, ReleaseChange

_STORED = Path(__file__).resolve().parents[1] / "upgrades.json"
_HEAD = """
## What else changes

`plan` prints a row of this table under "Before you start" if it concerns the path: the group comes
to run a release that has the change, from one that does not. Rows with a value of `--uses` concern
only applications that use the feature; rows with `not` concern all others. On the way back, `plan`
prints what changes back.

| since | until | about | what changes | what to do | `--uses` | source |
| --- | --- | --- | --- | --- | --- | --- |
"""


def render() -> str:
    """Return the whole page."""
    rows = "".join(f"{_row(change)}\n" for change in CHANGES)
    unchecked = "".join(f"- {sentence}\n" for sentence in NOT_CHECKED)
    return f"{render_page(read(_STORED))}{_HEAD}{rows}\nNot checked by any plan:\n\n{unchecked}"


def _row(change: ReleaseChange) -> str:
    cells = (
        change.since,
        change.until,
        change.subject.value,
        change.what,
        change.action,
        ", ".join((*change.uses, *(f"not {use}" for use in change.unless))),
        change.source,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
