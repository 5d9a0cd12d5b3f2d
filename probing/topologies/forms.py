"""Which forms of subtopologies run in a rolling change of the topology.

A *family* are the forms that may not run for the same partition at the same time. The table of this
module decides the version whose forms are *wanted* in a family. A family with one form and without
memory always runs: this is the case of all kept, added and removed subtopologies. The families of a
*chain* change together (``chains.py``). What becomes of a partition that a member runs in another
form is decided in ``units.py``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from probing.rules import Rule, Rules, always, first
from probing.topologies import chains
from probing.topologies.chains import (
    ChainNumbers,
    Shape,
    carried_shapes,
    forms_of,
    joined_families,
    most_common,
)
from probing.topologies.memory import (
    Carrier,
    Reached,
    answered_memory,
    believed_memory,
    next_reached,
)
from probing.topologies.overlap import without_overlaps


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyNumbers:
    """Inputs of a row of `FORM_RULES`, for one family.

    Attributes:
        live: versions of the topology in which live members carry a form of the family, ascending.
        common: those of them that every live carrier has, ascending.
        level: the finalized level of `topology.version`; None: nothing is finalized.
        reached: the version that the memory names; None: no form is remembered.
        epoch: of that memory; -1 without.
        newest_is_known: the memory names a form of the highest live version.
    """

    live: tuple[int, ...]
    common: tuple[int, ...]
    level: int | None
    reached: int | None
    epoch: int
    newest_is_known: bool

    @property
    def newest(self) -> int:
        """The highest live version."""
        return self.live[-1]

    @property
    def is_held_back(self) -> bool:
        """Whether all carriers share a lower version and not all have the newest."""
        return bool(self.common) and self.common[-1] < self.newest

    @property
    def from_reached(self) -> int | None:
        """The lowest live version that is not below the reached one; None: there is none."""
        return next((v for v in self.live if v >= (self.reached or 0)), None)

    @property
    def common_newest(self) -> int | str:
        """The highest version that all carriers share, for sentences."""
        return self.common[-1] if self.common else "none"


class FormOutcome(NamedTuple):
    """The version whose forms are wanted.

    Attributes:
        wanted: returns it; None: no form is wanted.
        remembered: it counts as reached from now on.
    """

    wanted: Callable[[FamilyNumbers], int | None]
    remembered: bool


FORM_RULES: Final[Rules[FamilyNumbers, FormOutcome]] = (
    Rule(
        name="a finalized level",
        holds=lambda n: n.level is not None and n.level in n.live,
        says=FormOutcome(wanted=lambda n: n.level, remembered=True),
        why="topology.version is finalized at {level}",
    ),
    Rule(
        name="a version that was never reached",
        holds=lambda n: not n.newest_is_known and not n.is_held_back,
        says=FormOutcome(wanted=lambda n: n.newest, remembered=True),
        why="a live member carries version {newest}, which is reached from now on",
    ),
    Rule(
        name="reached, and carried",
        holds=lambda n: n.reached is not None and n.from_reached is not None,
        says=FormOutcome(wanted=lambda n: n.from_reached, remembered=False),
        why="version {reached} was reached in epoch {epoch}",
    ),
    Rule(
        name="reached, and carried by no member",
        holds=lambda n: n.reached is not None,
        says=FormOutcome(wanted=lambda _: None, remembered=False),
        why="version {reached} was reached in epoch {epoch}, and no member carries it or a later"
        " one: start such a member, or go back with assignor features downgrade-topology",
    ),
    Rule(
        name="held back",
        holds=always,
        says=FormOutcome(wanted=lambda n: n.common[-1], remembered=False),
        why="all members carry version {common_newest}, and not all carry {newest}: the group"
        " switches when all can, or when topology.version is raised",
    ),
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
    rule = first(FORM_RULES, numbers)
    version = rule.says.wanted(numbers)
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
        why=rule.sentence(numbers),
        refused=refused,
    )
    # Programs of one version that contradict each other reach nothing: one of them is refused.
    is_change = entry is not None or len(live) > 1
    if rule.says.remembered and is_change and version is not None:
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
    rule = first(chains.CHAIN_RULES, numbers)
    if rule.says:
        return replace(family, wanted=forms_of(wanted), able=able[wanted])
    return replace(
        family,
        wanted=forms_of(other),
        version=max(v for carried in shapes.values() for v, s in carried.items() if s == other),
        rule=rule.name,
        why=rule.sentence(numbers),
        able=able[other],
    )
