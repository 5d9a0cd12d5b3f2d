"""Findings and figures of a soak: the values that its checks look at."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from system_tests.live.evidence import Coverage
from system_tests.soak.gauges import Growth
from system_tests.soak.tally import Window

_KEPT = 200


class Trouble(StrEnum):
    """What a finding is about; each has a check."""

    RECORDS = "records"
    OWNERS = "owners"
    SETTLED = "settled"
    CALM = "calm"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violation of what a soak promises.

    Attributes:
        at_s: since the soak began.
        disturbance: its number, or 0 before the first.
    """

    trouble: Trouble
    at_s: float
    disturbance: int
    sentence: str


@dataclass(slots=True)
class Figures:
    """Disturbances and their cost so far, in memory that does not grow.

    Attributes:
        disturbances: how many, by kind.
        recoveries_s: by kind, each time until the group had recovered.
        waits_ms: by kind, the longest time that a written record waited.
        rebalances: by cause; calm: those without a disturbance.
        findings: the first ones; `troubles` counts all.
    """

    disturbances: Counter[str] = field(default_factory=Counter)
    recoveries_s: dict[str, list[float]] = field(default_factory=dict)
    waits_ms: dict[str, float] = field(default_factory=dict)
    rebalances: Counter[str] = field(default_factory=Counter)
    calm: int = 0
    moves: int = 0
    excused: int = 0
    settled: int = 0
    findings: list[Finding] = field(default_factory=list)
    troubles: Counter[Trouble] = field(default_factory=Counter)

    def note_recovery(self, kind: str, seconds: float) -> None:
        """Note that the group has recovered."""
        self.settled += 1
        self.recoveries_s.setdefault(kind, []).append(round(seconds, 3))

    def note_window(self, kind: str, window: Window) -> None:
        """Note what happened from one settled group to the next."""
        self.rebalances.update(rebalances_of(window))
        self.moves += window.moves
        self.excused += window.excused
        self.waits_ms[kind] = max(self.waits_ms.get(kind, 0.0), window.longest_wait_ms)

    def note_finding(self, finding: Finding) -> None:
        """Note a finding."""
        self.troubles[finding.trouble] += 1
        if len(self.findings) < _KEPT:
            self.findings.append(finding)

    def of(self, trouble: Trouble) -> tuple[Finding, ...]:
        """Return the kept findings about one trouble."""
        return tuple(finding for finding in self.findings if finding.trouble is trouble)

    def sentence(self, trouble: Trouble) -> str | None:
        """Return the first finding about one trouble, and how many there were; None without any."""
        if not self.troubles[trouble]:
            return None
        # The kept findings may all be about other troubles.
        kept = (finding.sentence for finding in self.of(trouble))
        first = next(kept, f"{trouble}: see the events")
        return f"{first} ({self.troubles[trouble]} times in all)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOutcome:
    """The result of a soak.

    Attributes:
        figures: disturbances, their cost, and findings.
        coverages: what was processed, partition by partition.
        growths: of every long-lived process.
        undecided: gauge -> why it cannot be decided, a sentence for each process.
        gauge_failures: what could not be measured, a sentence each.
        unsettled: why the group is not settled at the end, or None.
        early: why it ended before its time, or None.
        seconds: from the first settled group to the last.
        journal_bytes: size of the JSON lines; broker_bytes: of a real broker's folder at the end.
    """

    figures: Figures
    coverages: tuple[Coverage, ...]
    growths: tuple[Growth, ...]
    unsettled: str | None
    early: str | None
    seconds: float
    journal_bytes: int
    broker_bytes: int | None = None
    undecided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gauge_failures: tuple[str, ...] = ()


def rebalances_of(window: Window) -> Mapping[str, int]:
    """Count a window's rebalances by cause."""
    found = window.rebalances
    return {
        "membership": len(found.membership),
        "version": len(found.version),
        "repeated": len(found.repeated),
        "followup": len(found.followup),
    }
