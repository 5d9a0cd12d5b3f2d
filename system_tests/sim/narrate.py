"""From what happened to the lines of the trace: seven symbols, one lane a thread."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.pauses import longest_pause, pause_numbers
from system_tests.sim.bounce import Outcome
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
from system_tests.trace import LEGEND, LaneNarrator, Symbol, TraceLine, format_header, format_line


class Narrator(LaneNarrator):
    """Tells a bounce; remembers what each wrote."""

    def __init__(self, lanes: Sequence[str]) -> None:
        """Begin with everybody down."""
        super().__init__(lanes, _TELLERS)
        self._wrote: dict[str, str] = {}

    def started(self, one: Started) -> Iterator[TraceLine]:
        """`+`: a release, its latest version, its pin."""
        self.down.discard(one.thread)
        pin = f", upgrade.from {one.upgrade_from}" if one.upgrade_from else ""
        text = f"start, release {one.release} (latest v{one.latest_version}{pin})"
        yield self.line(one.at_ms, text, {one.thread: Symbol.STARTS})

    def ended(self, one: Ended) -> Iterator[TraceLine]:
        """`!`: stopped, killed, or why it died."""
        text = f"dies: {one.how}" if one.failed else one.how
        yield self.line(one.at_ms, text, {one.thread: Symbol.STOPS})
        self.down.add(one.thread)

    def wrote(self, one: Wrote) -> Iterator[TraceLine]:
        """Remember for the line of the next generation."""
        supported = one.latest_supported_version
        said = f"/{supported}" if supported > 0 else ""
        self._wrote[one.thread] = f"{one.thread}:v{one.used_version}{said}"
        yield from ()

    def answered(self, one: Answered) -> Iterator[TraceLine]:
        """`*`: who joined with what, and what the leader makes of it."""
        self.generation = one.generation
        threads = sorted(answer.thread for answer in one.answers)
        joined = " ".join(self._wrote.get(thread, thread) for thread in threads)
        future = f"  future {' '.join(sorted(one.future))}" if one.future else ""
        leads = {one.thread: Symbol.LEADS}
        yield self.line(one.at_ms, f"join {joined}{future}", leads)
        common = one.commonly_supported_version
        offered = f" common v{common}" if common > 0 else ""
        versions = sorted({answer.version for answer in one.answers})
        said = " and ".join(f"v{version}" for version in versions)
        withheld = f", {len(one.withheld)} withheld" if one.withheld else ""
        yield self.line(one.at_ms, f"assign {said}{offered}  {one.rule}{withheld}", leads)

    def rejoined(self, one: Rejoined) -> Iterator[TraceLine]:
        """`^` and `v`: another version; `.`: the same one again."""
        before, after = one.used_before, one.used_after
        symbol = Symbol.UPGRADES if after > before else Symbol.DOWNGRADES
        if after == before:
            text, acting = f"rejoin at v{after}  {one.rule}", {}
        else:
            word = "upgrade" if after > before else "downgrade"
            text, acting = f"{word} v{before} -> v{after}, rejoin  {one.rule}", {one.thread: symbol}
        if not acting:
            text = f"{one.thread}: {text}"
        yield self.line(one.at_ms, text, acting)

    def took(self, one: Took) -> Iterator[TraceLine]:
        """A line only where the version changes without a rejoin, or nothing can be made of it."""
        if one.failure:
            yield self.line(one.at_ms, f"{one.thread} cannot follow: {one.failure}")

    def settled(self, one: Settled) -> Iterator[TraceLine]:
        """Say with which versions, once all rest."""
        used = " ".join(f"{name}:v{version}" for name, version in one.used_versions)
        yield self.line(one.at_ms, f"settled {used}")

    def unsettled(self, one: Unsettled) -> Iterator[TraceLine]:
        """Say who is restless."""
        yield self.line(one.at_ms, f"not settled within {one.within_ms} ms: {one.why}")

    def happened(self, one: Happened) -> Iterator[TraceLine]:
        """Tell faults."""
        text = f"{one.thread} {one.text}" if one.thread else one.text
        yield self.line(one.at_ms, text)

    def group_event(self, event: GroupEvent) -> Iterator[TraceLine]:
        """Tell what the coordinator does on its own."""
        match event.kind:
            case EventKind.MEMBER_EXPIRED:
                yield self.line(event.at_ms, f"{event.member_id} expires: {event.reason}")
            case EventKind.MEMBER_REPLACED:
                yield self.line(event.at_ms, f"{event.reason}, in its old place")
            case EventKind.GROUP_RELOADED:
                yield self.line(event.at_ms, f"generation {event.generation} is loaded again")
            case _:
                pass


_TELLERS: dict[type, Callable[[Narrator, Any], Iterator[TraceLine]]] = {
    Started: Narrator.started,
    Ended: Narrator.ended,
    Wrote: Narrator.wrote,
    Answered: Narrator.answered,
    Rejoined: Narrator.rejoined,
    Took: Narrator.took,
    Settled: Narrator.settled,
    Unsettled: Narrator.unsettled,
    Happened: Narrator.happened,
    GroupEvent: Narrator.group_event,
}


def trace_lines(lanes: Sequence[str], trace: Iterable[Happening]) -> list[str]:
    """Tell a trace as text: the legend, the header, one line an event."""
    narrator = Narrator(lanes)
    told = [format_line(line, members=lanes) for line in narrator.lines(trace)]
    return [LEGEND, format_header(lanes), *told]


def outcome_lines(outcome: Outcome) -> list[str]:
    """Tell the trace and the verdict, and for a failure how to see it again."""
    path = outcome.plan.text
    counted, cost = outcome.rebalances, outcome.cost
    lines = [*trace_lines(outcome.lanes, (*outcome.trace, *outcome.afterwards)), ""]
    lines.append(
        f"rebalances {counted.total}: {len(counted.membership)} for members that left or came,"
        f" {len(counted.version)} for the version (at most {outcome.version_bound}),"
        f" {len(counted.followup)} to move partitions, {len(counted.repeated)} repeated"
    )
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
    if outcome.ok:
        lines.append(f"good: {path}, seed {outcome.options.seed}")
    else:
        known = f" (history knows {', '.join(outcome.known)})" if outcome.known else ""
        lines.append(f"bad: {path}, seed {outcome.options.seed}{known}")
        lines.append(f"replay: {replay_command(outcome)}")
    return lines


def _drawn(outcome: Outcome) -> str:
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


def replay_command(outcome: Outcome) -> str:
    """Return the one command that runs exactly this again."""
    asked = outcome.asked
    parts = [f"rolling-bounce simulate --seed {asked.seed}"]
    parts += [f"--from {asked.old}"] if asked.old else []
    parts += [f"--to {asked.new}"] if asked.new else []
    parts.append(f"--members {asked.members} --threads {asked.threads}")
    parts += [f"--partitions {asked.partitions}"]
    parts += ["--static"] if asked.static else []
    parts += [f"--faults {','.join(sorted(asked.faults))}"] if asked.faults else []
    parts += ["--draw all"] if asked.draw_all else []
    parts += ["--offline"] if asked.offline else []
    parts += ["--force"] if asked.force else []
    return " ".join(parts)


def outcome_document(outcome: Outcome) -> dict[str, object]:
    """One bounce as plain types with stable names."""
    drawn: dict[str, object] = {}
    if outcome.asked.draw_all:
        drawn = {"drawn": {"static": outcome.options.static, **asdict(outcome.options.dimensions)}}
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
        "replay": replay_command(outcome),
    }
