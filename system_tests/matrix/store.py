"""The matrix on disk: what the simulator showed, one line a pair, and nothing that can be computed.

Only verdicts are stored, not counts that change with every improvement of a strategy: the page that
is printed from them changes when the truth about an upgrade does.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from system_tests.matrix.evidence import CellEvidence

_MAX_BYTES: Final = 4 << 20
_FIELDS: Final = 4


class StoreError(ValueError):
    """The file is not a stored matrix; the text says how to make one."""


class Verdict(NamedTuple):
    """What is kept of one pair: as expected or not, and what a bounce without a setting broke."""

    old: str
    new: str
    agrees: bool
    unprepared: str


def verdict_of(evidence: CellEvidence) -> Verdict:
    """Return what is worth keeping."""
    unprepared = "" if evidence.unprepared is None else evidence.unprepared.rule
    return Verdict(evidence.old, evidence.new, not evidence.disagreements, unprepared)


def to_text(verdicts: Iterable[Verdict]) -> str:
    """Write verdicts: JSON, sorted, one a line, so that a change reads well in a diff."""
    lines = ",\n".join(json.dumps(verdict) for verdict in sorted(verdicts))
    return f"[\n{lines}\n]\n"


def from_text(text: str) -> dict[tuple[str, str], Verdict]:
    """Read what `to_text` wrote.

    Raises:
        StoreError: it is something else.
    """
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise StoreError(f"a stored matrix is JSON: {error}; {_HELP}") from error
    if not isinstance(rows, list):
        raise StoreError(f"a stored matrix is a list, and this is not; {_HELP}")
    return {(row.old, row.new): row for row in map(_verdict, rows)}


def read(path: Path) -> dict[tuple[str, str], Verdict]:
    """Read a stored matrix.

    Raises:
        StoreError: the file is no stored matrix, or larger than one can be.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise StoreError(f"{path.name} has {size} bytes, a stored matrix {_MAX_BYTES} at most")
    return from_text(path.read_text(encoding="utf-8"))


_HELP: Final = "write one with `rolling-bounce matrix --write FILE`"


def _verdict(row: object) -> Verdict:
    types = (str, str, bool, str)
    if not isinstance(row, list) or len(row) != _FIELDS:
        raise StoreError(f"a row has {_FIELDS} values, not {str(row)[:60]}; {_HELP}")
    if not all(isinstance(value, kind) for value, kind in zip(row, types, strict=True)):
        raise StoreError(f"a row is two releases, a verdict and a rule, not {row}; {_HELP}")
    return Verdict(*row)
