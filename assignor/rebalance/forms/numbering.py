"""The numbers of subtopologies in a group: a table that each answer carries.

The base comes first with its own numbers. What only other members have is appended, and keeps its
number while a member carries it. A number is free again one rebalance after the last such member is
gone, so that the table stays as long as what live members carry.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from assignor.topology import CarriedTopologies, Subtopology, content_fingerprint

MOST_NUMBERED = 1024
"""Subtopologies of all members of a group together."""

NOT_HERE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberForms:
    """What a member can run, and how it numbers it.

    Attributes:
        to_group: number in the group of each of its numbers; -1: the group does not number it.
        versions: content of each subtopology -> versions of the topology that contain it.
        writes: content of each subtopology -> topics that the member writes when it runs it.
    """

    to_group: tuple[int, ...]
    versions: Mapping[bytes, tuple[int, ...]]
    writes: Mapping[bytes, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The table of a rebalance.

    Attributes:
        numbering: every subtopology, by its number.
        by_member: the members that can be given tasks.
        live: content of the subtopologies that they can run.
        retired: subtopologies that members could run in the rebalance before, and none can now.
        reused: numbers that were of another subtopology in the rebalance before.
    """

    numbering: tuple[Subtopology, ...]
    by_member: Mapping[str, MemberForms]
    live: frozenset[bytes]
    retired: tuple[Subtopology, ...]
    reused: frozenset[int]


def numbered(
    base: CarriedTopologies,
    programs: Mapping[str, CarriedTopologies],
    appended: Sequence[Subtopology],
    live_before: AbstractSet[bytes],
) -> Numbering:
    """Return the numbers of all subtopologies.

    Args:
        base: has its own numbers.
        programs: member id -> what it carries.
        appended: subtopologies that the rebalance before numbered behind the base.
        live_before: content of those that members could run then.
    """
    before = [*base.subtopologies, *appended]
    carried = {content_fingerprint(p) for c in programs.values() for p in c.subtopologies}
    first = len(base.subtopologies)
    dead = [n for n, part in enumerate(before) if content_fingerprint(part) not in carried]
    free = [n for n in dead if n >= first and content_fingerprint(before[n]) not in live_before]
    table = list(before)
    places = {content_fingerprint(p): n for n, p in enumerate(table) if n not in {*free}}
    reused: set[int] = set()
    by_member: dict[str, MemberForms] = {}
    for member in sorted(programs):
        to_group: list[int] = []
        versions: dict[bytes, tuple[int, ...]] = {}
        writes: dict[bytes, frozenset[str]] = {}
        program = programs[member]
        for part, contained in zip(program.subtopologies, program.versions, strict=True):
            form = content_fingerprint(part)
            if form not in places and free:
                places[form] = number = free.pop(0)
                reused.add(number)
                table[number] = replace(part, id=number)
            elif form not in places and len(table) < MOST_NUMBERED:
                places[form] = len(table)
                table.append(replace(part, id=len(table)))
            to_group.append(places.get(form, NOT_HERE))
            if form in places:
                versions[form] = contained
                writes[form] = frozenset(part.sink_topics)
        by_member[member] = MemberForms(to_group=tuple(to_group), versions=versions, writes=writes)
    while free and free[-1] == len(table) - 1:
        free.pop()
        table.pop()
    live = frozenset(form for forms in by_member.values() for form in forms.versions)
    return Numbering(
        numbering=tuple(table),
        by_member=by_member,
        live=live,
        retired=tuple(p for p in before if content_fingerprint(p) in live_before - live),
        reused=frozenset(reused),
    )
