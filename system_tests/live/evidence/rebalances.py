"""How many rebalances there were, and what each was for: a function over the reports.

A generation is counted when any member took an assignment of it, under the first cause that holds:

- *membership*: a member took its first or its last assignment around it, or its leader answered
  more or fewer members than the one before (a foreign member reports nothing itself);
- *version*: a member had asked for it to write another version;
- *repeated*: members had asked only to say again what they had written, because a slower member had
  not heard the last answer before the rest rejoined;
- *followup*: the rest: a cooperative move, a probing rebalance of KIP-441, or new metadata.
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
    """Sort the generations after one and until another, included, by what caused them.

    Args:
        reports: of all members, in the order of their time.
        after_generation: the generation of the first settled group; it and older ones are left out.
        until_generation: the generation of the last settled group.
        gone: lives that ended before the count ends (stopped, killed, failed).
        static: members come back in their old place (KIP-345), so that coming and going is no
            cause.
    """
    taken = _generations_taken(reports)
    joined = {generations[0] for generations in taken.values() if not static}
    left = {taken[life][-1] + 1 for life in gone if life in taken and not static}
    changed, repeated = _generations_asked_for(reports)
    seen = sorted(
        {
            generation
            for generations in taken.values()
            for generation in generations
            if after_generation < generation <= until_generation
        }
    )
    causes = (joined | left | _generations_of_another_size(reports), changed, repeated, set(seen))
    sorted_out: list[tuple[int, ...]] = []
    counted: set[int] = set()
    for cause in causes:  # the first cause that holds, counts
        sorted_out.append(tuple(g for g in seen if g in cause and g not in counted))
        counted |= cause
    membership, version, again, followup = sorted_out
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
    """Generations whose leader answered another number of members than the leader before it."""
    undated: dict[Incarnation, int] = {}
    sizes: dict[int, int] = {}
    for report in reports:
        life = (report.member, report.incarnation)
        match report.event:
            case AnswersDecided(members=members):
                undated[life] = members
            case AssignmentTaken(generation=generation) if life in undated:
                sizes[generation] = undated.pop(life)
            case _:
                pass
    return {later for former, later in pairwise(sorted(sizes)) if sizes[former] != sizes[later]}


def _generations_asked_for(reports: Iterable[Report]) -> tuple[set[int], set[int]]:
    """Generations that rejoins for the version led to: to change it, and to say it again.

    What a member asked for is the next generation that it takes.
    """
    changed: set[int] = set()
    repeated: set[int] = set()
    waiting: dict[Incarnation, set[int]] = {}
    for report in reports:
        life = (report.member, report.incarnation)
        match report.event:
            case RejoinRequested(for_version=True) as rejoin:
                same = rejoin.used_version_before == rejoin.used_version_after
                waiting[life] = repeated if same else changed
            case AssignmentTaken(generation=generation) if life in waiting:
                waiting.pop(life).add(generation)
            case _:
                pass
    return changed, repeated
