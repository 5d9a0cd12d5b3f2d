"""The word count on real brokers: a changelog as Kafka Streams makes it, and exact counts."""

import pytest
from kafka.admin import ConfigResource, KafkaAdminClient

from system_tests.scenarios.test_word_count import CHANGELOG, PARTITIONS, World

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def changelog_of(broker):
    """(partitions, cleanup.policy) of the changelog."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    [row] = admin.describe_topics([CHANGELOG])
    said = admin.describe_configs([ConfigResource("TOPIC", CHANGELOG)])
    admin.close()
    return len(row["partitions"]), said["topic"][CHANGELOG]["cleanup.policy"]["value"]


@pytest.mark.parametrize("name", ["kafka_3_9", "kafka_4"])
def test_the_word_count_survives_a_kill_on_a_real_broker(name, request, tmp_path):
    broker = request.getfixturevalue(name)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics({"words": {"num_partitions": PARTITIONS, "replication_factor": 1}})
    admin.close()
    world = World(broker.bootstrap_servers, tmp_path)
    try:
        for member in ("one", "two"):
            world.start(member)
        world.settled(members=2)
        assert changelog_of(broker) == (PARTITIONS, "compact")
        world.say(200)
        world.counted()
        world.copied(2)
        world.members.pop("one").kill()
        world.say(100)
        world.counted()
    finally:
        world.close()
