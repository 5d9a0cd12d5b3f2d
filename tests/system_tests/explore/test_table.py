"""The stored findings of every upgrade: up to date, matched to issues, and in `plan`'s warnings."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from probing import find_release
from system_tests.explore import ISSUES, Presence
from system_tests.plan import Use, make_plan
from tests.nightly import sample
from tests.system_tests.explore.table import SHAPES, STORED, all_ways, measure, same_ways

WARNINGS = {"former-tasks": "returns each member its previous tasks"}
"""Part of `plan`'s warning about issues without a Kafka id; other warnings hold the id."""


@pytest.fixture(scope="module")
def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found(stored):
    """Old and new release and whether members are static -> issues against the upgrade."""
    invalid = defaultdict(set)
    for row in stored["searches"]:
        ids = {
            finding["issue"] for finding in row["findings"] if finding["presence"] != Presence.OLD
        }
        invalid[row["from"], row["to"], row["static"]] |= ids
    every = {}
    for static in (False, True):
        for same in same_ways(static=static):
            every |= {(*way, static): invalid[*same[-1], static] for way in same}
    return every


def sentences(plan):
    return "\n".join((*plan.warnings, *plan.bugs))


def test_every_way_of_the_release_table_is_there(stored, found):
    assert {(old, new) for old, new, static in found if not static} == set(all_ways())
    listed = [[tuple(way.split(" -> ")) for way in same] for same in stored["same"][False]]
    assert listed == same_ways(static=False)


def test_every_finding_is_an_issue(found):
    known = {issue.id for issue in ISSUES}
    assert {issue for ids in found.values() for issue in ids} <= known


def test_plan_warns_of_every_finding_on_a_path_that_it_recommends(found):
    """No path that `plan` recommends has a finding that it does not warn of."""
    silent = []
    for old, new, static in found:
        uses = frozenset({Use.STATIC}) if static else frozenset()
        plan = make_plan(find_release(old), find_release(new), uses)
        if not plan.rolling:
            continue
        text = sentences(plan)
        for leg in pairwise(plan.stops):
            ids = found.get((*leg, static), set())
            silent += [
                (leg, static, issue) for issue in ids if WARNINGS.get(issue, issue) not in text
            ]
    assert silent == []


def test_plan_recommends_no_way_without_a_path(found):
    """KAFKA-6054 and KAFKA-8649 fail the group at the first bounce; a warning is not enough."""
    fatal = {"KAFKA-6054", "KAFKA-8649"}
    for (old, new, _), ids in found.items():
        plan = make_plan(find_release(old), find_release(new))
        if ids & fatal:
            assert not plan.rolling or plan.stops != (old, new)


WAYS = [("2.0.1", "2.3.0"), ("2.4.1", "2.5.1"), ("2.5.1", "2.8.2")]


@pytest.mark.slow
@pytest.mark.parametrize("bounds", SHAPES[:2], ids=["dynamic", "static"])
def test_what_is_stored_is_what_is_found(stored, bounds):
    known = [[way] for way in WAYS if not bounds.static or find_release(way[0]).order >= (2, 3)]
    ways = sample(
        known, every=len(known), reason="10 s for three upgrades; the first one shows most findings"
    )
    fresh = measure([bounds], [ways, ways], workers=1)
    assert len(fresh) == len(ways)
    for row in fresh:
        assert row in stored["searches"]
