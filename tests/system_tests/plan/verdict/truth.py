"""What plans say of their own steps, and what the simulator shows of exactly these steps.

`python -m tests.system_tests.plan.verdict.truth` compares every plan: all pairs of releases, all
uses that change steps, three kinds of groups; minutes. Legs that the simulator cannot distinguish
are bounced once.
"""

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

import click

from probing import RELEASES, find_release
from system_tests.engine import OptionError
from system_tests.plan import SimulatedGroup, UpgradePlan, Use, decision_of
from system_tests.plan.cost import Leg, legs_of, options_of
from system_tests.plan.cost.legs import undo_legs
from system_tests.plan.notes import Trap
from system_tests.plan.steps import plan_of_way
from system_tests.plan.uses import check_uses
from system_tests.plan.way import assumed_running, way_between
from system_tests.sim import plan_bounce, run_bounce
from tests.nightly import examples
from tests.system_tests.explore.table import signature

PAIRS = list(permutations([release.name for release in RELEASES], 2))
USES = [
    (),
    (Use.EOS,),
    (Use.KTABLE,),
    (Use.FK_JOIN,),
    (Use.STATIC,),
    (Use.EOS, Use.KTABLE),
    (Use.STATIC, Use.KTABLE),
]
GROUPS = {
    "one thread": SimulatedGroup(members=2, partitions=4),
    "two threads": SimulatedGroup(members=2, threads=2, partitions=4),
    "three members": SimulatedGroup(members=3, partitions=6),
}
SEEDS, MORE_SEEDS = examples(9), 40
"""Bounces of a leg that is called good; at most, of one that is not, until it shows that."""
RULES = {
    "one owner": Trap.REPEATED,
    "one active": Trap.REPEATED,
    "settles": Trap.STUCK,
    "nobody stays future": Trap.STUCK,
    "nothing is forgotten": Trap.STUCK,
    "nobody dies": Trap.FATAL,
    "answers are readable": Trap.FATAL,
}
"""Rule of the simulator -> the trap that breaks it; another rule explains nothing."""
NOT_MODELLED = frozenset({Trap.FATAL})
"""Traps of groups that a simulation does not have: with more than one subtopology."""


@dataclass
class Compared:
    """Plans by their verdict, distinct legs, and what plans and simulations do not agree on."""

    verdicts: Counter[str] = field(default_factory=Counter)
    legs: set[Hashable] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)


def plan_of(old: str, new: str, uses: tuple[Use, ...], threads: int) -> UpgradePlan | None:
    """Return a plan that takes bounces into their traps; None: a release lacks a feature."""
    used = frozenset(uses)
    try:
        check_uses(find_release(old), find_release(new), used)
    except OptionError:
        return None
    ends = assumed_running(find_release(old), find_release(new), used)
    return plan_of_way(way_between(*ends, used), ends, used, threads=threads)


_SHOWN: dict[Hashable, tuple[int, frozenset[str]]] = {}
"""Distinct leg -> seeds that were bounced, and what was broken: traps, or names of rules."""


def shown_by(group: SimulatedGroup, leg: Leg, claimed: frozenset[Trap]) -> frozenset[str]:
    """Return the traps that bounces of a leg run into; a rule that no trap explains is itself."""
    key = _key(group, leg)
    seeds, found = _SHOWN.get(key, (0, frozenset()))
    while (seeds < SEEDS and not found) or (seeds < MORE_SEEDS and not claimed <= found):
        outcome = run_bounce(options_of(group, leg, seed=seeds))
        found |= {RULES.get(broken.rule, broken.rule) for broken in outcome.broken}
        seeds += 1
    _SHOWN[key] = (seeds, found)
    return found


def _key(group: SimulatedGroup, leg: Leg) -> Hashable:
    options = options_of(group, leg, seed=0)
    sizes = (group.members, group.threads, group.is_static)
    return (*sizes, signature(plan_bounce(options)), options.deletes_state, leg.offline)


def disagreements(made: UpgradePlan, group: SimulatedGroup) -> Iterator[str]:
    """Yield where a plan and the simulation of its steps, or of its ways back, differ."""
    ahead, back = frozenset(made.traps), frozenset(made.back_traps)
    for way, legs, claimed, allowed in (
        ("", legs_of(made), ahead, ahead),
        ("going back: ", undo_legs(made), back, ahead | back),
    ):
        shown = _shown(group, legs, claimed - NOT_MODELLED)
        yield from (f"{way}breaks, not in the verdict: {trap}" for trap in shown - allowed)
        missing = claimed - NOT_MODELLED - shown
        yield from (f"{way}in the verdict, never broken: {trap}" for trap in missing)
    for leg, numbers in legs_of(made).items():
        waits = plan_bounce(options_of(group, leg, seed=0)).waits
        if waits != {at for at, number in enumerate(numbers) if made.steps[number - 1].expires}:
            yield f"steps {numbers} do not wait for sessions as their bounces do: {waits}"
    decision = decision_of(made, group)
    if decision.is_red != (bool(made.traps) or not made.rolling):
        yield f"{decision.words}, with {set(made.traps)}"


def _shown(group: SimulatedGroup, legs: Iterable[Leg], claimed: frozenset[Trap]) -> frozenset[str]:
    """Return what bounces of all legs run into; traps are looked for in the oldest legs first."""
    found = frozenset().union(*(shown_by(group, leg, frozenset()) for leg in legs))
    for leg in sorted(legs, key=lambda leg: find_release(leg.old).order):
        if claimed <= found:
            break
        found |= shown_by(group, leg, claimed)
    return found


def compare(pairs: Iterable[tuple[str, str]], kind: str, *, static: bool) -> Compared:
    """Compare the plans of some pairs in one kind of group, with and without instance ids."""
    found = Compared()
    group = replace(GROUPS[kind], is_static=static)
    pairs = list(pairs)
    for uses in (uses for uses in USES if (Use.STATIC in uses) is static):
        for old, new in pairs:
            made = plan_of(old, new, uses, group.threads)
            if made is None:
                continue
            found.verdicts[decision_of(made, group).words.partition(", as ")[0]] += 1
            found.legs |= {_key(group, leg) for leg in (*legs_of(made), *undo_legs(made))}
            what = f"{kind}, {old} to {new}, {'+'.join(uses) or 'no uses'}"
            found.disagreements += [f"{what}: {text}" for text in disagreements(made, group)]
    return found


def main() -> int:
    """Print one table for each kind of group; 1: plans and simulations disagree."""
    wrong = 0
    for kind in GROUPS:
        for static in (False, True):
            found = compare(PAIRS, kind, static=static)
            click.echo(
                f"{kind}{', static' * static}: {found.verdicts.total():,} plans,"
                f" {len(found.legs):,} distinct legs, {len(found.disagreements)} disagreements"
            )
            for verdict, count in found.verdicts.most_common():
                click.echo(f"  {count:6,} {verdict}")
            for text in found.disagreements[:20]:
                click.echo(f"  ! {text}")
            wrong += len(found.disagreements)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
