"""Whether a finding is a reason against an upgrade: the releases in which it is present."""

import pytest

from system_tests.engine import Broken
from system_tests.explore import (
    Bounds,
    Explored,
    Finding,
    Found,
    Presence,
    explore,
    lines_of,
    place,
    presence,
)
from system_tests.sim import BounceOptions, plan_bounce

PLAN = plan_bounce(BounceOptions(old="3.1.2", new="3.9.2"))
BOUNDS = Bounds(members=3)


def found(rule="settles", issue="KAFKA-14382"):
    broken = Broken(rule=rule, at_ms=0, sentence="what broke")
    return Found(finding=Finding(broken=broken, recent=()), issue=issue, moves=())


def explored(*findings, stopped=None):
    return Explored(states=1, transitions=1, stopped=stopped, found=findings)


@pytest.fixture
def searches(monkeypatch):
    """Result of the search of each release alone, and the searches that were requested."""
    seen, asked = {}, []

    def explore(plan, bounds, *, wanted, workers, is_out_of_time, on_progress):
        assert {plan.old} == {stage.release for stage in plan.stages}
        assert (bounds, is_out_of_time()) == (BOUNDS, False)
        asked.append((plan.old, wanted))
        return seen[plan.old]

    monkeypatch.setattr(presence, "explore", explore)
    return seen, asked


def test_a_finding_of_the_new_release_is_bad_even_if_the_old_one_has_it_too(searches):
    seen, asked = searches
    seen["3.1.2"] = seen["3.9.2"] = explored(found(), stopped="every wanted finding is found")
    (placed,) = place(PLAN, BOUNDS, [found()])
    assert (placed.presence, placed.is_bad, placed.is_certain) == (Presence.NEW, True, True)
    assert asked == [
        (old_or_new, {("settles", "KAFKA-14382")}) for old_or_new in ("3.1.2", "3.9.2")
    ]


def test_a_finding_of_the_old_release_only_is_no_reason_against_the_upgrade(searches):
    seen, _ = searches
    seen.update({"3.9.2": explored(), "3.1.2": explored(found())})
    (placed,) = place(PLAN, BOUNDS, [found()])
    assert (placed.presence, placed.is_bad, placed.is_certain) == (Presence.OLD, False, True)
    lines = lines_of(PLAN, BOUNDS, explored(found()), [placed], issue=None)
    assert lines[1] == (
        "  present in the old release only: 3.1.2 alone breaks the rule, 3.9.2 alone does not"
    )
    assert lines[-1] == ("good, every finding is present in the old release only: 3.1.2 -> 3.9.2")


@pytest.mark.parametrize("other", [found(issue=None), found(rule="nobody dies")])
def test_a_finding_of_neither_release_alone_was_introduced_by_the_upgrade(searches, other):
    seen, _ = searches
    seen.update({"3.9.2": explored(), "3.1.2": explored(other)})
    (placed,) = place(PLAN, BOUNDS, [found()])
    assert (placed.presence, placed.is_bad) == (Presence.UPGRADE, True)


def test_an_incomplete_search_of_one_release_makes_the_presence_uncertain(searches):
    seen, _ = searches
    seen.update({"3.9.2": explored(stopped="time limit"), "3.1.2": explored(found())})
    (placed,) = place(PLAN, BOUNDS, [found()])
    assert (placed.presence, placed.is_certain) == (Presence.OLD, False)
    lines = lines_of(PLAN, BOUNDS, explored(found()), [placed], issue=None)
    assert lines[1].endswith("3.9.2 alone does not (search incomplete)")


def test_the_worst_finding_is_first(searches):
    seen, _ = searches
    old, new, upgrade = found(), found("nobody dies", None), found("one owner", None)
    seen.update({"3.9.2": explored(new), "3.1.2": explored(old)})
    placed = place(PLAN, BOUNDS, [old, upgrade, new])
    assert [finding.found for finding in placed] == [new, upgrade, old]
    assert lines_of(PLAN, BOUNDS, explored(), placed, issue=None)[-1].startswith(
        "bad, present in the new release: "
    )


@pytest.mark.nightly("a search among three members takes minutes")
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_a_finding_of_the_new_release_among_three_is_not_introduced_among_two(
    static,
):
    plan = plan_bounce(BounceOptions(old="2.4.1", new="2.8.2", static=static))
    bounds = Bounds(members=2, partitions=4, crashes=0, static=static)
    (placed,) = place(plan, bounds, explore(plan, bounds).found)
    assert (placed.found.issue, placed.presence) == ("KAFKA-14382", Presence.NEW)


def test_nothing_found_needs_no_more_searches(searches):
    assert place(PLAN, BOUNDS, []) == ()
    assert searches[1] == []
