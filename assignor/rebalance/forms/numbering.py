"""The numbers of subtopologies in a group: a table that each answer carries.

The base comes first with its own numbers. What only other members have is appended, and keeps its
number while a member carries it. A number is free again one rebalance after the last such member is
gone, so that the table stays as long as what live members carry.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from assignor.topology import CarriedTopologies, Subtopology, content_fingerprint

MOST_NUMBERED = 1024
"""Subtopologies of all members of a group together."""

NOT_HERE = -1


class Numbering(NamedTuple):
    """The table of a rebalance.

    Attributes:
        numbering: every subtopology, by its number.
        to_group: member id -> number in the group of each of its numbers; -1: the group does not
            number it.
        live: content of the subtopologies that members can run.
        retired: subtopologies that members could run in the rebalance before, and none can now.
        reused: numbers that were of another subtopology in the rebalance before.
    """

    numbering: tuple[Subtopology, ...]
    to_group: Mapping[str, tuple[int, ...]]
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
        programs: member id -> what it carries, of the members that can be given tasks.
        appended: subtopologies that the rebalance before numbered behind the base.
        live_before: content of those that members could run then.
    """
    before = [*base.subtopologies, *appended]
    parts: dict[bytes, Subtopology] = {}
    for carried in dict.fromkeys(programs[member] for member in sorted(programs)):
        for part in carried.subtopologies:
            parts.setdefault(content_fingerprint(part), part)
    free = [
        number
        for number, part in enumerate(before)
        if number >= len(base.subtopologies)
        and content_fingerprint(part) not in parts.keys() | live_before
    ]
    table = list(before)
    places = {content_fingerprint(p): n for n, p in enumerate(table) if n not in {*free}}
    reused: set[int] = set()
    for form, part in parts.items():
        if form not in places and free:
            places[form] = number = free.pop(0)
            reused.add(number)
            table[number] = replace(part, id=number)
        elif form not in places and len(table) < MOST_NUMBERED:
            places[form] = len(table)
            table.append(replace(part, id=len(table)))
    while free and free[-1] == len(table) - 1:
        free.pop()
        table.pop()
    live = frozenset(parts.keys() & places.keys())
    return Numbering(
        numbering=tuple(table),
        to_group={
            member: tuple(places.get(content_fingerprint(p), NOT_HERE) for p in c.subtopologies)
            for member, c in programs.items()
        },
        live=live,
        retired=tuple(p for p in before if content_fingerprint(p) in live_before - live),
        reused=frozenset(reused),
    )
