"""Runs claims one after the other, prints a line for each, and stores what was seen."""

import json
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from system_tests.support.claims.application import Application, MemberEnded, WrongResults
from system_tests.support.claims.experiments import EXPERIMENTS
from system_tests.support.claims.model import CLAIMS, Claim, Outcome, Run
from system_tests.support.member import NotInTime

STORED: Final = Path(__file__).parents[3] / "probing" / "releases" / "experiments.toml"
"""What was seen; the evidence of a plan reads it."""

_HEAD: Final = """\
# What members of published releases did, as `make rehearse-claims` saw it, which writes this file.
# The claims are in system_tests/support/claims/claims.toml.
"""

OpenApplication = Callable[[Claim, Path], AbstractContextManager[Application]]
Row = dict[str, Any]


def rehearse(
    claims: Iterable[Claim],
    open_application: OpenApplication,
    write: Callable[[str], object],
    *,
    store: Path | None = STORED,
) -> bool:
    """Run each claim with each of its pairs of releases; return whether all of them hold.

    Args:
        claims: to run.
        open_application: a claim and a folder -> the application that the experiment changes.
        write: gets a line for each pair of releases.
        store: the file that keeps what was seen, after each pair; None keeps nothing.
    """
    all_hold = True
    for claim in claims:
        for run in claim.runs:
            seen = _outcome(claim, run, open_application)
            is_as_expected = claim.holds(run, seen)
            all_hold &= is_as_expected
            verdict = "ok" if is_as_expected else "differs"
            write(
                f"{verdict:<8}{claim.name}, {run}: expected: {claim.expected(run)}; seen: {seen}\n"
            )
            if store is not None:
                _store(store, claim, run, seen)
    return all_hold


def _outcome(claim: Claim, run: Run, open_application: OpenApplication) -> Outcome:
    experiment = EXPERIMENTS[claim.experiment]
    with (
        tempfile.TemporaryDirectory(prefix="claim-", ignore_cleanup_errors=True) as folder,
        open_application(claim, Path(folder)) as app,
    ):
        try:
            experiment(app, claim, run)
        except MemberEnded as error:
            return Outcome(ends=error.release, why=error.why)
        except WrongResults as error:
            return Outcome(wrong=str(error))
        except NotInTime as error:
            return Outcome(unfinished=str(error))
    return Outcome()


def _store(path: Path, claim: Claim, run: Run, seen: Outcome) -> None:
    """Put one result into the file, in the order of the claims; rows of former claims go."""
    rows = {_key(row): row for row in _stored(path)}
    rows[claim.name, run] = {
        "claim": claim.name,
        "old": run.old,
        "new": run.new,
        "pin": run.pin,
        "seen": str(seen).splitlines()[0],
        "as_expected": claim.holds(run, seen),
    }
    known = [(each.name, pair) for each in CLAIMS for pair in each.runs]
    path.write_text(_toml([rows[key] for key in known if key in rows]), encoding="utf-8")


def _stored(path: Path) -> Sequence[Row]:
    if not path.is_file():
        return ()
    found: Sequence[Row] = tomllib.loads(path.read_text(encoding="utf-8")).get("result", ())
    return found


def _key(row: Row) -> tuple[str, Run]:
    return row["claim"], Run(old=row["old"], new=row["new"], pin=row["pin"])


def _toml(rows: Sequence[Row]) -> str:
    """Return the text of the file; strings of JSON are strings of TOML."""
    blocks = [
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items()) for row in rows
    ]
    return _HEAD + "".join(f"\n[[result]]\n{block}" for block in blocks)
