"""The stored matrix: the simulator's verdicts, one line per pair.

Only verdicts are stored, no counts: the file changes only if the result of an upgrade changes.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from system_tests.matrix.evidence import CellEvidence

_MAX_BYTES: Final = 4 << 20
_FIELDS: Final = 4


class StoreError(ValueError):
    """A file is not a stored matrix; the message says how to write one."""


class Verdict(NamedTuple):
    """The verdict on a pair.

    Attributes:
        old, new: names of the releases.
        agrees: the simulation confirmed the expectation.
        unprepared: rule that a bounce without a setting broke; "" if none.
    """

    old: str
    new: str
    agrees: bool
    unprepared: str


def verdict_of(evidence: CellEvidence) -> Verdict:
    """Return the verdict of a simulation."""
    unprepared = "" if evidence.unprepared is None else evidence.unprepared.rule
    return Verdict(evidence.old, evidence.new, not evidence.disagreements, unprepared)


def to_text(verdicts: Iterable[Verdict]) -> str:
    """Return verdicts as JSON, sorted, one per line."""
    lines = ",\n".join(json.dumps(verdict) for verdict in sorted(verdicts))
    return f"[\n{lines}\n]\n"


def from_text(text: str) -> dict[tuple[str, str], Verdict]:
    """Read what `to_text` wrote.

    Raises:
        StoreError: the text is not a stored matrix.
    """
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise StoreError(f"a stored matrix is JSON: {error}; {_HELP}") from error
    if not isinstance(rows, list):
        raise StoreError(f"a stored matrix is a list, and this is not; {_HELP}")
    return {(row.old, row.new): row for row in map(_verdict, rows)}


def read_verdicts(path: Path) -> dict[tuple[str, str], Verdict]:
    """Read a stored matrix.

    Raises:
        StoreError: the file is not a stored matrix, or too large for one.
        OSError: the file cannot be read.
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
