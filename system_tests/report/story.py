"""What an HTML report shows of one bounce: bars and marks, no drawing yet.

Members write versions over time, partitions have owners over time, rebalances happen. Each becomes
a bar from one moment to another or a mark at one, with the sentence that the pointer shows: for
decisions, the rule that fired. `sim.py` and `system_tests/live/evidence/story.py` tell stories,
`page.py` draws them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

GROUP = "group"
"""The lane of what concerns the group as a whole."""


class MarkKind(StrEnum):
    """What a mark says of its member, or of the group."""

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
    """Why there was another generation."""

    MEMBERSHIP = "for members that left or came"
    VERSION = "for the version"
    FOLLOWUP = "to move partitions"
    REPEATED = "repeated"
    EDGE = "forms or ends the group"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Bar:
    """Something that lasts, in one lane, from one moment to another, in ms.

    Attributes:
        key: chooses the colour.
        text: stands in the bar where there is room.
        hover: the sentence under the pointer.
    """

    lane: str
    from_ms: float
    until_ms: float
    key: str
    text: str
    hover: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happens in one lane at one moment, in ms."""

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
        title: from where to where, and the seed.
        ok: the verdict; facts: its sentences.
        replay: the command that runs the same again.
        clock: whose seconds they are.
        lanes, partitions: names, in order; `GROUP` is no lane of this list.
        versions: bars of lanes by the version they write; owners: bars of partitions by owner.
        marks: what members did and leaders decided; faults and broken rules among them.
        rebalances: in order of time.
        trace: the experiment's own lines of text.
        end_ms: when the story ends; it begins at 0.
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
    """Bars that have begun and not ended while a trace is read; one per lane and key."""

    bars: list[Bar] = field(default_factory=list)
    _begun: dict[tuple[str, str], tuple[float, str, str]] = field(default_factory=dict)

    def begin(self, lane: str, key: str, at_ms: float, *, text: str, hover: str) -> None:
        """Begin a bar; one that has begun already goes on as it is."""
        self._begun.setdefault((lane, key), (at_ms, text, hover))

    def end(self, lane: str, key: str, at_ms: float) -> None:
        """End a bar, if it has begun; what lasted no time is not kept."""
        begun = self._begun.pop((lane, key), None)
        if begun is not None and at_ms > begun[0]:
            since_ms, text, hover = begun
            self.bars.append(
                Bar(lane=lane, from_ms=since_ms, until_ms=at_ms, key=key, text=text, hover=hover)
            )

    def switch(self, lane: str, key: str, at_ms: float, *, text: str, hover: str) -> None:
        """Let a lane have this bar and no other."""
        for other_lane, other in sorted(self._begun):
            if other_lane == lane and other != key:
                self.end(lane, other, at_ms)
        self.begin(lane, key, at_ms, text=text, hover=hover)

    def end_where(self, at_ms: float, *, lane: str | None = None, key: str | None = None) -> None:
        """End all bars of a lane, of a key, or all there are."""
        for one_lane, one_key in sorted(self._begun):
            if lane in (None, one_lane) and key in (None, one_key):
                self.end(one_lane, one_key, at_ms)

    def finished(self) -> tuple[Bar, ...]:
        """Return the bars that have ended, by lane and time."""
        return tuple(sorted(self.bars))


def rejoin_kind(before: int, after: int) -> MarkKind:
    """Say what a rejoin does to the version that a member writes."""
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
    """Turn counted generations round: generation -> why there was one."""
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
    """Return one generation with its cause; what nobody counted is at the group's edges."""
    cause = causes.get(generation, RebalanceCause.EDGE)
    hover = f"generation {generation}, {members} members: {cause}"
    return Rebalance(at_ms=at_ms, generation=generation, cause=cause, hover=hover)
