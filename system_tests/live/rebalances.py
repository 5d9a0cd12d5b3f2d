"""How many rebalances there were, and what each was for: a function over the reports.

A generation is counted when any member took an assignment of it. It is *membership* when a member
took its first or its last assignment around it, *version* when a member had asked for it because of
the version only, and *followup* otherwise: a cooperative move, a probing rebalance of KIP-441, or a
change of metadata.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from system_tests.live.events import AssignmentTaken, RejoinRequested, Report
from system_tests.live.ownership import Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalances:
    """Generations after the first settled one, by cause; each tuple is sorted."""

    membership: tuple[int, ...]
    version: tuple[int, ...]
    followup: tuple[int, ...]

    @property
    def total(self) -> int:
        """All generations that were counted."""
        return len(self.membership) + len(self.version) + len(self.followup)


def count_rebalances(
    reports: Sequence[Report],
    *,
    after_generation: int,
    until_generation: int,
    gone: Iterable[Incarnation],
) -> Rebalances:
    """Sort the generations after one and until another, included, by what caused them.

    Args:
        reports: of all members, in the order of their time.
        after_generation: the generation of the first settled group; it and older ones are left out.
        until_generation: the generation of the last settled group.
        gone: lives that ended before the count ends (stopped, killed, failed).
    """
    taken = _generations_taken(reports)
    joined = {generations[0] for generations in taken.values()}
    left = {taken[life][-1] + 1 for life in gone if life in taken}
    asked = _generations_asked_for(reports)
    seen = sorted(
        {
            generation
            for generations in taken.values()
            for generation in generations
            if after_generation < generation <= until_generation
        }
    )
    membership = [g for g in seen if g in joined or g in left]
    version = [g for g in seen if g not in membership and g in asked]
    return Rebalances(
        membership=tuple(membership),
        version=tuple(version),
        followup=tuple(g for g in seen if g not in membership and g not in version),
    )


def _generations_taken(reports: Iterable[Report]) -> Mapping[Incarnation, list[int]]:
    taken: dict[Incarnation, list[int]] = {}
    for report in reports:
        if isinstance(report.event, AssignmentTaken):
            taken.setdefault((report.member, report.incarnation), []).append(
                report.event.generation
            )
    return taken


def _generations_asked_for(reports: Iterable[Report]) -> set[int]:
    """Generations that a rejoin for the version led to: the next one its member took."""
    asked: set[int] = set()
    waiting: set[Incarnation] = set()
    for report in reports:
        life = (report.member, report.incarnation)
        match report.event:
            case RejoinRequested(for_version=True):
                waiting.add(life)
            case AssignmentTaken(generation=generation) if life in waiting:
                waiting.remove(life)
                asked.add(generation)
            case _:
                pass
    return asked
