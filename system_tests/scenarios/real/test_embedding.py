"""The word count on real brokers: a changelog as in Kafka Streams, and exact counts."""

import pytest
from kafka.admin import ConfigResource, KafkaAdminClient

from system_tests.scenarios.test_word_count import CHANGELOG, PARTITIONS, Application

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def changelog_of(broker):
    """(partitions, cleanup.policy) of the changelog."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    [row] = admin.describe_topics([CHANGELOG])
    response = admin.describe_configs([ConfigResource("TOPIC", CHANGELOG)])
    admin.close()
    return len(row["partitions"]), response["topic"][CHANGELOG]["cleanup.policy"]["value"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "kafka_3_9", marks=pytest.mark.nightly("30 s; every run has the newest broker")
        ),
        "kafka_4",
    ],
)
def test_the_word_count_survives_a_kill_on_a_real_broker(name, request, tmp_path):
    broker = request.getfixturevalue(name)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics({"words": {"num_partitions": PARTITIONS, "replication_factor": 1}})
    admin.close()
    application = Application(broker.bootstrap_servers, tmp_path)
    try:
        for member in ("one", "two"):
            application.start(member)
        application.settled(members=2)
        assert changelog_of(broker) == (PARTITIONS, "compact")
        application.write(200)
        application.counted()
        application.copied(2)
        application.members.pop("one").kill()
        application.write(100)
        application.counted()
    finally:
        application.close()
