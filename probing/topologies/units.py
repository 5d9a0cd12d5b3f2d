"""In which form each partition of a family runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from probing.rules import Rule, Rules, always, first
from probing.topologies.forms import FamilyDecision
from probing.topologies.memory import Carrier


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitNumbers:
    """Inputs of a row of `UNIT_RULES`: a partition of a family, and the members that ran it.

    Attributes:
        is_wanted: there is a wanted form.
        runs_wanted: a live member ran the wanted form of it.
        runs_other: live members ran other forms of it, and can keep running them.
        can_switch: all these members carry the wanted form as well.
        is_released: balance takes the partition from the first of these members.
    """

    is_wanted: bool
    runs_wanted: bool
    runs_other: bool
    can_switch: bool
    is_released: bool


UnitForm = Literal["wanted", "same", "none"]
"""What becomes of a partition.

"wanted": the strategy places it on members with the wanted form; "same": it stays on its member in
its form; "none": it waits.
"""

UNIT_RULES: Final[Rules[UnitNumbers, UnitForm]] = (
    Rule(
        name="runs in the wanted form",
        holds=lambda n: n.is_wanted and n.runs_wanted,
        says="wanted",
        why="a member runs it in the wanted form: it never returns by itself",
    ),
    Rule(
        name="its member can switch",
        holds=lambda n: n.is_wanted and n.runs_other and n.can_switch,
        says="wanted",
        why="the members that run it carry the wanted form as well",
    ),
    Rule(
        name="moved by balance",
        holds=lambda n: n.is_wanted and n.runs_other and n.is_released,
        says="wanted",
        why="its member has more than its share: it moves, and changes its form with that",
    ),
    Rule(
        name="stays with its member",
        holds=lambda n: n.runs_other,
        says="same",
        why="its members keep the old forms until they stop or balance moves the partition; an old"
        " form that no member runs starts on one of them",
    ),
    Rule(
        name="orphaned",
        holds=lambda n: n.is_wanted,
        says="wanted",
        why="no live member runs it: it starts in the wanted form",
    ),
    Rule(
        name="waits",
        holds=always,
        says="none",
        why="no live member carries the wanted form, and none runs another one",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDecision:
    """What becomes of a partition of a family.

    Attributes:
        forms: fingerprints of the forms that run; empty: the partition waits.
        owners: form -> the member that keeps it; empty: a strategy places them.
    """

    forms: frozenset[bytes]
    owners: Mapping[bytes, str] = field(default_factory=dict)


def decide_unit(
    family: FamilyDecision,
    running: Mapping[str, frozenset[bytes]],
    members: Mapping[str, Carrier],
    topics: Mapping[bytes, frozenset[str]],
    *,
    released: frozenset[str] = frozenset(),
) -> UnitDecision:
    """Return in which form a partition runs from now on.

    Args:
        family: as decided.
        running: member id -> forms of the family that it ran for this partition.
        members: live members by id.
        topics: fingerprint of each form -> topics of which one task at a time may use a partition.
        released: members from which balance takes this partition.
    """
    others = sorted(
        name
        for name, forms in running.items()
        if forms and not forms & family.wanted and forms <= members[name].forms.keys()
    )
    numbers = UnitNumbers(
        is_wanted=bool(family.wanted),
        runs_wanted=any(forms & family.wanted for forms in running.values()),
        runs_other=bool(others),
        can_switch=all(family.wanted <= members[name].forms.keys() for name in others),
        is_released=bool(others) and others[0] in released,
    )
    form = first(UNIT_RULES, numbers).says
    if form == "same" and others:
        owners = _kept_forms(family.forms, {n: running[n] for n in others}, members, topics)
        return UnitDecision(forms=frozenset(owners), owners=owners)
    return UnitDecision(forms=family.wanted if form == "wanted" else frozenset())


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
