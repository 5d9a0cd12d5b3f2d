"""The content of an HTML report of one bounce, independent of its drawing: bars and marks.

A bar is a period (a member writes a version, a partition has an owner), a mark is a moment. Each
has a sentence for its tooltip; for a decision, the name of its rule. `sim.py` and
`system_tests/live/evidence/story.py` make stories, `page.py` draws them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

GROUP = "group"
"""Lane of marks that concern the whole group."""


class MarkKind(StrEnum):
    """Kind of a mark; the value is its label in the legend."""

    STARTS = "starts"
    STOPS = "stops"
    DIES = "dies"
    LEADS = "leads, answers"
    UPGRADES = "upgrades, rejoins"
    DOWNGRADES = "downgrades, rejoins"
    REJOINS = "rejoins, same version"
    SETTLED = "settled"
    NOTES = "fault or expiry"
    BROKEN = "rule broken"


class RebalanceCause(StrEnum):
    """Cause of a rebalance; the value is its label in the legend."""

    MEMBERSHIP = "for members that left or joined"
    VERSION = "for the version"
    FOLLOWUP = "to move partitions"
    REPEATED = "repeated"
    EDGE = "forms or ends the group"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Bar:
    """A period in a lane, in ms.

    Attributes:
        key: determines the colour.
        text: label inside the bar, if it fits.
        hover: sentence of the tooltip.
    """

    lane: str
    from_ms: float
    until_ms: float
    key: str
    text: str
    hover: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An event in a lane, at a time in ms."""

    lane: str
    at_ms: float
    kind: MarkKind
    hover: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """A generation that was completed."""

    at_ms: float
    generation: int
    cause: RebalanceCause
    hover: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One bounce, ready to be drawn.

    Attributes:
        title: the two releases and the seed.
        ok: no rule was broken.
        facts: sentences of the header.
        replay: command that repeats the run.
        clock: label of the time axis.
        lanes, partitions: names, in order; `lanes` does not contain `GROUP`.
        versions: bars of members by the version that they write.
        owners: bars of partitions by owner.
        marks: events of members and leaders, faults and broken rules.
        rebalances: sorted by time.
        trace: the run's trace, as lines of text.
        end_ms: end of the story; it starts at 0.
    """

    title: str
    ok: bool
    facts: tuple[str, ...]
    replay: str
    clock: str
    lanes: tuple[str, ...]
    partitions: tuple[str, ...]
    versions: tuple[Bar, ...]
    owners: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    rebalances: tuple[Rebalance, ...]
    trace: tuple[str, ...]
    end_ms: float


@dataclass(slots=True)
class OpenBars:
    """Bars of a trace that is being read; at most one open bar per lane and key."""

    bars: list[Bar] = field(default_factory=list)
    _begun: dict[tuple[str, str], tuple[float, str, str]] = field(default_factory=dict)

    def begin(self, lane: str, key: str, at_ms: float, *, text: str, hover: str) -> None:
        """Open a bar; an open bar is not changed."""
        self._begun.setdefault((lane, key), (at_ms, text, hover))

    def end(self, lane: str, key: str, at_ms: float) -> None:
        """End a bar if it is open; a bar without duration is dropped."""
        begun = self._begun.pop((lane, key), None)
        if begun is not None and at_ms > begun[0]:
            since_ms, text, hover = begun
            self.bars.append(
                Bar(lane=lane, from_ms=since_ms, until_ms=at_ms, key=key, text=text, hover=hover)
            )

    def switch(self, lane: str, key: str, at_ms: float, *, text: str, hover: str) -> None:
        """Open a bar and end all other bars of its lane."""
        for other_lane, other in sorted(self._begun):
            if other_lane == lane and other != key:
                self.end(lane, other, at_ms)
        self.begin(lane, key, at_ms, text=text, hover=hover)

    def end_where(self, at_ms: float, *, lane: str | None = None, key: str | None = None) -> None:
        """End the open bars of a lane, of a key, or all."""
        for open_lane, open_key in sorted(self._begun):
            if lane in (None, open_lane) and key in (None, open_key):
                self.end(open_lane, open_key, at_ms)

    def finished(self) -> tuple[Bar, ...]:
        """Return the ended bars, sorted by lane and time."""
        return tuple(sorted(self.bars))


def rejoin_kind(before: int, after: int) -> MarkKind:
    """Return the kind of mark for a rejoin that changes the written version."""
    if after == before:
        return MarkKind.REJOINS
    return MarkKind.UPGRADES if after > before else MarkKind.DOWNGRADES


def causes_of(
    *,
    membership: Iterable[int],
    version: Iterable[int],
    followup: Iterable[int],
    repeated: Iterable[int],
) -> dict[int, RebalanceCause]:
    """Return the cause of each counted generation."""
    counted = (
        (RebalanceCause.MEMBERSHIP, membership),
        (RebalanceCause.VERSION, version),
        (RebalanceCause.FOLLOWUP, followup),
        (RebalanceCause.REPEATED, repeated),
    )
    return {generation: cause for cause, found in counted for generation in found}


def rebalance_of(
    generation: int, at_ms: float, members: int, causes: Mapping[int, RebalanceCause]
) -> Rebalance:
    """Return a generation with its cause; a generation that is not counted has the cause EDGE."""
    cause = causes.get(generation, RebalanceCause.EDGE)
    hover = f"generation {generation}, {members} members: {cause}"
    return Rebalance(at_ms=at_ms, generation=generation, cause=cause, hover=hover)
