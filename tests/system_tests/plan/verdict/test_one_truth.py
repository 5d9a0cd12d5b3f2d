"""What `plan` calls good, its own steps are good in the simulator, and the reverse.

Every pair of releases, with every feature that changes steps, in three kinds of groups, and the
ways back. What the simulator does not model (formats, several subtopologies) is counted and named
in its output: the share of plans with a verdict does not fall.
"""

import json
from collections import Counter

import pytest

from probing import find_release
from system_tests.plan import Use
from system_tests.plan.notes import Trap
from system_tests.plan.steps import is_fatal
from system_tests.sim import not_modelled
from tests.nightly import sample
from tests.system_tests.explore.table import STORED
from tests.system_tests.plan.verdict.truth import GROUPS, PAIRS, USES, compare, plan_of

EDGES = [
    ("1.1.1", "2.0.1"),
    ("2.0.1", "2.3.1"),
    ("2.1.1", "2.3.0"),
    ("2.2.1", "3.6.1"),
    ("2.2.2", "3.6.1"),
    ("2.3.0", "2.4.0"),
    ("2.3.1", "2.4.1"),
    ("2.3.1", "2.5.1"),
    ("2.4.1", "2.5.1"),
    ("2.5.1", "2.4.1"),
    ("2.5.1", "2.6.0"),
    ("2.6.0", "2.3.1"),
    ("3.0.0", "2.2.1"),
    ("3.5.1", "3.3.1"),
    ("3.9.2", "native"),
    ("native", "2.3.0"),
]
"""Pairs on both sides of each trap; `make test` compares them and some others."""
LEAST_SHARE = 0.85
"""Of the plans that the simulator gives a verdict on; the others change formats, or have a leader
whose answers end members with two subtopologies, in either direction."""


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("kind", GROUPS)
def test_plans_and_simulations_of_their_steps_and_ways_back_agree(kind, static):
    others = sample(PAIRS, every=601, reason="100,000 plans, 2,000 legs, 9 seeds each")
    pairs = [*EDGES, *others]
    found = compare(dict.fromkeys(pairs), kind, static=static)
    assert found.legs
    assert found.disagreements == []


def test_what_is_not_modelled_is_named_and_is_few():
    counted = Counter()
    for uses in USES:
        for old, new in sample(PAIRS, every=7, reason="10,000 plans"):
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


def test_what_searches_of_the_same_steps_found_is_in_the_plan_and_the_reverse():
    """The stored searches without crashes: each order of events of two members, some of three."""
    compared = Counter()
    for row in json.loads(STORED.read_text(encoding="utf-8"))["searches"]:
        uses = (Use.STATIC,) if row["static"] else ()
        made = plan_of(row["from"], row["to"], uses, 1)
        if row["crashes"] or made is None or len(made.stops) != 2:
            continue
        new = {f["issue"] for f in row["findings"] if f["presence"] == "introduced by the upgrade"}
        named = "\n".join((*made.traps.values(), *made.bugs))
        assert made.rolling, row
        assert [issue for issue in new if issue not in named] == [], row
        if row["complete"]:
            assert (Trap.STUCK in made.traps) is ("KAFKA-9525" in new), row
        compared["good" if not made.traps else "no go"] += 1
    assert min(compared["good"], compared["no go"]) > 0, compared
