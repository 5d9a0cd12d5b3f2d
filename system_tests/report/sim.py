"""The story of a simulated bounce, from its trace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from encoding import TopicPartition
from system_tests.coordinator import EventKind, GroupEvent
from system_tests.rebalances import Rebalances
from system_tests.report.story import (
    GROUP,
    Mark,
    MarkKind,
    OpenBars,
    Rebalance,
    Story,
    causes_of,
    rebalance_of,
    rejoin_kind,
)
from system_tests.sim import (
    Answered,
    BounceOutcome,
    Ended,
    Gave,
    Happened,
    Happening,
    Rejoined,
    Settled,
    Started,
    Took,
    Unsettled,
    Wrote,
    outcome_lines,
)

_NOTED: Final = frozenset(
    {EventKind.MEMBER_EXPIRED, EventKind.MEMBER_REPLACED, EventKind.GROUP_RELOADED}
)
_REST_PERCENT: Final = 3
_MAX_BROKEN: Final = 5


def story_of_simulation(outcome: BounceOutcome) -> Story:
    """Return the story of one simulated bounce."""
    builder = _Builder()
    for event in outcome.trace:
        add = _ADD_BY_EVENT.get(type(event))
        if add is not None:
            add(builder, event)
    for broken in outcome.broken:
        builder.mark("", broken.at_ms, MarkKind.BROKEN, f"{broken.rule}: {broken.sentence}")
    last_ms = outcome.trace[-1].at_ms if outcome.trace else 0
    end_ms = last_ms + last_ms * _REST_PERCENT // 100  # makes the last generation visible
    builder.versions.end_where(end_ms)
    builder.owners.end_where(end_ms)
    return Story(
        title=f"{outcome.plan.old} to {outcome.plan.new}, seed {outcome.options.seed}",
        ok=outcome.ok,
        facts=_facts(outcome),
        replay=outcome.replay,
        clock="seconds of the simulated clock",
        lanes=outcome.lanes,
        partitions=_partitions(outcome.trace),
        versions=builder.versions.finished(),
        owners=builder.owners.finished(),
        marks=tuple(builder.marks),
        rebalances=_rebalances(builder.generations, outcome.rebalances),
        trace=tuple(outcome_lines(outcome)),
        end_ms=end_ms,
    )


def name_of(partition: TopicPartition) -> str:
    """Return the name of a partition, as Kafka's tools print it.

    >>> name_of(("words", 3))
    'words-3'
    """
    return f"{partition[0]}-{partition[1]}"


def _facts(outcome: BounceOutcome) -> tuple[str, ...]:
    """Return the facts of the header: broken rules first, then counts."""
    cost = outcome.cost
    facts = [
        f"{violation.rule}: {violation.sentence}" for violation in outcome.broken[:_MAX_BROKEN]
    ]
    if len(outcome.broken) > _MAX_BROKEN:
        facts.append(f"{len(outcome.broken) - _MAX_BROKEN} more; see the trace below")
    if outcome.known and not outcome.ok:
        facts.append(f"known Kafka issues of these releases: {', '.join(outcome.known)}")
    stages = [
        f"{stage.release}, upgrade.from={stage.upgrade_from}"
        if stage.upgrade_from
        else stage.release
        for stage in outcome.plan.stages
    ]
    facts.append(f"bounces: {'; then '.join(stages)}")
    counted = outcome.rebalances.counted(outcome.version_bound)
    facts.append(f"rebalances after the first settled group: {counted}")
    facts.append(
        f"longest pause of a partition: {cost.longest_pause_ms / 1000:.1f} s;"
        f" {cost.moved} tasks moved; {cost.restored:,} records restored; {cost.bytes:,} bytes sent"
    )
    return tuple(facts)


def _partitions(trace: Sequence[Happening]) -> tuple[str, ...]:
    found = {p for event in trace if isinstance(event, Took) for p in event.partitions}
    return tuple(name_of(partition) for partition in sorted(found))


def _rebalances(
    generations: Sequence[tuple[int, int, int]], counted: Rebalances
) -> tuple[Rebalance, ...]:
    causes = causes_of(
        membership=counted.membership,
        version=counted.version,
        followup=counted.followup,
        repeated=counted.repeated,
    )
    return tuple(
        rebalance_of(generation, at_ms, members, causes)
        for at_ms, generation, members in generations
    )


@dataclass(slots=True)
class _Builder:
    """Bars and marks, collected while a trace is read."""

    versions: OpenBars = field(default_factory=OpenBars)
    owners: OpenBars = field(default_factory=OpenBars)
    marks: list[Mark] = field(default_factory=list)
    generations: list[tuple[int, int, int]] = field(default_factory=list)
    program: dict[str, str] = field(default_factory=dict)

    def mark(self, lane: str, at_ms: int, kind: MarkKind, text: str) -> None:
        """Add a mark; an empty lane means the group's lane."""
        self.marks.append(Mark(lane=lane or GROUP, at_ms=at_ms, kind=kind, hover=text))

    def started(self, event: Started) -> None:
        pin = f", upgrade.from={event.upgrade_from}" if event.upgrade_from else ""
        self.program[event.thread] = f"{event.release}{pin}"
        text = f"{event.thread} starts on {event.release}{pin}; reads up to v{event.latest_version}"
        self.mark(event.thread, event.at_ms, MarkKind.STARTS, text)

    def ended(self, event: Ended) -> None:
        self.versions.end_where(event.at_ms, lane=event.thread)
        self.owners.end_where(event.at_ms, key=event.thread)
        dies = event.failed or event.how != "stop"
        kind = MarkKind.DIES if dies else MarkKind.STOPS
        self.mark(event.thread, event.at_ms, kind, f"{event.thread}: {event.how}")

    def wrote(self, event: Wrote) -> None:
        program = self.program.get(event.thread, "")
        version = f"v{event.used_version}"
        self.versions.switch(
            event.thread,
            version,
            event.at_ms,
            text=f"{program.partition(',')[0]} {version}".strip(),
            hover=f"{event.thread} on {program} writes {version}",
        )

    def answered(self, event: Answered) -> None:
        versions = " and ".join(sorted({f"v{answer.version}" for answer in event.answers}))
        text = f"{event.thread} leads generation {event.generation}, answers {versions}"
        text += f"\nrule: {event.rule}"
        if event.future:
            text += f"\nfuture members: {', '.join(sorted(event.future))}"
        if event.withheld:
            text += f"\n{len(event.withheld)} partitions withheld until their owner revokes them"
        self.mark(event.thread, event.at_ms, MarkKind.LEADS, text)

    def took(self, event: Took) -> None:
        if event.failure:
            text = f"{event.thread} cannot apply its assignment: {event.failure}"
            self.mark(event.thread, event.at_ms, MarkKind.DIES, text)
        for partition in event.gained:
            lane = name_of(partition)
            program = self.program.get(event.thread, "")
            text = f"{event.thread} {program.partition(',')[0]}".strip()
            hover = f"{lane}: {event.thread} on {program}, since generation {event.generation}"
            self.owners.begin(lane, event.thread, event.at_ms, text=text, hover=hover)

    def gave(self, event: Gave) -> None:
        for partition in event.partitions:
            self.owners.end(name_of(partition), event.thread, event.at_ms)

    def rejoined(self, event: Rejoined) -> None:
        before, after = event.used_before, event.used_after
        text = f"{event.thread} rejoins ({event.cause}), v{before} to v{after}\nrule: {event.rule}"
        self.mark(event.thread, event.at_ms, rejoin_kind(before, after), text)

    def settled(self, event: Settled) -> None:
        used = ", ".join(f"{name} v{version}" for name, version in event.used_versions)
        text = f"generation {event.generation} is stable: {used}"
        self.mark("", event.at_ms, MarkKind.SETTLED, text)

    def unsettled(self, event: Unsettled) -> None:
        text = f"not stable within {event.within_ms} ms: {event.why}"
        self.mark("", event.at_ms, MarkKind.NOTES, text)

    def happened(self, event: Happened) -> None:
        self.mark(event.thread, event.at_ms, MarkKind.NOTES, f"{event.thread} {event.text}".strip())

    def group_event(self, event: GroupEvent) -> None:
        if event.kind is EventKind.GENERATION_COMPLETED:
            self.generations.append((event.at_ms, event.generation, len(event.members)))
        elif event.kind in _NOTED:
            text = f"{event.kind}: {event.member_id} {event.reason}"
            self.mark("", event.at_ms, MarkKind.NOTES, text)


_ADD_BY_EVENT: dict[type, Callable[[_Builder, Any], None]] = {
    Started: _Builder.started,
    Ended: _Builder.ended,
    Wrote: _Builder.wrote,
    Answered: _Builder.answered,
    Took: _Builder.took,
    Gave: _Builder.gave,
    Rejoined: _Builder.rejoined,
    Settled: _Builder.settled,
    Unsettled: _Builder.unsettled,
    Happened: _Builder.happened,
    GroupEvent: _Builder.group_event,
}
