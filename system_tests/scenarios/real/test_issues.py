"""A known issue in the real releases that have it, as the release table states."""

import pytest

from probing import find_release

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

TASKS = 8
MORE_STARTS = 2


def old_member_beside(group, release):
    """Start a member of 2.0.1 beside a leader, stop the leader, and wait for the result."""
    group.start("leader", release)
    group.settle()
    group.finish()
    old = group.start("old", "2.0.1")
    old.wait_for("an answer", lambda: old.active or old.failures)
    group.stop("leader")  # the next rebalance, if the leader's own has not been it
    old.wait_for("its end, or all tasks", lambda: old.failures or len(old.active) == TASKS)
    return old


@pytest.mark.nightly("released programs, which do not change; 25 s to a minute")
def test_kafka_8649_a_leader_of_2_3_0_kills_a_member_of_2_0_1(word_count_on, kafka_3_9):
    """The leader names its own latest version, 4, and the old member tries to write it.

    A leader of 2.3.0 that is joined by version 3 leaves and joins anew, or dies if it has records
    at hand. An old member that stands still at that moment misses the answer, leads by itself and
    continues; so there are no records, and such a member is started once more.
    """
    assert "KAFKA-8649" in find_release("2.3.0").open_issues
    group = word_count_on(kafka_3_9, session_timeout_ms=10_000)
    old = old_member_beside(group, "2.3.0")
    for _ in range(MORE_STARTS):
        if not old.failures:
            group.stop("old")
            old = old_member_beside(group, "2.3.0")
    assert "version must be between 1 and 3; was: 4" in old.failures[0]


@pytest.mark.nightly("released programs, which do not change; 20 s")
def test_kafka_8649_is_fixed_in_2_3_1(word_count_on, kafka_3_9):
    assert "KAFKA-8649" not in find_release("2.3.1").open_issues
    group = word_count_on(kafka_3_9)
    group.start("leader", "2.3.1")
    group.settle()
    group.start("old", "2.0.1")
    described = group.settle()
    assert dict(described.used_versions) == {"leader": 3, "old": 3}
    assert group.failures() == {}
