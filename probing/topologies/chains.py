"""Chains: families that repartition topics join, and that change their version together.

A member writes to all partitions of a repartition topic. If two versions of the topology read the
topic in different forms and write it in different forms, no mix of the two works: what members of
one version write, tasks of the other version do not read, or take for something else. The families
of the readers and of all writers of such a topic are a chain.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from probing.rules import Rule, Rules, always
from probing.topologies.memory import Carrier
from probing.topologies.overlap import families

Shape = frozenset[tuple[bytes, frozenset[str]]]
"""The forms of one version, each with the topics that it writes and that members read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainNumbers:
    """Inputs of a row of `CHAIN_RULES`: a chain of which live members have several versions.

    Attributes:
        wanted: the wanted version.
        runs_wanted: a live member runs a part of the chain in the wanted version.
        runs_other: a live member runs a part of it in another version.
        able: number of members that can run the wanted version of the chain.
        unable: number of members that can only run other versions of it.
    """

    wanted: int
    runs_wanted: bool
    runs_other: bool
    able: int
    unable: int


CHAIN_RULES: Final[Rules[ChainNumbers, bool]] = (
    Rule(
        name="runs in the wanted version",
        holds=lambda n: n.runs_wanted,
        says=True,
        why="a member runs a part of it in version {wanted}: it never returns by itself",
    ),
    Rule(
        name="run by no member",
        holds=lambda n: not n.runs_other,
        says=True,
        why="no live member runs a part of it: it starts in version {wanted}",
    ),
    Rule(
        name="most members can change",
        holds=lambda n: n.able > n.unable,
        says=True,
        why="{able} members can run version {wanted}, and {unable} cannot",
    ),
    Rule(
        name="stays together",
        holds=always,
        says=False,
        why="subtopologies that a changed repartition topic joins change together, once more"
        " members can run version {wanted} ({able} now) than cannot ({unable} now)",
    ),
)
"""Whether the wanted version of a chain runs; else the other one."""


def joined_families(
    members: Sequence[Carrier], topics: Mapping[bytes, frozenset[str]]
) -> tuple[tuple[frozenset[bytes], frozenset[str]], ...]:
    """Return the families of the forms that members carry, those of a chain as one.

    Args:
        members: live members that can run tasks.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.

    Returns:
        The forms of each family or chain, and the repartition topics that make it a chain.
    """
    live = {form: topics[form] for member in members for form in member.forms}
    shapes = carried_shapes(members, live.keys(), live).values()
    programs = sorted({shape for carried in shapes for shape in carried.values()}, key=_by_content)
    found = families(live)
    changed: set[str] = set()
    # A family that joins a chain may read topics that one version alone has; their writers follow.
    while more := _changed_topics(programs, live, found) - changed:
        changed |= more
        touched = {family: set[str]() for family in found}
        family_of = {form: family for family in found for form in family}
        for program in programs:
            for form, written in program:
                touched[family_of[form]] |= changed & (live[form] | written)
        connected = families({family: frozenset(names) for family, names in touched.items()})
        found = tuple(frozenset[bytes]().union(*linked) for linked in connected)
    return tuple(
        (family, frozenset(topic for form in family for topic in live[form] & changed))
        for family in found
    )


def _changed_topics(
    programs: Iterable[Shape],
    live: Mapping[bytes, frozenset[str]],
    found: Iterable[frozenset[bytes]],
) -> set[str]:
    """Repartition topics that two versions read in different forms, and write in different forms.

    A version that has the family of the readers and does not read or write the topic is one of
    them.
    """
    family_of = {topic: family for family in found for form in family for topic in live[form]}
    # Topic -> of each version: the forms that read it, and those that write it.
    uses: dict[str, list[tuple[set[bytes], set[bytes]]]] = {}
    written = {topic for program in programs for _, names in program for topic in names}
    for program in programs:
        carried = forms_of(program)
        for topic in written:
            if not carried.isdisjoint(family_of[topic]):
                readers = {form for form, _ in program if topic in live[form]}
                writers = {form for form, names in program if topic in names}
                uses.setdefault(topic, []).append((readers, writers))
    return {
        topic
        for topic, pairs in uses.items()
        if any(a[0] != b[0] and a[1] != b[1] for a, b in combinations(pairs, 2))
    }


def carried_shapes(
    members: Iterable[Carrier], forms: AbstractSet[bytes], topics: Mapping[bytes, frozenset[str]]
) -> dict[str, dict[int, Shape]]:
    """Return member id -> version of the topology -> what the member carries of these forms.

    Args:
        members: live members that can run tasks.
        forms: fingerprints; of the topics that they write, only those that one of them reads count.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.
    """
    read = {topic for form in forms for topic in topics[form]}
    found: dict[str, dict[int, Shape]] = {}
    # Most members run one of a few programs: their shapes are built once.
    by_program: dict[Hashable, dict[int, Shape]] = {}
    for member in members:
        program = (frozenset(member.forms.items()), frozenset(member.writes.items()))
        if program not in by_program:
            parts: dict[int, set[tuple[bytes, frozenset[str]]]] = {}
            for form in forms & member.forms.keys():
                written = member.writes.get(form, frozenset()) & read
                for version in member.forms[form]:
                    parts.setdefault(version, set()).add((form, written))
            by_program[program] = {v: frozenset(shape) for v, shape in parts.items()}
        found[member.member_id] = by_program[program]
    return found


def forms_of(shape: Shape) -> frozenset[bytes]:
    """Return the fingerprints of the forms of a shape."""
    return frozenset(form for form, _ in shape)


def most_common(shapes: Iterable[Shape]) -> Shape:
    """Return the shape that is there most often; of several, the first by content."""
    counts = Counter(shapes)
    return max(sorted(counts, key=_by_content), key=counts.__getitem__)


def _by_content(shape: Shape) -> list[tuple[bytes, list[str]]]:
    return sorted((form, sorted(written)) for form, written in shape)
