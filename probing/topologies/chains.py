"""Chains: families that repartition topics join, and that change their version together.

If one version of a topology reads a repartition topic where another version of the same family
reads something else, then no mix of the two versions works: the members of the first one write to
all partitions of the topic, also to those that run in the second one and are read by no member.
The same holds if both read it, but write other records to it. The families of the readers and of
all writers of such a topic are a chain.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from probing.topologies.memory import Carrier
from probing.topologies.overlap import families
from probing.topologies.rules import ChainNumbers, ChainRule, why_chain

Shape = frozenset[tuple[bytes, frozenset[str]]]
"""The forms of one version, each with the topics that it writes and that members read."""


def joined_families(
    members: Sequence[Carrier], topics: Mapping[bytes, frozenset[str]]
) -> tuple[tuple[frozenset[bytes], bool], ...]:
    """Return the families of the forms that members carry, those of a chain as one.

    Args:
        members: live members that can run tasks.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.

    Returns:
        The forms of each family or chain, and whether it is a chain.
    """
    live = {form: topics[form] for member in members for form in member.forms}
    found = families(live)
    family_of = {form: number for number, family in enumerate(found) for form in family}
    reader = {topic: family_of[form] for form, names in live.items() for topic in names}
    shapes = (_shapes(member, live.keys(), reader.keys()) for member in members)
    programs = sorted({shape for found in shapes for shape in found.values()}, key=_by_content)
    apart = _unread_topics(programs, live, family_of) | _reused_topics(programs, live)
    # Families by number: those of the writers of a topic, and that of its readers, as "topics" of
    # the topic, so that the connected sets of these are the chains.
    joined: dict[str, set[str]] = {}
    for member in members:
        for form in member.writes.keys() & member.forms.keys():
            for topic in member.writes[form] & apart:
                joined.setdefault(topic, {str(reader[topic])}).add(str(family_of[form]))
    chains = [
        {int(number) for topic in linked for number in joined[topic]}
        for linked in families({topic: frozenset(numbers) for topic, numbers in joined.items()})
    ]
    single = set(range(len(found))).difference(*chains)
    return (
        *((found[number], False) for number in sorted(single)),
        *((frozenset[bytes]().union(*(found[n] for n in chain)), True) for chain in chains),
    )


def _unread_topics(
    programs: Iterable[Shape],
    live: Mapping[bytes, frozenset[str]],
    family_of: Mapping[bytes, int],
) -> set[str]:
    """Topics that not every version of their family reads."""
    always: dict[int, set[str]] = {}
    for program in programs:
        read: dict[int, set[str]] = {}
        for form, _ in program:
            read.setdefault(family_of[form], set()).update(live[form])
        for family, names in read.items():
            always[family] = always.get(family, names) & names
    return {topic for names in live.values() for topic in names}.difference(*always.values())


def _reused_topics(programs: Iterable[Shape], live: Mapping[bytes, frozenset[str]]) -> set[str]:
    """Topics that versions read in different forms, and write in forms that share no topic."""
    readers: dict[str, set[bytes]] = {}
    writers: dict[str, set[str]] = {}
    reused: set[str] = set()
    for program in programs:
        written: dict[str, set[str]] = {}
        for form, sinks in program:
            for topic in live[form]:
                readers.setdefault(topic, set()).add(form)
            for topic in sinks:
                written.setdefault(topic, set()).update(live[form])
        reused |= {
            t for t, names in written.items() if writers.setdefault(t, names).isdisjoint(names)
        }
    return {topic for topic in reused if len(readers[topic]) > 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainDecision:
    """Which version of a chain runs.

    Attributes:
        forms: those that run.
        able: ids of the members that can run them.
        version: of the topology.
        rule: the row that decided; why: its sentence.
        is_wanted: it is the wanted version.
    """

    forms: frozenset[bytes]
    able: frozenset[str]
    version: int
    rule: ChainRule
    why: str
    is_wanted: bool


def decide_chain(
    chain: frozenset[bytes],
    members: Sequence[Carrier],
    topics: Mapping[bytes, frozenset[str]],
    *,
    version: int,
    running: Mapping[str, frozenset[bytes]],
    choose: Callable[[ChainNumbers], ChainRule],
) -> ChainDecision:
    """Return which version of a chain runs.

    Args:
        chain: its forms.
        members: live members that can run tasks.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.
        version: the wanted one; a live member carries it.
        running: member id -> forms that it ran.
        choose: the table of rules.
    """
    read = {topic for form in chain for topic in topics[form]}
    shapes = {m.member_id: _shapes(m, chain, read) for m in members}
    wanted = _most_common([s[version] for s in shapes.values() if version in s])
    others = [shape for found in shapes.values() for shape in {*found.values()} - {wanted}]
    runs = [_run_by(shapes[m], running.get(m, frozenset()) & chain) for m in sorted(shapes)]
    run_by_members = [shape for shape in runs if shape is not None]
    other = _most_common([s for s in run_by_members if s != wanted] or others or [wanted])
    able, able_other = _able(shapes, wanted), _able(shapes, other)
    other_version = max(v for found in shapes.values() for v, s in found.items() if s == other)
    numbers = ChainNumbers(
        wanted=version,
        other=other_version,
        runs_wanted=wanted in run_by_members,
        runs_other=any(shape != wanted for shape in run_by_members),
        all_can=all(name in able for name, found in shapes.items() if found),
        able_wanted=len(able),
        able_other=len(able_other),
    )
    rule = choose(numbers)
    shape = wanted if rule.runs_wanted else other
    return ChainDecision(
        forms=frozenset(form for form, _ in shape),
        able=able if rule.runs_wanted else able_other,
        version=version if rule.runs_wanted else other_version,
        rule=rule,
        why=why_chain(numbers, rule),
        is_wanted=rule.runs_wanted,
    )


def _shapes(member: Carrier, forms: AbstractSet[bytes], read: AbstractSet[str]) -> dict[int, Shape]:
    """Version -> what a member carries of these forms; of topics that are written, those `read`."""
    found: dict[int, set[tuple[bytes, frozenset[str]]]] = {}
    for form in forms & member.forms.keys():
        for version in member.forms[form]:
            written = frozenset(t for t in member.writes.get(form, ()) if t in read)
            found.setdefault(version, set()).add((form, written))
    return {version: frozenset(shape) for version, shape in found.items()}


def _run_by(shapes: Mapping[int, Shape], running: frozenset[bytes]) -> Shape | None:
    """The shape that a member runs; None: nothing, or parts that several shapes have."""
    fitting = {s for s in shapes.values() if running <= {form for form, _ in s}}
    return fitting.pop() if running and len(fitting) == 1 else None


def _able(shapes: Mapping[str, Mapping[int, Shape]], shape: Shape) -> frozenset[str]:
    return frozenset(name for name, found in shapes.items() if shape in found.values())


def _most_common(shapes: Sequence[Shape]) -> Shape:
    counts = Counter(shapes)
    return max(sorted(counts, key=_by_content), key=counts.__getitem__)


def _by_content(shape: Shape) -> list[tuple[bytes, list[str]]]:
    return sorted((form, sorted(written)) for form, written in shape)
