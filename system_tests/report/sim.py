"""The story of a simulated bounce, out of its trace."""

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
    Ended,
    Gave,
    Happened,
    Happening,
    Outcome,
    Rejoined,
    Settled,
    Started,
    Took,
    Unsettled,
    Wrote,
    outcome_lines,
    replay_command,
)

_NOTED: Final = frozenset(
    {EventKind.MEMBER_EXPIRED, EventKind.MEMBER_REPLACED, EventKind.GROUP_RELOADED}
)
_REST_PERCENT: Final = 3
_TOLD_BROKEN: Final = 5


def story_of_simulation(outcome: Outcome) -> Story:
    """Return what there is to show of one simulated bounce."""
    teller = _Teller()
    for one in outcome.trace:
        told = _TELLERS.get(type(one))
        if told is not None:
            told(teller, one)
    for broken in outcome.broken:
        teller.mark("", broken.at_ms, MarkKind.BROKEN, f"{broken.rule}: {broken.sentence}")
    last_ms = outcome.trace[-1].at_ms if outcome.trace else 0
    end_ms = last_ms + last_ms * _REST_PERCENT // 100  # the last generation is seen too
    teller.versions.end_where(end_ms)
    teller.owners.end_where(end_ms)
    return Story(
        title=f"{outcome.plan.old} to {outcome.plan.new}, seed {outcome.options.seed}",
        ok=outcome.ok,
        facts=_facts(outcome),
        replay=replay_command(outcome),
        clock="seconds of the simulated clock",
        lanes=outcome.lanes,
        partitions=_partitions(outcome.trace),
        versions=teller.versions.finished(),
        owners=teller.owners.finished(),
        marks=tuple(teller.marks),
        rebalances=_rebalances(teller.generations, outcome.rebalances),
        trace=tuple(outcome_lines(outcome)),
        end_ms=end_ms,
    )


def name_of(partition: TopicPartition) -> str:
    """Name a partition as Kafka's tools do.

    >>> name_of(("words", 3))
    'words-3'
    """
    return f"{partition[0]}-{partition[1]}"


def _facts(outcome: Outcome) -> tuple[str, ...]:
    """The broken rules first, then the counts."""
    counted, cost = outcome.rebalances, outcome.cost
    facts = [f"{one.rule}: {one.sentence}" for one in outcome.broken[:_TOLD_BROKEN]]
    if len(outcome.broken) > _TOLD_BROKEN:
        facts.append(f"{len(outcome.broken) - _TOLD_BROKEN} more; see the trace below")
    if outcome.known and not outcome.ok:
        facts.append(f"history knows {', '.join(outcome.known)}")
    stages = [
        f"{stage.release}, upgrade.from={stage.upgrade_from}"
        if stage.upgrade_from
        else stage.release
        for stage in outcome.plan.stages
    ]
    facts.append(f"bounces: {'; then '.join(stages)}")
    facts.append(
        f"{counted.total} rebalances after the first settled group: {len(counted.membership)} for"
        f" members that left or came, {len(counted.version)} for the version (at most"
        f" {outcome.version_bound}), {len(counted.followup)} to move partitions,"
        f" {len(counted.repeated)} repeated"
    )
    facts.append(
        f"the longest pause of a partition {cost.longest_pause_ms / 1000:.1f} s;"
        f" {cost.moved} tasks moved; {cost.restored:,} records restored; {cost.bytes:,} bytes sent"
    )
    return tuple(facts)


