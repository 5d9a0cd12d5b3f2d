"""The trace of a cluster as lines of text: one lane per node, the epoch in front."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from probing.features import FinalizedLevels, LevelRecord
from system_tests.cluster.events import (
    Acknowledged,
    Activated,
    Asked,
    Committed,
    Left,
    Published,
    Regarded,
    Rested,
    Restless,
    Rewritten,
    Started,
    Stopped,
)
from system_tests.cluster.run import KraftOutcome
from system_tests.sim import GROUP_LINES, Answered, Narrator
from system_tests.trace import LEGEND, Symbol, TraceLine, format_header, format_line


class ClusterNarrator(Narrator):
    """Turns events into lines; the first column is the epoch of the committed levels."""

    def __init__(self, lanes: Sequence[str]) -> None:
        """Start with all nodes down."""
        super().__init__(lanes, {**GROUP_LINES, **_LINES_BY_EVENT})
        self._finalized = FinalizedLevels()
        self._published: dict[str, int] = {}

    def node_started(self, event: Started) -> Iterator[TraceLine]:
        """`+`: a node starts; its release and supported features."""
        self.down.discard(event.node)
        self._published.pop(event.node, None)
        ranges = ", ".join(f"{name} {found}" for name, found in sorted(event.ranges.items()))
        setting = "" if event.setting is None else f", setting {event.setting}"
        text = f"{event.node} starts {event.release}{setting} ({ranges or 'no features'})"
        yield self.line(event.at_ms, text, {event.node: Symbol.STARTS})

    def stopped(self, event: Stopped) -> Iterator[TraceLine]:
        """`!`: a node is stopped, killed or ended."""
        yield self.line(event.at_ms, f"{event.node} {event.how}", {event.node: Symbol.STOPS})
        self.down.add(event.node)

    def activated(self, event: Activated) -> Iterator[TraceLine]:
        """`*`: a controller becomes the active one."""
        text = f"{event.node} is active, term {event.term}"
        yield self.line(event.at_ms, text, {event.node: Symbol.LEADS})

    def committed(self, event: Committed) -> Iterator[TraceLine]:
        """`*`: levels are committed; other batches have no line."""
        changes = {row.feature: row.level for row in event.records if isinstance(row, LevelRecord)}
        if not changes:
            return
        levels = ", ".join(
            f"{name} {self._finalized.level_of(name)} -> {level}"
            for name, level in sorted(changes.items())
        )
        self._finalized = self._finalized.changed(changes)
        self.generation = self._finalized.epoch
        yield self.line(event.at_ms, f"committed: {levels}", {event.node: Symbol.LEADS})

    def published(self, event: Published) -> Iterator[TraceLine]:
        """`^` or `v`: a node uses higher or lower levels."""
        total = sum(event.finalized.levels.values())
        before = self._published.get(event.node)
        self._published[event.node] = total
        if before is not None:
            symbol = Symbol.UPGRADES if total >= before else Symbol.DOWNGRADES
            text = f"{event.node} uses epoch {event.finalized.epoch}"
            yield self.line(event.at_ms, text, {event.node: symbol})

    def update_request(self, event: Asked) -> Iterator[TraceLine]:
        """Yield a request and its result."""
        levels = ", ".join(f"{name}={level}" for name, level in sorted(event.levels.items()))
        dry = ", dry run" if event.dry else ""
        done = "would be done" if event.dry else "done"
        what = done if event.error == "NONE" else event.error
        request = f"request {event.request} ({event.kind}{dry}) {levels}"
        text = f"{request}: {what}, {event.rule}: {event.why}"
        yield self.line(event.at_ms, text, {event.node: Symbol.LEADS})

    def answered(self, event: Answered) -> Iterator[TraceLine]:
        """As in a group; the column is the epoch of the cluster."""
        epoch = self.generation
        lines = list(super().answered(event))
        self.generation = epoch
        yield from (replace(line, generation=epoch or None) for line in lines)

    def rewritten(self, event: Rewritten) -> Iterator[TraceLine]:
        """A line about lost content; no line if nothing is lost."""
        if event.dropped:
            text = f"{event.node} drops {', '.join(str(row) for row in event.dropped)}"
            yield self.line(event.at_ms, text)

    def short_line(self, event: Any) -> Iterator[TraceLine]:
        """Yield the line of an event that needs only a short text."""
        yield self.line(event.at_ms, _WORDS[type(event)](event))


def _levels(finalized: FinalizedLevels) -> str:
    levels = ", ".join(f"{name}={level}" for name, level in sorted(finalized.levels.items()))
    return levels or "no levels"


_WORDS: dict[type, Callable[[Any], str]] = {
    Acknowledged: lambda event: f"request {event.request} is acknowledged",
    Left: lambda event: f"{event.node} leaves: {event.feature_why}",
    Regarded: lambda event: f"{event.node} {event.standing}{event.why and f': {event.why}'}",
    Rested: lambda event: f"at rest under {event.active}: {_levels(event.finalized)}",
    Restless: lambda event: f"not at rest after {event.waited_ms} ms: {event.why}",
}

_LINES_BY_EVENT: dict[type, Callable[[ClusterNarrator, Any], Iterator[TraceLine]]] = {
    Started: ClusterNarrator.node_started,
    Stopped: ClusterNarrator.stopped,
    Activated: ClusterNarrator.activated,
    Committed: ClusterNarrator.committed,
    Published: ClusterNarrator.published,
    Asked: ClusterNarrator.update_request,
    Rewritten: ClusterNarrator.rewritten,
    **dict.fromkeys(_WORDS, ClusterNarrator.short_line),
}


def kraft_lines(outcome: KraftOutcome) -> list[str]:
    """Return the trace and the verdict as lines; after a failure the last one is its replay."""
    narrator = ClusterNarrator(outcome.lanes)
    lines = [format_header(outcome.lanes)]
    lines += [format_line(line, members=outcome.lanes) for line in narrator.lines(outcome.trace)]
    lines += [f"gen is the epoch of the finalized levels   {LEGEND}", ""]
    lines += [f"broken at {row.at_ms} ms: {row.rule}: {row.sentence}" for row in outcome.broken]
    plan = outcome.plan
    asked = [event for event in outcome.trace if isinstance(event, Asked)]
    applied = sum(isinstance(event, Acknowledged) for event in outcome.trace)
    controllers = sum(isinstance(event, Activated) for event in outcome.trace)
    rebalances = sum(isinstance(event, Answered) for event in outcome.trace)
    lines.append(
        f"{len(asked)} requests, {applied} applied; {controllers} active controllers in turn;"
        f" {rebalances} rebalances of the group"
    )
    verdict = "good" if outcome.ok else "bad"
    faults = ", ".join(sorted(plan.faults)) or "none"
    lines.append(
        f"{verdict}: {plan.scenario}, {plan.old} to {plan.new}, {plan.controllers} controllers,"
        f" {plan.brokers} brokers, faults: {faults}, seed {outcome.asked.seed}"
    )
    if not outcome.ok:
        lines.append(f"replay: {outcome.replay}")
    return lines


def kraft_document(outcome: KraftOutcome) -> dict[str, object]:
    """Return one experiment as JSON types with stable keys."""
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
                "at_ms": event.at_ms,
                "levels": dict(event.levels),
                "kind": event.kind,
                "dry_run": event.dry,
                "error": event.error,
                "rule": event.rule,
                "why": event.why,
                "loses": list(event.loses),
            }
            for event in outcome.trace
            if isinstance(event, Asked)
        ],
        "replay": outcome.replay,
    }
