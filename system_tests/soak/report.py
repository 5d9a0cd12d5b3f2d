"""The result of a soak as text and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median

from system_tests.live.evidence import Check, Verdict
from system_tests.soak.findings import SoakOutcome
from system_tests.soak.gauges import MIB, Growth
from system_tests.soak.options import SoakOptions

_GOOD, _BAD = "bold green", "bold red"
_MARKS = {True: "ok  ", False: "FAIL", None: "----"}
_SHOWN_FINDINGS = 20


def summary_lines(
    outcome: SoakOutcome, verdict: Verdict, options: SoakOptions
) -> Iterator[tuple[str, str]]:
    """Return the lines of figures and verdict with their rich styles, a summary last."""
    yield from ((line, "") for line in figure_lines(outcome))
    yield "", ""
    width = max(len(check.name) for check in verdict.checks)
    for check in verdict.checks:
        text = f"  {_MARKS[_state(check)]}  {check.name:<{width}}  {check.sentence}"
        yield text, "" if check.ok else _BAD
    for finding in outcome.figures.findings[:_SHOWN_FINDINGS]:
        where = f"at {finding.at_s:.0f} s, disturbance {finding.disturbance}"
        yield f"  {where}: {finding.sentence}", _BAD
    yield "", ""
    count = outcome.figures.disturbances.total()
    what = f"{outcome.seconds / 60:.1f} minutes, {count} disturbances, seed {options.seed}"
    if outcome.early is not None:
        what += f"; ended early: {outcome.early}"
    if open_questions := _undecided(verdict):
        what += f"; not decided: {', '.join(open_questions)}"
    yield (f"good: {what}", _GOOD) if verdict.ok else (f"bad: {what}", _BAD)


def figure_lines(outcome: SoakOutcome) -> Iterator[str]:
    """Return the tables: disturbances, rebalances, growth."""
    figures = outcome.figures
    yield f"  {'disturbance':<32}{'times':>6}{'recovery median':>17}{'worst':>9}{'waited':>9}"
    for kind, times in sorted(figures.disturbances.items()):
        recoveries = figures.recoveries_s.get(kind, [])
        waited_s = figures.waits_ms.get(kind, 0.0) / 1000
        middle, worst = _ends(recoveries)
        yield f"  {kind:<32}{times:>6}{middle:>15} s{worst:>7} s{waited_s:>7.1f} s"
    yield ""
    causes = figures.rebalances
    yield (
        f"  {causes.total()} rebalances: {causes['membership']} for members that left or came, "
        f"{causes['version']} for the version, {causes['repeated']} repeated, "
        f"{causes['followup']} follow-ups or others; {figures.calm} in calm"
    )
    yield f"  {figures.moves} moves of tasks between settled groups"
    yield ""
    yield f"  {'process':<24}{'gauge':<13}{'first':>8}{'last':>8}{'most':>8}{'per hour':>10}"
    for growth in outcome.growths:
        yield (
            f"  {growth.process:<24}{growth.gauge:<13}{growth.first:>8.1f}{growth.last:>8.1f}"
            f"{growth.most:>8.1f}{growth.per_hour:>+10.2f}"
        )
    yield "  memory in MiB; medians of the first and the last quarter"
    yield ""
    on_disk = f"  on disk: {outcome.journal_bytes / MIB:.1f} MiB of events"
    if outcome.broker_bytes is not None:
        on_disk += f", {outcome.broker_bytes / MIB:.1f} MiB of the broker's records and logs"
    yield on_disk


def outcome_json(outcome: SoakOutcome, verdict: Verdict, options: SoakOptions) -> str:
    """Return one JSON document, without a newline at its end."""
    return json.dumps(outcome_document(outcome, verdict, options), indent=2)


def outcome_document(
    outcome: SoakOutcome, verdict: Verdict, options: SoakOptions
) -> Mapping[str, object]:
    """Return figures and verdict as plain values."""
    figures = outcome.figures
    return {
        "seed": options.seed,
        "broker": "embedded" if options.broker is None else f"kafka:{options.broker}",
        "client": options.client,
        "members": options.members,
        "rate": options.rate,
        "seconds": round(outcome.seconds, 3),
        "ended_early": outcome.early,
        "ok": verdict.ok,
        "disturbances": {
            kind: {
                "times": times,
                "recovery_s": _recovery(figures.recoveries_s.get(kind, [])),
                "longest_wait_s": round(figures.waits_ms.get(kind, 0.0) / 1000, 3),
            }
            for kind, times in sorted(figures.disturbances.items())
        },
        "rebalances": dict(sorted(figures.rebalances.items())) | {"calm": figures.calm},
        "moves": figures.moves,
        "growth": [_growth(growth) for growth in outcome.growths],
        "journal_bytes": outcome.journal_bytes,
        "broker_bytes": outcome.broker_bytes,
        "checks": [
            {
                "name": check.name,
                "ok": _state(check),
                "decided": check.is_decided,
                "sentence": check.sentence,
                "numbers": dict(check.numbers),
            }
            for check in verdict.checks
        ],
        "undecided": _undecided(verdict),
        "gauge_failures": list(outcome.gauge_failures),
        "findings": [asdict(finding) for finding in figures.findings],
    }


def _state(check: Check) -> bool | None:
    """Return whether a check is good; None if it was not decided."""
    return check.ok if check.is_decided else None


def _undecided(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if not check.is_decided]


def _growth(growth: Growth) -> dict[str, object]:
    numbers = ("first", "last", "most", "per_hour", "bound")
    return asdict(growth) | {name: round(getattr(growth, name), 2) for name in numbers}


def _recovery(seconds: Sequence[float]) -> dict[str, float | int | None]:
    return {
        "count": len(seconds),
        "median": round(median(seconds), 3) if seconds else None,
        "worst": max(seconds, default=None),
    }


def _ends(seconds: Sequence[float]) -> tuple[str, str]:
    return (f"{median(seconds):.1f}", f"{max(seconds):.1f}") if seconds else ("-", "-")
