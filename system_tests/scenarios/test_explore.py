"""Complete searches: one step with one crash, and known issues before and after their fix.

The largest are nightly; tests/system_tests/explore searches among two members in every run.
"""

import pytest

from system_tests.explore import Bounds, Presence, explore, place
from system_tests.sim import BounceOptions, plan_bounce

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def search(old, new, *, static=False, issue=None, **bounds):
    plan = plan_bounce(BounceOptions(old=old, new=new, static=static, force=True))
    return explore(plan, Bounds(static=static, **bounds), issue=issue)


@pytest.mark.nightly("a search of minutes; every run searches among two members")
def test_three_members_one_step_one_crash_anywhere():
    explored = search("3.9.1", "native")
    assert explored.complete
    assert explored.found == ()


def test_static_members_move_to_native_without_a_finding():
    explored = search("3.9.1", "native", static=True, members=2, partitions=4)
    assert explored.complete
    assert explored.found == ()


def test_kafka_8649_is_found_among_three_members():
    explored = search("2.0.1", "2.3.0", issue="KAFKA-8649")
    assert [found.issue for found in explored.found] == ["KAFKA-8649"]


@pytest.mark.parametrize(
    ("old", "new", "static", "issue"),
    [
        ("2.6.1", "2.7.2", True, "KAFKA-9821"),
        ("2.6.1", "2.6.2", True, "KAFKA-10455"),
    ],
)
def test_an_issue_is_gone_where_it_was_fixed(old, new, static, issue):
    explored = search(old, new, static=static, issue=issue, members=2, partitions=4)
    assert explored.complete
    assert issue not in {found.issue for found in explored.found}


@pytest.mark.nightly("a search of minutes; every run searches among two members")
def test_kafka_14382_is_gone_as_far_as_it_could_be_found_before():
    before = search("3.3.1", "3.9.1", issue="KAFKA-14382")
    assert [found.issue for found in before.found] == ["KAFKA-14382"]
    after = search("3.3.2", "3.9.1", max_states=4 * before.states)
    assert after.states > before.states
    assert after.found == ()


@pytest.mark.nightly("a search of minutes; every run searches among two members")
def test_two_threads_in_each_process_move_to_native_without_a_finding():
    explored = search("3.9.1", "native", members=2, threads=2, partitions=8, crashes=0)
    assert explored.complete
    assert explored.found == ()


@pytest.mark.nightly("a search of minutes; every run searches among two members")
def test_a_bug_of_the_old_release_alone_is_no_reason_against_an_upgrade():
    plan = plan_bounce(BounceOptions(old="3.1.2", new="3.9.2"))
    bounds = Bounds(more_states=0)
    placed = place(plan, bounds, explore(plan, bounds).found)
    assert {found.found.issue for found in placed} == {"KAFKA-14382"}
    assert {found.presence for found in placed} == {Presence.OLD}
