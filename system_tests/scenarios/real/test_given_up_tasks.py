"""What eager members of Kafka Streams write about the tasks that they give up in order to join."""

import pytest

from system_tests.sim.world.behaviour import behaviour_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("release", "pin"), [("2.3.1", None), ("2.8.2", "2.3"), ("3.9.1", "2.3")])
def test_the_model_names_given_up_tasks_as_a_real_member_does(
    word_count_on, kafka_3_9, release, pin
):
    group = word_count_on(kafka_3_9)
    group.start("first", release, upgrade_from=pin)
    group.settle()
    group.start("second", release, upgrade_from=pin)
    described = {member.client: member for member in group.settle().members}
    named = described["first"].subscription.prev_tasks
    assert behaviour_of(release, pin).names_given_up_tasks is bool(named)
    assert len(named) in {0, 8}, "all that it ran, or none"
