"""Counts rebalances by cause: a function over the reports.

A generation is counted when any member took an assignment of it, under the first cause that holds:

- *membership*: it is the first generation of a member or follows the last one of a member, or its
  leader assigned to another number of members than the leader before (a foreign member does not
  report);
- *version*: a member had rejoined for it in order to write another version;
- *repeated*: members had rejoined with an unchanged version, because a slower member had not taken
  the last assignment before the others rejoined;
- *followup*: all others: a cooperative move, a probing rebalance of KIP-441, or new metadata.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    RejoinRequested,
    Report,
)
from system_tests.live.evidence.ownership import Incarnation
from system_tests.rebalances import Rebalances


def count_rebalances(
    reports: Sequence[Report],
    *,
    after_generation: int,
    until_generation: int,
    gone: Iterable[Incarnation],
    static: bool = False,
) -> Rebalances:
    """Return the generations in (after_generation, until_generation] by their cause.

    Args:
        reports: of all members, in the order of their time.
        after_generation: the generation of the first settled group; it and older ones are left out.
        until_generation: the generation of the last settled group.
        gone: incarnations that ended before the count ends (stopped, killed, failed).
        static: members keep their place (KIP-345), so that ends and starts of members are no
            cause.
    """
    taken = _generations_taken(reports)
    joined = {generations[0] for generations in taken.values() if not static}
    left = {
        taken[incarnation][-1] + 1 for incarnation in gone if incarnation in taken and not static
    }
    changed, repeated = _generations_asked_for(reports)
    counted = sorted(
        {
            generation
            for generations in taken.values()
            for generation in generations
            if after_generation < generation <= until_generation
        }
    )
    causes = (
        joined | left | _generations_of_another_size(reports),
        changed,
        repeated,
        set(counted),
    )
    by_cause: list[tuple[int, ...]] = []
    attributed: set[int] = set()
    for generations in causes:  # the first cause that holds, counts
        by_cause.append(tuple(g for g in counted if g in generations and g not in attributed))
        attributed |= generations
    membership, version, again, followup = by_cause
    return Rebalances(membership=membership, version=version, repeated=again, followup=followup)


def _generations_taken(reports: Iterable[Report]) -> Mapping[Incarnation, list[int]]:
    taken: dict[Incarnation, list[int]] = {}
    for report in reports:
        if isinstance(report.event, AssignmentTaken):
            taken.setdefault((report.member, report.incarnation), []).append(
                report.event.generation
            )
    return taken


def _generations_of_another_size(reports: Iterable[Report]) -> set[int]:
    """Return the generations whose leader assigned to another number of members than before."""
    undated: dict[Incarnation, int] = {}
    sizes: dict[int, int] = {}
    for report in reports:
        incarnation = (report.member, report.incarnation)
        match report.event:
            case AnswersDecided(members=members):
                undated[incarnation] = members
            case AssignmentTaken(generation=generation) if incarnation in undated:
                sizes[generation] = undated.pop(incarnation)
            case _:
                pass
    return {later for former, later in pairwise(sorted(sizes)) if sizes[former] != sizes[later]}


def _generations_asked_for(reports: Iterable[Report]) -> tuple[set[int], set[int]]:
    """Return the generations after rejoins with another version, and after those with the same.

    A rejoin leads to the next generation that the member takes.
    """
    changed: set[int] = set()
    repeated: set[int] = set()
    waiting: dict[Incarnation, set[int]] = {}
    for report in reports:
        incarnation = (report.member, report.incarnation)
        match report.event:
            case RejoinRequested(for_version=True) as rejoin:
                same = rejoin.used_version_before == rejoin.used_version_after
                waiting[incarnation] = repeated if same else changed
            case AssignmentTaken(generation=generation) if incarnation in waiting:
                waiting.pop(incarnation).add(generation)
            case _:
                pass
    return changed, repeated
