"""Leaders before 2.2.2 and 2.3.1 pair tasks and partitions wrongly while a newer member joins."""

import pytest

from probing import LeaderModel, find_release

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.mark.nightly("released programs, which do not change; 8 s each")
@pytest.mark.parametrize(
    ("release", "newer", "pin"), [("2.0.1", "2.3.1", None), ("2.3.0", "2.8.2", "2.3")]
)
def test_old_members_die_when_a_newer_one_joins_a_group_with_two_subtopologies(
    word_count_on, kafka_3_9, release, newer, pin
):
    """The leader lists former tasks in one order and their partitions in another.

    The member pairs them in order, and looks for a topic in a subtopology that does not read it.
    """
    assert find_release(release).leader_model is LeaderModel.EMPTY_AND_OWN
    group = word_count_on(kafka_3_9)
    old = group.start("old", release)
    group.settle()
    group.start("newer", newer, upgrade_from=pin)
    old.wait_for("its end", lambda: old.failures)
    assert "NullPointerException" in old.failures[0]
    assert "getTimestampExtractor" in old.failures[0]
