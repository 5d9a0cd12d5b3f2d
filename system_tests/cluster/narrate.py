"""From what happened in a cluster to the lines of its trace: a lane a node, the epoch in front."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from probing.features import FinalizedLevels, LevelRecord
from system_tests.cluster.events import (
    Acknowledged,
    Activated,
    Asked,
    Committed,
    Did,
    Happening,
    Left,
    Published,
    Rebalanced,
    Registered,
    Rejected,
    Rested,
    Restless,
    Rewritten,
    Silenced,
    Started,
    Stopped,
    Struck,
    Unfenced,
    Unregistered,
)
from system_tests.cluster.run import KraftOutcome
from system_tests.trace import LEGEND, LaneNarrator, Symbol, TraceLine, format_header, format_line


class Narrator(LaneNarrator):
    """Tells a cluster; remembers which levels are committed, and by which each node goes.

    The number in front of its lines is the epoch of the committed levels.
    """

    def __init__(self, lanes: Sequence[str]) -> None:
        """Begin with everybody down."""
        super().__init__(lanes, _TELLERS)
        self._finalized = FinalizedLevels()
        self._published: dict[str, int] = {}

    def started(self, one: Started) -> Iterator[TraceLine]:
        """`+`: a program and what it supports."""
        self.down.discard(one.node)
        self._published.pop(one.node, None)
        ranges = ", ".join(f"{name} {found}" for name, found in sorted(one.ranges.items()))
        setting = "" if one.setting is None else f", setting {one.setting}"
        text = f"{one.node} starts {one.release}{setting} ({ranges or 'no features'})"
        yield self.line(one.at_ms, text, {one.node: Symbol.STARTS})

    def stopped(self, one: Stopped) -> Iterator[TraceLine]:
        """`!`: stopped, killed, ended."""
        yield self.line(one.at_ms, f"{one.node} {one.how}", {one.node: Symbol.STOPS})
        self.down.add(one.node)

    def activated(self, one: Activated) -> Iterator[TraceLine]:
        """`*`: the active controller."""
        text = f"{one.node} is active, term {one.term}"
        yield self.line(one.at_ms, text, {one.node: Symbol.LEADS})

    def committed(self, one: Committed) -> Iterator[TraceLine]:
        """Levels only; other batches are left out."""
        changes = {row.feature: row.level for row in one.records if isinstance(row, LevelRecord)}
        if not changes:
            return
        said = ", ".join(
            f"{name} {self._finalized.level_of(name)} -> {level}"
            for name, level in sorted(changes.items())
        )
        self._finalized = self._finalized.changed(changes)
        self.generation = self._finalized.epoch
        yield self.line(one.at_ms, f"committed: {said}", {one.node: Symbol.LEADS})

    def published(self, one: Published) -> Iterator[TraceLine]:
        """`^` or `v`: a node goes by other levels."""
        total = sum(one.finalized.levels.values())
        before = self._published.get(one.node)
        self._published[one.node] = total
        if before is not None:
            symbol = Symbol.UPGRADES if total >= before else Symbol.DOWNGRADES
            text = f"{one.node} goes by epoch {one.finalized.epoch}"
            yield self.line(one.at_ms, text, {one.node: symbol})

    def asked(self, one: Asked) -> Iterator[TraceLine]:
        """Say a request and what becomes of it."""
        levels = ", ".join(f"{name}={level}" for name, level in sorted(one.levels.items()))
        dry = ", dry run" if one.dry else ""
        done = "would be done" if one.dry else "done"
        what = done if one.error == "NONE" else one.error
        text = f"request {one.request} ({one.kind}{dry}) {levels}: {what}, {one.rule}: {one.why}"
        yield self.line(one.at_ms, text, {one.node: Symbol.LEADS})

    def rewritten(self, one: Rewritten) -> Iterator[TraceLine]:
        """Say losses; where nothing is lost, nothing."""
        if one.dropped:
            text = f"{one.node} drops {', '.join(str(row) for row in one.dropped)}"
            yield self.line(one.at_ms, text)

    def told(self, one: Happening) -> Iterator[TraceLine]:
        """Whatever is said in a few words."""
        yield self.line(one.at_ms, _WORDS[type(one)](one))


def _levels(finalized: FinalizedLevels) -> str:
    said = ", ".join(f"{name}={level}" for name, level in sorted(finalized.levels.items()))
    return said or "no levels"


_WORDS: dict[type, Callable[[Any], str]] = {
    Acknowledged: lambda one: f"request {one.request} is acknowledged",
    Did: lambda one: f"operator: {one.what}",
    Left: lambda one: f"{one.node} leaves: {one.feature_why}",
    Rebalanced: lambda one: (
        f"the group rebalances ({one.cause}): {_levels(one.finalized)} at epoch"
        f" {one.finalized.epoch}"
    ),
    Registered: lambda one: f"{one.node} is registered, fenced",
    Rejected: lambda one: f"{one.node} is rejected: {one.why}",
    Rested: lambda one: f"at rest under {one.active}: {_levels(one.finalized)}",
    Restless: lambda one: f"not at rest after {one.waited_ms} ms: {one.why}",
    Silenced: lambda one: f"{one.node} is fenced: not heard of for a session",
    Struck: lambda one: f"fault: {one.node} {one.what}",
    Unfenced: lambda one: f"{one.node} is unfenced",
    Unregistered: lambda one: f"{one.node} unregisters",
}

_TELLERS: dict[type, Callable[[Narrator, Any], Iterator[TraceLine]]] = {
    Started: Narrator.started,
    Stopped: Narrator.stopped,
    Activated: Narrator.activated,
    Committed: Narrator.committed,
    Published: Narrator.published,
    Asked: Narrator.asked,
    Rewritten: Narrator.rewritten,
    **dict.fromkeys(_WORDS, Narrator.told),
}


def kraft_lines(outcome: KraftOutcome) -> list[str]:
    """Write the trace and the verdict; the last line replays a failure."""
    narrator = Narrator(outcome.lanes)
    lines = [format_header(outcome.lanes)]
    lines += [format_line(line, members=outcome.lanes) for line in narrator.lines(outcome.trace)]
    lines += [f"gen is the epoch of the finalized levels   {LEGEND}", ""]
    lines += [f"broken at {row.at_ms} ms: {row.rule}: {row.sentence}" for row in outcome.broken]
    plan = outcome.plan
    asked = [one for one in outcome.trace if isinstance(one, Asked)]
    applied = sum(isinstance(one, Acknowledged) for one in outcome.trace)
    lines.append(
        f"{len(asked)} requests, {applied} applied;"
        f" {sum(isinstance(one, Activated) for one in outcome.trace)} active controllers in turn;"
        f" {sum(isinstance(one, Rebalanced) for one in outcome.trace)} rebalances of the group"
    )
    said = "good" if outcome.ok else "bad"
    faults = ", ".join(sorted(plan.faults)) or "none"
    lines.append(
        f"{said}: {plan.scenario}, {plan.old} to {plan.new}, {plan.controllers} controllers,"
        f" {plan.brokers} brokers, faults: {faults}, seed {outcome.asked.seed}"
    )
    if not outcome.ok:
        lines.append(f"replay: {kraft_replay(outcome)}")
    return lines


def kraft_replay(outcome: KraftOutcome) -> str:
    """Return the one command that runs exactly this again."""
    asked = outcome.asked
    parts = [f"rolling-bounce simulate --world kraft --seed {asked.seed}"]
    parts += [f"--scenario {asked.scenario}"] if asked.scenario else []
    parts += [f"--from {asked.old} --to {asked.new}"] if asked.old else []
    parts += [f"--controllers {asked.controllers}"] if asked.controllers else []
    parts += [f"--brokers {asked.brokers}"] if asked.brokers else []
    if asked.faults is not None:
        parts.append(f"--faults {','.join(sorted(asked.faults)) or 'none'}")
    return " ".join(parts)


def kraft_document(outcome: KraftOutcome) -> dict[str, object]:
    """Return one experiment as plain types with stable names."""
    plan = outcome.plan
    return {
        "seed": outcome.asked.seed,
        "scenario": plan.scenario,
        "from": plan.old,
        "to": plan.new,
        "controllers": plan.controllers,
        "brokers": plan.brokers,
        "faults": sorted(plan.faults),
        "formatted": plan.formatted,
        "ok": outcome.ok,
        "broken": [
            {"rule": row.rule, "at_ms": row.at_ms, "sentence": row.sentence}
            for row in outcome.broken
        ],
        "requests": [
            {
                "at_ms": one.at_ms,
                "levels": dict(one.levels),
                "kind": one.kind,
                "dry_run": one.dry,
                "error": one.error,
                "rule": one.rule,
                "why": one.why,
                "loses": list(one.loses),
            }
            for one in outcome.trace
            if isinstance(one, Asked)
        ],
        "replay": kraft_replay(outcome),
    }
