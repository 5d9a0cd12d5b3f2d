"""A broker, and Quix applications that count words on it."""

import os
from dataclasses import replace
from importlib.util import find_spec

import pytest

from system_tests.broker import TEST_COORDINATOR, BrokerConfig, running_broker

# The extra `quix` requires an older confluent-kafka than all other tests: `make test-quix`.
is_needed = find_spec("quixstreams") or "TEST_QUIX" in os.environ
collect_ignore_glob = [] if is_needed else ["test_*.py"]


@pytest.fixture
def broker(request, clock):
    """A broker; its parameter: how long an empty group waits for more members, in ms."""
    coordinator = replace(TEST_COORDINATOR, initial_rebalance_delay_ms=getattr(request, "param", 0))
    topics = {"words": 4, "other": 4, "counts": 4}
    with running_broker(BrokerConfig(topics=topics, coordinator=coordinator)) as running:
        yield running


@pytest.fixture
def application(broker, tmp_path):
    """Make an application of the group `app`, with a state directory by its name."""
    from quixstreams import Application  # noqa: PLC0415 see above

    def make(name="one", **settings):
        return Application(
            broker_address=broker.bootstrap_servers[0],
            **{
                "consumer_group": "app",
                "auto_offset_reset": "earliest",
                "state_dir": tmp_path / name,
                "loglevel": None,
                "consumer_poll_timeout": 0.1,
            }
            | settings,
        )

    return make


@pytest.fixture
def counting(application):
    """Make an application that counts the words of the topic `words` by key."""

    def make(name="one", **settings):
        made = application(name, **settings)
        words = made.topic("words", key_deserializer="str", value_deserializer="bytes")
        counts = made.topic("counts", key_serializer="str", value_serializer="json")

        def count(_, state):
            state.set("count", state.get("count", 0) + 1)
            return {"count": state.get("count")}

        made.dataframe(words).apply(count, stateful=True).to_topic(counts)
        return made

    return make
