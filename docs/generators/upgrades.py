"""docs/upgrades.md: every pair of releases, from the release table and docs/upgrades.json."""

from pathlib import Path

from system_tests.matrix.markdown import render_page
from system_tests.matrix.store import read

_STORED = Path(__file__).resolve().parents[1] / "upgrades.json"


def render() -> str:
    """Return the whole page."""
    return render_page(read(_STORED))
