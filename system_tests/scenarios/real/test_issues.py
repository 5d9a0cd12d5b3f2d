"""A bug of history in the real releases that have it: the release table is right about them."""

import pytest

from probing import find_release

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def test_kafka_8649_a_leader_of_2_3_0_kills_a_member_of_2_0_1(word_count_on, kafka_3_9):
    """The leader names its own latest version, 4, and the old member tries to write it.

    A leader of 2.3.0 with records at hand dies of a group at version 3, too. If it does so before
    the old member has its answer, that one goes on alone, so there are no records any more.
    """
    assert "KAFKA-8649" in find_release("2.3.0").open_issues
    group = word_count_on(kafka_3_9)
    group.start("leader", "2.3.0")
    group.settle()
    group.finish()
    old = group.start("old", "2.0.1")
    old.wait_for("an answer", lambda: old.active or old.failures, timeout_s=150)
    group.stop("leader")  # the next rebalance, if the leader's own has not been it
    old.wait_for("its end", lambda: old.failures)
    assert "version must be between 1 and 3; was: 4" in old.failures[0]


def test_kafka_8649_is_fixed_in_2_3_1(word_count_on, kafka_3_9):
    assert "KAFKA-8649" not in find_release("2.3.1").open_issues
    group = word_count_on(kafka_3_9)
    group.start("leader", "2.3.1")
    group.settle()
    group.start("old", "2.0.1")
    described = group.settle()
    assert dict(described.used_versions) == {"leader": 3, "old": 3}
    assert group.failures() == {}
