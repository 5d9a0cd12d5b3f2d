"""Checks of whole traces: causes of rebalances, final versions, rest."""

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.sim.events import Cause, Settled, Unsettled
from system_tests.sim.liveness import (
    check_final_version,
    check_resting_versions,
    check_settles,
    check_version_rebalances,
    count_rebalances,
)

REST = Settled(1, 1, "a", (("a", 11),))


def event(kind, *, reason="", number=1):
    return GroupEvent(at_ms=1, kind=kind, group_id="g", generation=number, reason=reason)


def rebalance(number, *events):
    return (*events, event(EventKind.GENERATION_COMPLETED, number=number))


def rejoined(reason):
    return event(EventKind.MEMBER_REJOINED, reason=reason)


def test_a_rebalance_counts_under_its_first_cause():
    trace = (
        REST,
        *rebalance(2, event(EventKind.MEMBER_JOINED, reason=Cause.STARTED), rejoined("version")),
        *rebalance(3, rejoined(Cause.REBALANCE), rejoined(Cause.VERSION)),
        *rebalance(4, rejoined(Cause.FOLLOWUP)),
        *rebalance(5, rejoined(Cause.REVOKED), rejoined(Cause.REBALANCE)),
        *rebalance(6, rejoined(Cause.RETRY)),
        *rebalance(7, event(EventKind.MEMBER_EXPIRED)),
        *rebalance(8, event(EventKind.MEMBER_LEFT, reason=Cause.VERSION)),
    )
    found = count_rebalances(trace)
    assert (found.membership, found.version) == ((2, 7), (3, 8))
    assert (found.followup, found.repeated) == ((4, 5), (6,))
    assert found.total == 7


def test_nothing_counts_before_the_group_has_settled():
    assert count_rebalances((*rebalance(1, rejoined(Cause.VERSION)), REST)).total == 0


def test_too_many_rebalances_for_the_version_are_reported():
    trace = (REST, *rebalance(2, rejoined("version")), *rebalance(3, rejoined("version")))
    counted = count_rebalances(trace)
    assert check_version_rebalances(counted, 2, at_ms=9) == []
    (broken,) = check_version_rebalances(counted, 1, at_ms=9)
    assert (broken.rule, broken.at_ms) == ("version rebalances", 9)


def test_a_group_that_does_not_settle_is_reported():
    assert check_settles((REST,)) == []
    found = check_settles((REST, Unsettled(9, 1000, "waiting for a")))
    assert [(violation.rule, violation.at_ms) for violation in found] == [("settles", 9)]


def test_versions_at_rest_are_allowed_ones_and_the_same_for_all():
    both = REST._replace(used_versions=(("a", 11), ("b", 11)))
    mixed = REST._replace(used_versions=(("a", 11), ("b", 101)))
    assert check_resting_versions((mixed, both), (11,)) == []
    assert check_resting_versions((mixed,), (11, 101), is_uniform=False) == []
    assert [violation.rule for violation in check_resting_versions((mixed,), (11, 101))] == [
        "final versions"
    ]
    assert [violation.rule for violation in check_resting_versions((both,), (10,))] == [
        "final versions"
    ]
    assert check_resting_versions((), (11,)) == []


def test_after_the_forced_rebalance_all_members_write_one_version():
    both = REST._replace(used_versions=(("a", 101), ("b", 101)))
    mixed = REST._replace(used_versions=(("a", 11), ("b", 101)))
    assert check_final_version((mixed, both), 101) == []
    assert [violation.rule for violation in check_final_version((both, mixed), 101)] == [
        "final versions"
    ]
    assert [violation.rule for violation in check_final_version((both,), 11)] == ["final versions"]
    assert check_final_version((), 101) == []
