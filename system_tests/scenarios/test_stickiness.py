"""README's loop with each client: a join or a leave moves as few running tasks as possible.

Of twelve tasks, a third member takes four from the others and a fourth three. Where it leaves, only
its own three go elsewhere.
"""

import pytest

from system_tests.broker import BrokerConfig, running_broker
from system_tests.support.client_members import MemberGroup

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("client", "protocol", "has_stores"),
    [
        ("aiokafka", "eager", False),
        ("aiokafka", "eager", True),
        ("confluent", "cooperative", False),
        ("kafka-python", "cooperative", True),
    ],
)
def test_confluent_kafka_go_622_a_join_moves_what_it_has_to(client, protocol, has_stores):
    with running_broker(BrokerConfig(topics={"words": 12})) as broker:
        group = MemberGroup(
            client,
            broker.bootstrap_servers,
            tasks=12,
            has_stores=has_stores,
            rebalance_protocol=protocol,
        )
        try:
            group.join("one")
            group.join("two")
            moved = group.join("three"), group.join("four"), group.leave("four")
        finally:
            group.close()
    assert moved == (4, 3, 0)
