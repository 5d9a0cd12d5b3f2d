"""From members and the forms that they carry to the wanted forms, and to each partition's form."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from probing.topologies.chains import decide_chain, joined_families
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
    ChainRule,
    FamilyNumbers,
    FormRule,
    UnitNumbers,
    UnitRule,
    chain_rule,
    form_rule,
    unit_rule,
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
    choose: Callable[[FamilyNumbers], FormRule] = form_rule,
    choose_chain: Callable[[ChainNumbers], ChainRule] = chain_rule,
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
        choose: the table of rules; tests replace it by a broken one.
        choose_chain: the table for chains; likewise.
        believe: the rules of claims; likewise.
    """
    memory = believe(members, topics)
    found = []
    for family, is_chain in sorted(joined_families(members, topics), key=lambda f: min(f[0])):
        decision, entry = _decide_family(
            family, members, topics, memory=memory, level=level, choose=choose
        )
        if is_chain and decision.version is not None:
            chain = decide_chain(
                family,
                members,
                topics,
                version=decision.version,
                running=running,
                choose=choose_chain,
            )
            decision = replace(
                decision,
                wanted=chain.forms,
                version=chain.version,
                rule=decision.rule if chain.is_wanted else chain.rule.name,
                why=decision.why if chain.is_wanted else chain.why,
                able=chain.able,
            )
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
    choose: Callable[[FamilyNumbers], FormRule],
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
    rule = choose(numbers)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDecision:
    """What becomes of a partition of a family.

    Attributes:
        rule: the row that decided.
        forms: fingerprints of the forms that run; empty: the partition waits.
        owners: form -> the member that keeps it; empty: a strategy places them.
    """

    rule: UnitRule
    forms: frozenset[bytes]
    owners: Mapping[bytes, str] = field(default_factory=dict)


def decide_unit(
    family: FamilyDecision,
    running: Mapping[str, frozenset[bytes]],
    members: Mapping[str, Carrier],
    topics: Mapping[bytes, frozenset[str]],
    *,
    released: frozenset[str] = frozenset(),
    choose: Callable[[UnitNumbers], UnitRule] = unit_rule,
) -> UnitDecision:
    """Return in which form a partition runs from now on.

    Args:
        family: as decided.
        running: member id -> forms of the family that it ran for this partition.
        members: live members by id.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.
        released: members from which balance takes this partition.
        choose: the table of rules; tests replace it by a broken one.
    """
    others = sorted(
        name
        for name, forms in running.items()
        if forms and not forms & family.wanted and forms <= members[name].forms.keys()
    )
    rule = choose(
        UnitNumbers(
            is_wanted=bool(family.wanted),
            runs_wanted=any(forms & family.wanted for forms in running.values()),
            runs_other=bool(others),
            can_switch=all(family.wanted <= members[name].forms.keys() for name in others),
            is_released=bool(others) and others[0] in released,
        )
    )
    match rule.form:
        case "same" if others:
            owners = _kept_forms(family.forms, {n: running[n] for n in others}, members, topics)
            return UnitDecision(rule=rule, forms=frozenset(owners), owners=owners)
        case "wanted":
            return UnitDecision(rule=rule, forms=family.wanted)
        case _:
            return UnitDecision(rule=rule, forms=frozenset())


def _kept_forms(
    family: frozenset[bytes],
    running: Mapping[str, frozenset[bytes]],
    members: Mapping[str, Carrier],
    topics: Mapping[bytes, frozenset[str]],
) -> dict[bytes, str]:
    """Form -> the member that keeps it: what members run, then the rest of the first one's version.

    Of forms that use a topic in common, the first is kept.
    """
    first = next(iter(running))
    carried = members[first].forms
    versions = {version for form in running[first] for version in carried[form]}
    rest = [f for f in sorted(family & carried.keys()) if not versions.isdisjoint(carried[f])]
    kept: dict[bytes, str] = {}
    used: set[str] = set()
    for name, form in [*((n, f) for n, forms in running.items() for f in sorted(forms))] + [
        (first, form) for form in rest
    ]:
        if used.isdisjoint(topics[form]):
            kept[form] = name
            used |= topics[form]
    return kept


def shares_released(
    held: Mapping[str, Sequence[int]], able: int, *, others: int
) -> dict[str, frozenset[int]]:
    """Return the partitions that members of the old form give up so that new ones get a share.

    Args:
        held: member id -> partitions that it runs in another form than the wanted one.
        able: number of members that can run the wanted form and hold no other; 0 releases nothing.
        others: number of partitions that run in the wanted form, or on no member.
    """
    if not able or not held:
        return {}
    share, more = divmod(sum(map(len, held.values())) + others, len(held) + able)
    released: dict[str, frozenset[int]] = {}
    # Those that hold most keep the remainder, so that as few as possible move.
    for place, name in enumerate(sorted(held, key=lambda name: (-len(held[name]), name))):
        surplus = sorted(held[name])[share + (place < more) :]
        if surplus:
            released[name] = frozenset(surplus)
    return released
