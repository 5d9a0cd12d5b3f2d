"""Decision tables of a rolling change of the topology: which form of a subtopology runs where.

A *family* are the forms that may not run for the same partition at the same time. The first table
decides the version whose forms are *wanted* in a family; the second one what becomes of a partition
that a member runs in another form. The third one decides for a *chain*, whose families change
together: which version of it runs. The first row that holds decides. A family with one form and
without memory always runs: this is the case of all kept, added and removed subtopologies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRule:
    """One row: its condition, the wanted version, whether it is remembered, and the sentence."""

    name: str
    holds: Callable[[FamilyNumbers], bool]
    wanted: Callable[[FamilyNumbers], int | None]
    remembered: bool
    why: str


FORM_RULES: Final = (
    FormRule(
        name="a finalized level",
        holds=lambda n: n.level is not None and n.level in n.live,
        wanted=lambda n: n.level,
        remembered=True,
        why="topology.version is finalized at {level}",
    ),
    FormRule(
        name="a version that was never reached",
        holds=lambda n: not n.newest_is_known and not n.is_held_back,
        wanted=lambda n: n.newest,
        remembered=True,
        why="a live member carries version {newest}, which is reached from now on",
    ),
    FormRule(
        name="reached, and carried",
        holds=lambda n: n.reached is not None and n.from_reached is not None,
        wanted=lambda n: n.from_reached,
        remembered=False,
        why="version {reached} was reached in epoch {epoch}",
    ),
    FormRule(
        name="reached, and carried by no member",
        holds=lambda n: n.reached is not None,
        wanted=lambda _: None,
        remembered=False,
        why="version {reached} was reached in epoch {epoch}, and no member carries it or a later"
        " one: start such a member, or go back with assignor features downgrade-topology",
    ),
    FormRule(
        name="held back",
        holds=lambda _: True,
        wanted=lambda n: n.common[-1],
        remembered=False,
        why="all members carry version {common_newest}, and not all carry {newest}: the group"
        " switches when all can, or when topology.version is raised",
    ),
)


def form_rule(numbers: FamilyNumbers) -> FormRule:
    """Return the row that decides the wanted version of a family."""
    return next(rule for rule in FORM_RULES if rule.holds(numbers))


def why_form(numbers: FamilyNumbers, rule: FormRule) -> str:
    """Fill in the row's sentence."""
    return rule.why.format(
        level=numbers.level,
        newest=numbers.newest,
        reached=numbers.reached,
        epoch=numbers.epoch,
        common_newest=numbers.common[-1] if numbers.common else "none",
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRule:
    """One row: its condition, what becomes of the partition, and the sentence.

    ``form`` is "wanted" (placed by the strategy on members with that form), "same" (stays on its
    member in its form) or "none" (waits).
    """

    name: str
    holds: Callable[[UnitNumbers], bool]
    form: str
    why: str


UNIT_RULES: Final = (
    UnitRule(
        name="runs in the wanted form",
        holds=lambda n: n.is_wanted and n.runs_wanted,
        form="wanted",
        why="a member runs it in the wanted form: it never returns by itself",
    ),
    UnitRule(
        name="its member can switch",
        holds=lambda n: n.is_wanted and n.runs_other and n.can_switch,
        form="wanted",
        why="the members that run it carry the wanted form as well",
    ),
    UnitRule(
        name="moved by balance",
        holds=lambda n: n.is_wanted and n.runs_other and n.is_released,
        form="wanted",
        why="its member has more than its share: it moves, and changes its form with that",
    ),
    UnitRule(
        name="stays with its member",
        holds=lambda n: n.runs_other,
        form="same",
        why="its members keep the old forms until they stop or balance moves the partition; an old"
        " form that no member runs starts on one of them",
    ),
    UnitRule(
        name="orphaned",
        holds=lambda n: n.is_wanted,
        form="wanted",
        why="no live member runs it: it starts in the wanted form",
    ),
    UnitRule(
        name="waits",
        holds=lambda _: True,
        form="none",
        why="no live member carries the wanted form, and none runs another one",
    ),
)


def unit_rule(numbers: UnitNumbers) -> UnitRule:
    """Return the row that decides what becomes of a partition."""
    return next(rule for rule in UNIT_RULES if rule.holds(numbers))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainRule:
    """One row: its condition, whether the wanted version runs (else the other), the sentence."""

    name: str
    holds: Callable[[ChainNumbers], bool]
    runs_wanted: bool
    why: str


CHAIN_RULES: Final = (
    ChainRule(
        name="runs in the wanted version",
        holds=lambda n: n.runs_wanted,
        runs_wanted=True,
        why="a member runs a part of it in version {wanted}: it never returns by itself",
    ),
    ChainRule(
        name="run by no member",
        holds=lambda n: not n.runs_other,
        runs_wanted=True,
        why="no live member runs a part of it: it starts in version {wanted}",
    ),
    ChainRule(
        name="most members can change",
        holds=lambda n: n.able > n.unable,
        runs_wanted=True,
        why="{able} members can run version {wanted}, and {unable} cannot",
    ),
    ChainRule(
        name="stays together",
        holds=lambda _: True,
        runs_wanted=False,
        why="subtopologies that a changed repartition topic joins change together, once more"
        " members can run version {wanted} ({able} now) than cannot ({unable} now)",
    ),
)


def chain_rule(numbers: ChainNumbers) -> ChainRule:
    """Return the row that decides which version of a chain runs."""
    return next(rule for rule in CHAIN_RULES if rule.holds(numbers))


def why_chain(numbers: ChainNumbers, rule: ChainRule) -> str:
    """Fill in the row's sentence."""
    return rule.why.format(wanted=numbers.wanted, able=numbers.able, unable=numbers.unable)
