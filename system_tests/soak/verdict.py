"""The verdict of a soak: checks, each a pure function of the outcome."""

from collections.abc import Sequence

from system_tests.live.evidence import Check, Verdict
from system_tests.soak.findings import Figures, SoakOutcome, Trouble
from system_tests.soak.gauges import Growth

CHECKED = ("soak", "soak with its broker", "member")
"""Prefixes of the names of Python processes; the memory of a JVM is not checked."""


def check_soak(outcome: SoakOutcome) -> Verdict:
    """Return all checks."""
    return Verdict(
        checks=(
            check_records(outcome),
            check_owners(outcome.figures),
            check_settled(outcome),
            check_members(outcome.figures),
            check_calm(outcome.figures),
            check_growth("memory", "MiB", outcome),
            check_growth("descriptors", "descriptors", outcome),
            check_growth("threads", "threads", outcome),
        )
    )


def check_records(outcome: SoakOutcome) -> Check:
    """At least once: every record that was written was processed, and before it was committed."""
    written = sum(coverage.produced for coverage in outcome.coverages)
    missing = sum(coverage.missing_records for coverage in outcome.coverages)
    duplicates = sum(coverage.duplicates for coverage in outcome.coverages)
    troubles = outcome.figures.of(Trouble.RECORDS)
    if missing:
        sentence = f"{missing} of {written} records were never processed"
    elif troubles:
        sentence = troubles[0].sentence
    elif not written:
        sentence = "no record was produced, so nothing was tested"
    else:
        sentence = f"all {written} records processed; {duplicates} more than once"
    numbers = {
        "produced": written,
        "missing": missing,
        "duplicates": duplicates,
        "missing_offsets": {
            str(c.partition): list(c.missing) for c in outcome.coverages if c.missing
        },
    }
    ok = written > 0 and not missing and not troubles
    return Check(name="records", ok=ok, sentence=sentence, numbers=numbers)


def check_owners(figures: Figures) -> Check:
    """No partition ever had two owners, unless one of them had been paused (SIGSTOP)."""
    count = figures.troubles[Trouble.OWNERS]
    sentence = "no partition ever had two owners"
    if figures.excused:
        sentence += f", except {figures.excused} times beside a member that had been paused"
    return Check(
        name="owners",
        ok=not count,
        sentence=figures.sentence(Trouble.OWNERS) or sentence,
        numbers={"double": count, "excused": figures.excused},
    )


def check_settled(outcome: SoakOutcome) -> Check:
    """The group recovered from every disturbance, and is settled at the end."""
    figures = outcome.figures
    count = figures.troubles[Trouble.SETTLED]
    stuck = outcome.early is not None and figures.troubles.total() > 0
    if outcome.unsettled is not None:
        sentence = f"the group is not settled at the end: {outcome.unsettled}"
    elif (finding := figures.sentence(Trouble.SETTLED)) is not None:
        sentence = finding
    else:
        sentence = f"the group settled all {figures.settled} times"
    if stuck:
        sentence += f"; the soak ended early: {outcome.early}"
    numbers = {"settled": figures.settled, "not_in_time": count, "unsettled": outcome.unsettled}
    ok = not count and outcome.unsettled is None and figures.settled > 0
    return Check(name="settled", ok=ok, sentence=sentence, numbers=numbers)


def check_members(figures: Figures) -> Check:
    """No member ended unless it was stopped or killed."""
    count = figures.troubles[Trouble.MEMBERS]
    sentence = figures.sentence(Trouble.MEMBERS) or "no member ended by itself"
    return Check(name="members", ok=not count, sentence=sentence, numbers={"died": count})


def check_calm(figures: Figures) -> Check:
    """Rebalances end: a group that is left alone does not change."""
    count = figures.troubles[Trouble.CALM]
    quiet = f"{figures.calm} rebalances without a disturbance; they ended"
    sentence = figures.sentence(Trouble.CALM) or quiet
    return Check(name="calm", ok=not count, sentence=sentence, numbers={"rebalances": figures.calm})


def check_growth(gauge: str, unit: str, outcome: SoakOutcome) -> Check:
    """No Python process grows: its last quarter is like its first one, within the bound.

    A process with too few samples leaves the check not decided, unless another one grew. A gauge
    that failed fails it.
    """
    rows = [growth for growth in outcome.growths if growth.gauge == gauge]
    compared = [growth for growth in rows if growth.process.startswith(CHECKED)]
    grown = [growth for growth in compared if not growth.ok]
    numbers = {
        growth.process: {
            "first": round(growth.first, 1),
            "last": round(growth.last, 1),
            "most": round(growth.most, 1),
            "per_hour": round(growth.per_hour, 2),
            "bound": round(growth.bound, 1),
            "samples": growth.samples,
        }
        for growth in rows
    }
    few = [text for text in outcome.undecided.get(gauge, ()) if text.startswith(CHECKED)]
    if not compared and not few:
        few = ["no process was measured"]
    failures = outcome.gauge_failures
    sentences = [_grown(compared, unit)] if compared else []
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        sentences = [f"the gauges failed: {failures[0]}{more}"]
    elif few:
        sentences.append(f"not decided: {', '.join(few)}")
    return Check(
        name=gauge,
        ok=not grown and not failures,
        sentence="; ".join(sentences),
        numbers=numbers,
        is_decided=bool(grown or failures or not few),
    )


def _grown(compared: Sequence[Growth], unit: str) -> str:
    """Return how much the process grew that grew most."""
    worst = max(compared, key=lambda growth: (not growth.ok, growth.last - growth.first))
    return (
        f"{worst.process}: {worst.first:.0f} {unit} in the first quarter, {worst.last:.0f} in the"
        f" last, {'within' if worst.ok else 'more than'} the bound of {worst.bound:+.0f}"
    )
