"""The stored findings of every upgrade: still true, decided, and warned of by `plan`."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from probing import find_release
from system_tests.explore import ISSUES, Presence
from system_tests.plan import Use, make_plan
from tests.system_tests.explore.table import SHAPES, STORED, all_ways, measure, same_ways

SAID = {"former-tasks": "hands everybody's former tasks back"}
"""How `plan` says what has no number among Kafka's issues; all others it calls by their id."""


@pytest.fixture(scope="module")
def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found(stored):
    """Way and whether members are static -> ids of what speaks against it; of every way."""
    bad = defaultdict(set)
    for row in stored["searches"]:
        ids = {one["issue"] for one in row["findings"] if one["presence"] != Presence.OLD}
        bad[row["from"], row["to"], row["static"]] |= ids
    every = {}
    for static in (False, True):
        for same in same_ways(static=static):
            every |= {(*way, static): bad[*same[-1], static] for way in same}
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


def test_plan_warns_of_whatever_explore_finds_on_a_way_that_it_recommends(found):
    """And recommends no way on which explore finds what it does not warn of."""
    silent = []
    for old, new, static in found:
        uses = frozenset({Use.STATIC}) if static else frozenset()
        plan = make_plan(find_release(old), find_release(new), uses)
        if not plan.rolling:
            continue
        said = sentences(plan)
        for leg in pairwise(plan.stops):
            ids = found.get((*leg, static), set())
            silent += [(leg, static, one) for one in ids if SAID.get(one, one) not in said]
    assert silent == []


def test_plan_recommends_no_way_without_a_path(found):
    """KAFKA-6054 and KAFKA-8649 end the group at the first bounce, so a warning is not enough."""
    fatal = {"KAFKA-6054", "KAFKA-8649"}
    for (old, new, _), ids in found.items():
        plan = make_plan(find_release(old), find_release(new))
        if ids & fatal:
            assert not plan.rolling or plan.stops != (old, new)


WAYS = [("2.0.1", "2.3.0"), ("2.4.1", "2.5.1"), ("2.5.1", "2.8.2")]


@pytest.mark.slow
@pytest.mark.parametrize("bounds", SHAPES[:2], ids=["dynamic", "static"])
def test_what_is_stored_is_what_is_found(stored, bounds):
    ways = [[way] for way in WAYS if not bounds.static or find_release(way[0]).order >= (2, 3)]
    fresh = measure([bounds], [ways, ways])
    for row in fresh:
        assert row in stored["searches"]
