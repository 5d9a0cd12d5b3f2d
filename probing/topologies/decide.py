"""From members and the forms that they carry to the wanted forms of each family or chain."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from probing.topologies.chains import (
    Shape,
    carried_shapes,
    forms_of,
    joined_families,
    most_common,
)
from probing.topologies.memory import (
    MOST_UNSHARED,
    Carrier,
    Reached,
    believed_memory,
    newest_memory,
    next_reached,
)
from probing.topologies.overlap import without_overlaps
from probing.topologies.rules import (
    ChainNumbers,
    FamilyNumbers,
    chain_rule,
    form_rule,
    why_chain,
    why_form,
)

ONE_FORM: Final = "one form"
NOTHING_RUNS: Final[Mapping[str, frozenset[bytes]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyDecision:
    """What runs in a family, or in a chain of families.

    Attributes:
        forms: fingerprints of all forms that live members carry.
        wanted: those that run; empty if the family waits.
        version: the version of the topology that runs; None: it waits, or every version will do.
        rule: name of the row that decided.
        why: its sentence.
        refused: forms of the wanted version that contradict another form of the same version.
        able: of a chain, ids of the members that can run it in this version, all partitions of it;
            None: each member that carries a form can run it.
    """

    forms: frozenset[bytes]
    wanted: frozenset[bytes]
    version: int | None
    rule: str
    why: str
    refused: frozenset[bytes] = frozenset()
    able: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormsDecision:
    """What runs in a group.

    Attributes:
        families: by their smallest fingerprint.
        reached: the memory from now on, for the answers to all members.
    """

    families: tuple[FamilyDecision, ...]
    reached: Mapping[bytes, Reached]


def decide_forms(
    members: Sequence[Carrier],
    topics: Mapping[bytes, frozenset[str]],
    *,
    level: int | None = None,
    running: Mapping[str, frozenset[bytes]] = NOTHING_RUNS,
    believe: Callable[
        [Sequence[Carrier], Mapping[bytes, frozenset[str]]], dict[bytes, Reached]
    ] = believed_memory,
) -> FormsDecision:
    """Return the wanted forms of each family, and the memory from now on.

    Args:
        members: live members that can run tasks.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.
        level: the finalized level of `topology.version`.
        running: member id -> forms that it ran; a chain stays in the version that members run.
        believe: returns the memory that is believed, of members and topics.
    """
    memory = believe(members, topics)
    found = []
    for family, changed in sorted(joined_families(members, topics), key=lambda f: min(f[0])):
        decision, entry = _decide_family(family, members, topics, memory=memory, level=level)
        if changed and decision.version is not None:
            decision = _decide_chain(decision, decision.version, members, topics, running)
        found.append(decision)
        if entry is not None:
            memory |= dict.fromkeys(family, entry)
    return FormsDecision(families=tuple(found), reached=answered_memory(memory, members))


def answered_memory(
    memory: Mapping[bytes, Reached], members: Sequence[Carrier]
) -> dict[bytes, Reached]:
    """Return the entries that answers contain, in an order that no single process can abuse.

    All entries of forms that the leader or two processes carry are kept. `MOST_UNSHARED` others
    follow: of the forms that one process alone carries, one of each process in turn; then of those
    that no member carries, the ones that most processes remember.

    Args:
        memory: what is believed.
        members: live members that can run tasks.
    """
    processes: dict[bytes, set[str]] = {}
    remembering: dict[bytes, set[str]] = {}
    for member in members:
        for form in member.forms:
            processes.setdefault(form, set()).add(member.process)
        for form in member.reached:
            remembering.setdefault(form, set()).add(member.process)
    own = {form for member in members if member.leads for form in member.forms}
    shared = own | {form for form, found in processes.items() if len(found) > 1}

    def newest_first(forms: AbstractSet[bytes]) -> list[bytes]:
        return sorted(forms, key=lambda form: (memory[form], form), reverse=True)

    by_process: dict[str, list[bytes]] = {}
    for form in newest_first(memory.keys() & processes.keys() - shared):
        by_process.setdefault(min(processes[form]), []).append(form)
    turns = zip_longest(*(by_process[process] for process in sorted(by_process)))
    others = [form for turn in turns for form in turn if form is not None]
    others += sorted(
        newest_first(memory.keys() - shared - processes.keys()),
        key=lambda form: -len(remembering.get(form, ())),
    )
    kept = shared | {*others[:MOST_UNSHARED]}
    return newest_memory({f: r for f, r in memory.items() if f in kept}, first=shared)


def _decide_family(
    family: frozenset[bytes],
    members: Sequence[Carrier],
    topics: Mapping[bytes, frozenset[str]],
    *,
    memory: Mapping[bytes, Reached],
    level: int | None,
) -> tuple[FamilyDecision, Reached | None]:
    """The decision of a family, and the memory entry of its forms; None: there is none."""
    versions_by_member = {
        member.member_id: {v for form in family for v in member.forms.get(form, ())}
        for member in members
    }
    carried = [versions for versions in versions_by_member.values() if versions]
    live = tuple(sorted(set().union(*carried)))
    entry = max((memory[form] for form in family if form in memory), default=None)
    if entry is None and not _conflict(family, topics):
        decision = FamilyDecision(
            forms=family, wanted=family, version=None, rule=ONE_FORM, why="it has one form"
        )
        return decision, None
    numbers = FamilyNumbers(
        live=live,
        common=tuple(sorted(set(live).intersection(*carried))),
        level=level,
        reached=None if entry is None else entry.version,
        epoch=-1 if entry is None else entry.epoch,
        newest_is_known=any(
            form in memory for form in family if live[-1] in _versions(form, members)
        ),
    )
    rule = form_rule(numbers)
    version = rule.wanted(numbers)
    carriers = {form: sum(form in member.forms for member in members) for form in family}
    candidates = sorted(
        (form for form in family if version is not None and version in _versions(form, members)),
        key=lambda form: (-carriers[form], form),
    )
    wanted, refused = without_overlaps(candidates, topics)
    decision = FamilyDecision(
        forms=family,
        wanted=wanted,
        version=version,
        rule=rule.name,
        why=why_form(numbers, rule),
        refused=refused,
    )
    # Programs of one version that contradict each other reach nothing: one of them is refused.
    is_change = entry is not None or len(live) > 1
    if rule.remembered and is_change and version is not None:
        entry = entry if entry and entry.version == version else next_reached(entry, version)
    return decision, entry


def _conflict(family: frozenset[bytes], topics: Mapping[bytes, frozenset[str]]) -> bool:
    return bool(without_overlaps(sorted(family), topics)[1])


def _versions(form: bytes, members: Sequence[Carrier]) -> set[int]:
    return {version for member in members for version in member.forms.get(form, ())}


def _decide_chain(
    family: FamilyDecision,
    version: int,
    members: Sequence[Carrier],
    topics: Mapping[bytes, frozenset[str]],
    running: Mapping[str, frozenset[bytes]],
) -> FamilyDecision:
    """Return which version of a chain runs, and on which members.

    Args:
        family: the decision as for one family, which wants `version`.
        version: of the topology.
        members: live members that can run tasks.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.
        running: member id -> forms that it ran.
    """
    shapes = carried_shapes(members, family.forms, topics)
    wanted = most_common([carried[version] for carried in shapes.values() if version in carried])
    others = [shape for carried in shapes.values() for shape in carried.values() if shape != wanted]
    ran: list[Shape] = []
    for name, carried in shapes.items():
        forms = running.get(name, frozenset()) & family.forms
        fitting = {shape for shape in carried.values() if forms <= forms_of(shape)}
        ran += fitting if forms and len(fitting) == 1 else ()
    other = most_common([shape for shape in ran if shape != wanted] or others or [wanted])
    able = {
        shape: frozenset(name for name, carried in shapes.items() if shape in carried.values())
        for shape in (wanted, other)
    }
    numbers = ChainNumbers(
        wanted=version,
        runs_wanted=wanted in ran,
        runs_other=any(shape != wanted for shape in ran),
        able=len(able[wanted]),
        unable=sum(bool(carried) for carried in shapes.values()) - len(able[wanted]),
    )
    rule = chain_rule(numbers)
    if rule.runs_wanted:
        return replace(family, wanted=forms_of(wanted), able=able[wanted])
    return replace(
        family,
        wanted=forms_of(other),
        version=max(v for carried in shapes.values() for v, s in carried.items() if s == other),
        rule=rule.name,
        why=why_chain(numbers, rule),
        able=able[other],
    )
