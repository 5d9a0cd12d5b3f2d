"""A broker, and consumers that are closed in the end."""

import pytest

from assignor.adapters.confluent import Consumer
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.confluent.harness import SHORT, TOPOLOGY, servers_of


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"words": 4, "other": 2})) as running:
        yield running


@pytest.fixture
def consumer(broker):
    """Make a consumer: settings with _ for . are those of librdkafka, others of the assignor."""
    made = []

    def make(config=None, *, topology=TOPOLOGY, **options):
        settings = {"bootstrap.servers": servers_of(broker), **SHORT, **(config or {})}
        made.append(Consumer(settings, topology=topology, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
