"""What `plan` calls good, its own steps are good in the simulator, and the reverse.

Every pair of releases, with every feature that changes steps, and three kinds of groups. Legs that
the simulator cannot distinguish are bounced once. What the simulator does not model (formats,
several subtopologies) is counted and named in its output: the share with a verdict does not fall.
"""

from collections import Counter
from functools import cache
from itertools import permutations
from typing import NamedTuple

import pytest

from probing import RELEASES, find_release
from system_tests.plan import SimulatedGroup, Use, make_plan
from system_tests.plan.cost import legs_of, options_of
from system_tests.plan.steps import is_fatal
from system_tests.sim import OptionError, not_modelled, plan_bounce, run_bounce
from system_tests.sim.draws import shape_of
from system_tests.sim.known_issues import known_issues
from tests.nightly import sample
from tests.system_tests.explore.table import signature

KAFKA = tuple({r.series: r.name for r in RELEASES if not r.is_native}.values())
USES = [(), (Use.EOS,), (Use.KTABLE,), (Use.FK_JOIN,), (Use.STATIC,), (Use.EOS, Use.KTABLE)]
GROUPS = {
    "one thread": SimulatedGroup(members=2, partitions=4),
    "two threads": SimulatedGroup(members=2, threads=2, partitions=4),
    "three members": SimulatedGroup(members=3, partitions=6),
}
LEAST_SHARE = 0.86
"""Of the plans that the simulator gives a verdict on; the others change formats, or have a leader
whose answers end members with two subtopologies, in either direction."""
WARNINGS = {
    "repeated tasks": "gives every thread all tasks that its process had before",
    "KAFKA-9525": "KAFKA-9525",
}
"""Known issue -> what the plan says of it."""


class Case(NamedTuple):
    """One plan, and the group that it is for."""

    old: str
    new: str
    uses: tuple[Use, ...]
    kind: str

    @property
    def group(self):
        made = GROUPS[self.kind]
        return SimulatedGroup(
            members=made.members,
            threads=made.threads,
            partitions=made.partitions,
            is_static=Use.STATIC in self.uses,
        )


@cache
def plan_of(old, new, uses, threads):
    try:
        return make_plan(find_release(old), find_release(new), frozenset(uses), threads=threads)
    except OptionError:
        return None  # one of the releases does not have the feature


PAIRS = list(permutations(KAFKA, 2))


def cases(pairs):
    """Return every case of some pairs with another simulation, or another verdict of the plan."""
    found, seen = [], set()
    for kind, group in GROUPS.items():
        for uses in USES:
            for old, new in pairs:
                case = Case(old, new, uses, kind)
                made = plan_of(old, new, uses, group.threads)
                if made is None:
                    continue
                legs = tuple(
                    (signature(plan_bounce(options)), options.deletes_state)
                    for leg in legs_of(made)
                    for options in (options_of(case.group, leg, seed=0),)
                )
                key = (kind, Use.STATIC in uses, made.rolling, is_fatal(made), legs)
                if key not in seen:
                    seen.add(key)
                    found.append(case)
    return found


def disagreements(case):
    """Return what the simulator says against a plan that is called good, as sentences."""
    made, group = plan_of(*case[:3], GROUPS[case.kind].threads), case.group
    text = "\n".join((*made.warnings, *made.bugs))
    found = []
    for leg in legs_of(made):
        options = options_of(group, leg, seed=0)
        outcome = run_bounce(options)
        unnamed = [name for name in outcome.known if WARNINGS.get(name, name) not in text]
        if outcome.broken and (not outcome.known or unnamed):
            found.append(f"{case}: {leg}: {outcome.broken[0]} {outcome.known}")
        expected = shape_of(options, find_release(leg.old), find_release(leg.new))
        if not outcome.broken and known_issues(expected) and not made.warnings:
            found.append(f"{case}: nothing is broken, and {known_issues(expected)} is expected")
    return found


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_good_plan_is_good_in_the_simulator():
    pairs = sample(PAIRS, every=43, reason="1,056 bounces: each leg of a plan that differs")
    assert [text for case in cases(pairs) for text in disagreements(case)] == []


def test_what_is_not_modelled_is_named_and_is_few():
    counted = Counter()
    for uses in USES:
        for old, new in PAIRS:
            made = plan_of(old, new, uses, 1)
            if made is None:
                continue
            lines = not_modelled(find_release(old), find_release(new))
            if made.obstacles or is_fatal(made):
                assert lines, (old, new, uses)
                counted["not modelled"] += 1
            else:
                counted["verdict"] += 1
    assert counted["verdict"] / counted.total() >= LEAST_SHARE, counted