def _partitions(trace: Sequence[Happening]) -> tuple[str, ...]:
    seen = {p for one in trace if isinstance(one, Took) for p in one.partitions}
    return tuple(name_of(partition) for partition in sorted(seen))


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
class _Teller:
    """What is known while a trace is read."""

    versions: OpenBars = field(default_factory=OpenBars)
    owners: OpenBars = field(default_factory=OpenBars)
    marks: list[Mark] = field(default_factory=list)
    generations: list[tuple[int, int, int]] = field(default_factory=list)
    program: dict[str, str] = field(default_factory=dict)

    def mark(self, lane: str, at_ms: int, kind: MarkKind, text: str) -> None:
        """Put a mark; what concerns nobody in particular goes to the group's lane."""
        self.marks.append(Mark(lane=lane or GROUP, at_ms=at_ms, kind=kind, hover=text))

    def started(self, one: Started) -> None:
        pin = f", upgrade.from={one.upgrade_from}" if one.upgrade_from else ""
        self.program[one.thread] = f"{one.release}{pin}"
        text = f"{one.thread} starts on {one.release}{pin}; it reads up to v{one.latest_version}"
        self.mark(one.thread, one.at_ms, MarkKind.STARTS, text)

    def ended(self, one: Ended) -> None:
        self.versions.end_where(one.at_ms, lane=one.thread)
        self.owners.end_where(one.at_ms, key=one.thread)
        dies = one.failed or one.how != "stop"
        kind = MarkKind.DIES if dies else MarkKind.STOPS
        self.mark(one.thread, one.at_ms, kind, f"{one.thread}: {one.how}")

    def wrote(self, one: Wrote) -> None:
        program = self.program.get(one.thread, "")
        version = f"v{one.used_version}"
        self.versions.switch(
            one.thread,
            version,
            one.at_ms,
            text=f"{program.partition(',')[0]} {version}".strip(),
            hover=f"{one.thread} on {program} writes {version}",
        )

    def answered(self, one: Answered) -> None:
        versions = " and ".join(sorted({f"v{answer.version}" for answer in one.answers}))
        text = f"{one.thread} leads generation {one.generation}, answers {versions}"
        text += f"\nrule: {one.rule}"
        if one.future:
            text += f"\nfuture members: {', '.join(sorted(one.future))}"
        if one.withheld:
            text += f"\n{len(one.withheld)} partitions withheld until their owner gives them up"
        self.mark(one.thread, one.at_ms, MarkKind.LEADS, text)

    def took(self, one: Took) -> None:
        if one.failure:
            text = f"{one.thread} cannot follow: {one.failure}"
            self.mark(one.thread, one.at_ms, MarkKind.DIES, text)
        for partition in one.gained:
            lane = name_of(partition)
            hover = f"{lane}: {one.thread}, since generation {one.generation}"
            self.owners.begin(lane, one.thread, one.at_ms, text=one.thread, hover=hover)

    def gave(self, one: Gave) -> None:
        for partition in one.partitions:
            self.owners.end(name_of(partition), one.thread, one.at_ms)

    def rejoined(self, one: Rejoined) -> None:
        before, after = one.used_before, one.used_after
        text = f"{one.thread} rejoins ({one.cause}), v{before} to v{after}\nrule: {one.rule}"
        self.mark(one.thread, one.at_ms, rejoin_kind(before, after), text)

    def settled(self, one: Settled) -> None:
        used = ", ".join(f"{name} v{version}" for name, version in one.used_versions)
        text = f"generation {one.generation} has settled: {used}"
        self.mark("", one.at_ms, MarkKind.SETTLED, text)

    def unsettled(self, one: Unsettled) -> None:
        text = f"not settled within {one.within_ms} ms: {one.why}"
        self.mark("", one.at_ms, MarkKind.NOTES, text)

    def happened(self, one: Happened) -> None:
        self.mark(one.thread, one.at_ms, MarkKind.NOTES, f"{one.thread} {one.text}".strip())

    def group_event(self, one: GroupEvent) -> None:
        if one.kind is EventKind.GENERATION_COMPLETED:
            self.generations.append((one.at_ms, one.generation, len(one.members)))
        elif one.kind in _NOTED:
            text = f"{one.kind}: {one.member_id} {one.reason}"
            self.mark("", one.at_ms, MarkKind.NOTES, text)


_TELLERS: dict[type, Callable[[_Teller, Any], None]] = {
    Started: _Teller.started,
    Ended: _Teller.ended,
    Wrote: _Teller.wrote,
    Answered: _Teller.answered,
    Took: _Teller.took,
    Gave: _Teller.gave,
    Rejoined: _Teller.rejoined,
    Settled: _Teller.settled,
    Unsettled: _Teller.unsettled,
    Happened: _Teller.happened,
    GroupEvent: _Teller.group_event,
}
