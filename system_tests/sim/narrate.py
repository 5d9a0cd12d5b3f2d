"""A trace as text: one line an event, one column a thread, seven symbols."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from probing.features import FinalizedLevels
from system_tests.coordinator import EventKind, GroupEvent
from system_tests.pauses import longest_pause, pause_numbers
from system_tests.sim.bounce import BounceOutcome
from system_tests.sim.events import (
    Answered,
    Ended,
    Happened,
    Happening,
    Rejoined,
    Settled,
    Started,
    Took,
    Unsettled,
    Wrote,
)
from system_tests.sim.known_issues import not_modelled
from system_tests.sim.level_events import Adopted, Finalized, Looked
from system_tests.sim.world.behaviour import find_program
from system_tests.topology_changes import TopologyChange
from system_tests.trace import LEGEND, LaneNarrator, Symbol, TraceLine, format_header, format_line

Lines = dict[type, Callable[[Any, Any], Iterator[TraceLine]]]
"""Type of an event -> the method of a narrator that makes its lines."""


def level_text(levels: FinalizedLevels) -> str:
    """Return finalized levels with their epoch."""
    listed = ", ".join(f"{name}={level}" for name, level in sorted(levels.levels.items()))
    return f"{listed or 'no levels'} at epoch {levels.epoch}"


class Narrator(LaneNarrator):
    """Makes lines of events; keeps what each thread wrote for the line of its generation."""

    def __init__(self, lanes: Sequence[str], lines: Lines | None = None) -> None:
        """Begin with all threads down."""
        super().__init__(lanes, lines or GROUP_LINES)
        self._wrote: dict[str, str] = {}

    def started(self, event: Started) -> Iterator[TraceLine]:
        """`+`: a release, its latest version, its pin."""
        self.down.discard(event.thread)
        pin = f", upgrade.from {event.upgrade_from}" if event.upgrade_from else ""
        versions = " and ".join(map(str, event.carries))
        carries = f", topology {versions}" if versions else ""
        text = f"start, release {event.release} (latest v{event.latest_version}{pin}){carries}"
        yield self.line(event.at_ms, text, {event.thread: Symbol.STARTS})

    def ended(self, event: Ended) -> Iterator[TraceLine]:
        """`!`: stopped, killed, or why it failed."""
        text = f"dies: {event.how}" if event.failed else event.how
        yield self.line(event.at_ms, text, {event.thread: Symbol.STOPS})
        self.down.add(event.thread)

    def wrote(self, event: Wrote) -> Iterator[TraceLine]:
        """Remember for the line of the next generation."""
        supported = event.latest_supported_version
        suffix = f"/{supported}" if supported > 0 else ""
        self._wrote[event.thread] = f"{event.thread}:v{event.used_version}{suffix}"
        yield from ()

    def answered(self, event: Answered) -> Iterator[TraceLine]:
        """`*`: who joined with what, and what the leader makes of it."""
        self.generation = event.generation
        threads = sorted(answer.thread for answer in event.answers)
        joined = " ".join(self._wrote.get(thread, thread) for thread in threads)
        future = f"  future {' '.join(sorted(event.future))}" if event.future else ""
        leads = {event.thread: Symbol.LEADS}
        yield self.line(event.at_ms, f"join {joined}{future}", leads)
        common = event.commonly_supported_version
        offered = f" common v{common}" if common > 0 else ""
        versions = sorted({answer.version for answer in event.answers})
        versions_text = " and ".join(f"v{version}" for version in versions)
        withheld = f", {len(event.withheld)} withheld" if event.withheld else ""
        yield self.line(
            event.at_ms, f"assign {versions_text}{offered}  {event.rule}{withheld}", leads
        )

    def rejoined(self, event: Rejoined) -> Iterator[TraceLine]:
        """`^` and `v`: another version; `.`: the same one again."""
        before, after = event.used_before, event.used_after
        symbol = Symbol.UPGRADES if after > before else Symbol.DOWNGRADES
        if after == before:
            text, acting = f"rejoin at v{after}  {event.rule}", {}
        else:
            word = "upgrade" if after > before else "downgrade"
            text, acting = (
                f"{word} v{before} -> v{after}, rejoin  {event.rule}",
                {event.thread: symbol},
            )
        if not acting:
            text = f"{event.thread}: {text}"
        yield self.line(event.at_ms, text, acting)

    def took(self, event: Took) -> Iterator[TraceLine]:
        """A line where the version changes without a rejoin, or the answer is not usable."""
        if event.failure:
            yield self.line(event.at_ms, f"{event.thread} cannot follow: {event.failure}")

    def settled(self, event: Settled) -> Iterator[TraceLine]:
        """The versions of a group at rest."""
        used = " ".join(f"{name}:v{version}" for name, version in event.used_versions)
        yield self.line(event.at_ms, f"settled {used}")

    def unsettled(self, event: Unsettled) -> Iterator[TraceLine]:
        """The threads that are not at rest."""
        yield self.line(event.at_ms, f"not settled within {event.within_ms} ms: {event.why}")

    def happened(self, event: Happened) -> Iterator[TraceLine]:
        """A fault."""
        text = f"{event.thread} {event.text}" if event.thread else event.text
        yield self.line(event.at_ms, text)

    def adopted(self, event: Adopted) -> Iterator[TraceLine]:
        """The epoch that a thread goes by."""
        yield self.line(event.at_ms, f"{event.thread} uses {level_text(event.levels)}")

    def looked(self, event: Looked) -> Iterator[TraceLine]:
        """A line where a thread asks for a rebalance for new levels."""
        if event.asks:
            what = f"{event.thread} asks for a rebalance"
            found = f"{event.broker} has {level_text(event.levels)}"
            yield self.line(event.at_ms, f"{what}: {found}")

    def finalized(self, event: Finalized) -> Iterator[TraceLine]:
        """New levels, and why."""
        yield self.line(event.at_ms, f"finalized: {level_text(event.levels)}  {event.why}")

    def group_event(self, event: GroupEvent) -> Iterator[TraceLine]:
        """What the coordinator does by itself."""
        match event.kind:
            case EventKind.MEMBER_EXPIRED:
                yield self.line(event.at_ms, f"{event.member_id} expires: {event.reason}")
            case EventKind.MEMBER_REPLACED:
                yield self.line(event.at_ms, f"{event.reason}, in its old place")
            case EventKind.GROUP_RELOADED:
                yield self.line(event.at_ms, f"generation {event.generation} is loaded again")
            case _:
                pass


GROUP_LINES: Lines = {
    Started: Narrator.started,
    Ended: Narrator.ended,
    Wrote: Narrator.wrote,
    Answered: Narrator.answered,
    Rejoined: Narrator.rejoined,
    Took: Narrator.took,
    Settled: Narrator.settled,
    Unsettled: Narrator.unsettled,
    Adopted: Narrator.adopted,
    Looked: Narrator.looked,
    Finalized: Narrator.finalized,
    Happened: Narrator.happened,
    GroupEvent: Narrator.group_event,
}


def trace_lines(
    lanes: Sequence[str], trace: Iterable[Happening], *, running: Iterable[str] = ()
) -> list[str]:
    """Return a trace as text: the legend, the header, one line per event.

    Args:
        lanes: names of all threads.
        trace: the events.
        running: threads that run before the first event.
    """
    narrator = Narrator(lanes)
    narrator.down.difference_update(running)
    body = [format_line(line, members=lanes) for line in narrator.lines(trace)]
    return [LEGEND, format_header(lanes), *body]


def outcome_lines(outcome: BounceOutcome) -> list[str]:
    """Return the trace and the verdict as text, and the replay command of a failure."""
    path = outcome.plan.text
    cost = outcome.cost
    lines = [*trace_lines(outcome.lanes, (*outcome.trace, *outcome.afterwards)), ""]
    lines.append(f"rebalances: {outcome.rebalances.counted(outcome.version_bound)}")
    lines.append(
        f"cost: pauses of {cost.pause_ms} ms over all partitions, the longest"
        f" {cost.longest_pause_ms} ms; {cost.paused_records} records waited; {cost.restored}"
        f" restored; {cost.moved} tasks moved; {cost.bytes} bytes sent"
    )
    longest = longest_pause(outcome.pauses)
    lines.append(f"longest pause: {'no partition paused' if longest is None else longest}")
    lines.extend(
        f"broken at {broken.at_ms} ms: {broken.rule}: {broken.sentence}"
        for broken in outcome.broken
    )
    if outcome.asked.draw_all:
        lines.append(f"drawn: {_drawn(outcome)}")
    if outcome.options.change is not None:
        lines.append(f"topology: {_change(outcome.options.change, outcome)}")
    lines += [
        f"not modelled: {line}" for line in not_modelled_of(outcome.plan.old, outcome.plan.new)
    ]
    if outcome.ok:
        lines.append(f"good: {path}, seed {outcome.options.seed}")
    else:
        known = f" (known Kafka issues: {', '.join(outcome.known)})" if outcome.known else ""
        lines.append(f"bad: {path}, seed {outcome.options.seed}{known}")
        lines.append(f"replay: {outcome.replay}")
    return lines


def _change(change: TopologyChange, outcome: BounceOutcome) -> str:
    """The change of the topology, and what was drawn of it."""
    protocol = "cooperative" if outcome.options.dimensions.cooperative else "eager"
    members = "static" if outcome.options.static else "dynamic"
    return f"{change.text}; members {protocol} and {members}"


def _drawn(outcome: BounceOutcome) -> str:
    """What `--draw all` decided."""
    drawn, moves = outcome.options.dimensions, ""
    if drawn.moves:
        moves = ", another port after each start"
    endpoints = ", ".join(endpoint or "none" for endpoint in drawn.endpoints)
    return "; ".join(
        (
            f"native members {'cooperative' if drawn.cooperative else 'eager'}",
            f"members {'static' if outcome.options.static else 'dynamic'}",
            f"endpoints {endpoints}{moves}" if drawn.routes else "no endpoints",
            *(["leaders hold routing views"] if drawn.views else []),
            *([f"record limit {drawn.record_limit} bytes"] if drawn.record_limit else []),
            f"{drawn.standbys} standby replicas",
            *([f"{drawn.restore} records restored a second"] if drawn.restore else []),
        )
    )


def not_modelled_of(old: str, new: str) -> tuple[str, ...]:
    """Return `not_modelled` of two programs by name."""
    return not_modelled(find_program(old), find_program(new))


def outcome_document(outcome: BounceOutcome) -> dict[str, object]:
    """Return one bounce as JSON-compatible values with stable keys."""
    drawn: dict[str, object] = {}
    if outcome.asked.draw_all:
        drawn = {"drawn": {"static": outcome.options.static, **asdict(outcome.options.dimensions)}}
    if (change := outcome.options.change) is not None:
        drawn["topology"] = {
            "kind": change.kind.value,
            "carries_both": change.carries_both,
            "cooperative": outcome.options.dimensions.cooperative,
            "static": outcome.options.static,
        }
    return drawn | {
        "seed": outcome.options.seed,
        "from": outcome.plan.old,
        "to": outcome.plan.new,
        "stages": [
            {"release": stage.release, "upgrade_from": stage.upgrade_from}
            for stage in outcome.plan.stages
        ],
        "ok": outcome.ok,
        "broken": [asdict(broken) for broken in outcome.broken],
        "known": list(outcome.known),
        "not_modelled": list(not_modelled_of(outcome.plan.old, outcome.plan.new)),
        "rebalances": {
            "total": outcome.rebalances.total,
            "membership": len(outcome.rebalances.membership),
            "version": len(outcome.rebalances.version),
            "followup": len(outcome.rebalances.followup),
            "repeated": len(outcome.rebalances.repeated),
            "version_bound": outcome.version_bound,
        },
        "cost": asdict(outcome.cost),
        "pauses": {
            "longest": pause_numbers(longest_pause(outcome.pauses)),
            "beyond": sum(not pause.is_within for pause in outcome.pauses),
        },
        "replay": outcome.replay,
    }
