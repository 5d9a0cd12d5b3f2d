"""Claims, as rows of data, and what an experiment with them shows.

`claims.toml` has the rows. What was seen is stored in `probing/releases/experiments.toml`, which
the evidence of a plan reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from probing.tables import Form, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pair of releases to try a claim with; `pin` is upgrade.from in the newer one."""

    old: str
    new: str
    pin: str = ""

    def __str__(self) -> str:
        """Return the releases as text; one if both are the same."""
        pair = self.old if self.old == self.new else f"{self.old} and {self.new}"
        return f"{pair}, upgrade.from={self.pin}" if self.pin else pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an experiment ended: all well without anything here.

    Attributes:
        ends: the release of the member that ended without being asked to, or empty.
        why: its last exception.
        wrong: which results are wrong, or empty.
        unfinished: what did not happen in time, or empty.
    """

    ends: str = ""
    why: str = ""
    wrong: str = ""
    unfinished: str = ""

    def __str__(self) -> str:
        """Return the outcome as a sentence without a full stop."""
        if self.unfinished:
            return f"not finished: {self.unfinished}"
        if self.ends:
            return f"{self.ends} ends: {self.why}" if self.why else f"{self.ends} ends"
        return f"results are wrong: {self.wrong}" if self.wrong else "works, results are right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim about formats, settings or rollback.

    Attributes:
        name: of the claim, as `--only` takes it.
        says: the claim, as a sentence.
        experiment: a name in `experiments.EXPERIMENTS`.
        topology: a name of `system_tests.support.jvm.topologies`.
        settings: Kafka settings of all members.
        changed: settings of the members that an experiment changes, often none.
        runs: both ends of the range of releases, at least.
        ends: "old" or "new", if a member of this release ends, "either"; empty: no member does.
        why: a part of its exception.
        wrong: results are wrong.
        unfinished: what does not happen in time, often nothing.
        stores: whose changelog topics an experiment creates before the new release starts.
    """

    name: str
    says: str
    experiment: str
    topology: str = "words"
    settings: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[Run, ...]
    ends: str = ""
    why: str = ""
    wrong: bool = False
    unfinished: str = ""
    stores: tuple[str, ...] = ()

    def expected(self, run: Run) -> Outcome:
        """Return what the claim says about a pair of releases."""
        ends = {"": "", "old": run.old, "new": run.new, "either": f"{run.old} or {run.new}"}[
            self.ends
        ]
        wrong = "some" if self.wrong else ""
        return Outcome(ends=ends, why=self.why, wrong=wrong, unfinished=self.unfinished)

    def holds(self, run: Run, seen: Outcome) -> bool:
        """Return whether an outcome is what the claim says."""
        expected = self.expected(run)
        has_ended = seen.ends in expected.ends.split(" or ")
        return (
            has_ended
            and bool(expected.wrong) == bool(seen.wrong)
            and expected.why in seen.why
            and bool(expected.unfinished) == bool(seen.unfinished)
            and expected.unfinished in seen.unfinished
        )


def _claim(row: dict[str, Any]) -> Claim:
    """Return a row of the file as a claim."""
    runs, stores = (Run(**run) for run in row["runs"]), row.get("stores", ())
    return Claim(**{**row, "runs": tuple(runs), "stores": tuple(stores)})


_CLAIM: Final[dict[str, Form]] = {
    "name": str,
    "says": str,
    "experiment": str,
    "topology?": str,
    "settings?": {"*": str},
    "changed?": {"*": str},
    "runs": [{"old": str, "new": str, "pin?": str}],
    "ends?": ("", "old", "new", "either"),
    "why?": str,
    "wrong?": bool,
    "unfinished?": str,
    "stores?": [str],
}

CLAIMS: Final = tuple(
    map(
        _claim,
        read_table("system_tests.support.claims", "claims.toml", {"claim": [_CLAIM]})["claim"],
    )
)
"""All claims, the most dangerous ones first."""
