"""The result of an experiment, as text and as JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from system_tests.live.events import Report
from system_tests.live.evidence.ownership import Incarnation
from system_tests.live.evidence.steps import ProbingStep
from system_tests.live.evidence.verdict import Verdict
from system_tests.live.options import LiveOptions
from system_tests.live.order import client_of
from system_tests.live.plan import LivePlan, Stage
from system_tests.live.processes import MemberDiedError

_GOOD, _BAD = "bold green", "bold red"
_MARKS = {True: "ok  ", False: "FAIL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A member that ended without being asked to.

    Attributes:
        why: one sentence; `explained` if the member reported it itself.
        last_lines: the end of its standard error.
    """

    member: str
    why: str
    explained: bool
    last_lines: tuple[str, ...]

    @classmethod
    def of(cls, error: MemberDiedError) -> Self:
        """Return the death that an error reports."""
        return cls(
            member=error.member,
            why=error.why,
            explained=error.explained,
            last_lines=error.last_lines,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the experiment ended.

    Attributes:
        verdict: None when it ended early.
        failure: why it ended early, or None.
        records: member -> records it processed, duplicates included.
        first_generation: of the first settled group, or None; generation: of the last.
        steps: every decision of a leader and every rejoin for the version.
        reports: of all members.
        ended_ms: when each process was seen to be gone.
        seconds: from the first process to the verdict.
        bounce_seconds: of the bounces alone.
        is_taken_back: the members were bounced back to the old release at the end.
    """

    verdict: Verdict | None
    failure: str | None
    death: Death | None
    used_versions: Mapping[str, int]
    records: Mapping[str, int]
    first_generation: int | None
    generation: int | None
    steps: tuple[ProbingStep, ...]
    reports: tuple[Report, ...]
    ended_ms: Mapping[Incarnation, float]
    seconds: float
    bounce_seconds: float
    is_taken_back: bool = False

    @property
    def ok(self) -> bool:
        """Whether the experiment ran to its end and every check is good."""
        return self.failure is None and self.verdict is not None and self.verdict.ok


def summary_lines(outcome: Outcome, plan: LivePlan) -> Iterator[tuple[str, str]]:
    """Return the lines of the verdict with their rich styles: one per check, a summary last."""
    if outcome.verdict is not None:
        width = max(len(check.name) for check in outcome.verdict.checks)
        for check in outcome.verdict.checks:
            text = f"  {_MARKS[check.ok]}  {check.name:<{width}}  {check.sentence}"
            yield text, "" if check.ok else _BAD
        yield "", ""
    path = f"{plan.before.release} -> {plan.stages[-1].release}"
    count = len(plan.stages) + outcome.is_taken_back
    rounds = "one bounce" if count == 1 else f"{count} bounces"
    path += f" -> {plan.before.release}, taken back" if outcome.is_taken_back else ""
    if outcome.ok:
        members = len(outcome.records)
        yield (
            f"good: {path}, {rounds} of {members} members in {outcome.bounce_seconds:.1f} s",
            _GOOD,
        )
    elif outcome.failure is not None:
        yield f"bad: {outcome.failure}", _BAD
    else:
        yield f"bad: {path}; see the checks that failed", _BAD


def outcome_json(outcome: Outcome, plan: LivePlan, options: LiveOptions) -> str:
    """Return one JSON document, without a newline at its end."""
    verdict = outcome.verdict
    document = {
        "from": plan.before.release,
        "to": plan.stages[-1].release,
        "bounces": [_stage(stage) for stage in plan.stages],
        "seed": options.seed,
        "order": options.order,
        "members": [
            {
                "name": name,
                "client": client_of(name, options.client),
                "used": outcome.used_versions.get(name),
                "records": records,
            }
            for name, records in sorted(outcome.records.items())
        ],
        "ok": outcome.ok,
        "failure": outcome.failure,
        "death": None
        if outcome.death is None
        else {
            "member": outcome.death.member,
            "why": outcome.death.why,
            "last_lines": list(outcome.death.last_lines),
        },
        "advice": plan.advice if outcome.death is not None else None,
        "checks": []
        if verdict is None
        else [
            {
                "name": check.name,
                "ok": check.ok,
                "sentence": check.sentence,
                "numbers": dict(check.numbers),
            }
            for check in verdict.checks
        ],
        "records": None if verdict is None else dict(verdict.numbers("records")),
        "duplicates": None if verdict is None else verdict.numbers("records")["duplicates"],
        "versions": None if verdict is None else dict(verdict.numbers("versions")),
        "rebalances": None if verdict is None else dict(verdict.numbers("rebalances")),
        "pauses": None if verdict is None else dict(verdict.numbers("pauses")),
        "generation": outcome.generation,
        "steps": [step.to_json() for step in outcome.steps],
        "seconds": round(outcome.seconds, 3),
        "bounce_seconds": round(outcome.bounce_seconds, 3),
    }
    return json.dumps(document, indent=2)


def _stage(stage: Stage) -> dict[str, object]:
    return {
        "release": stage.release,
        "upgrade_from": stage.upgrade_from,
        "latest_version": stage.latest_version,
        "rebalance_protocol": stage.rebalance_protocol,
    }
