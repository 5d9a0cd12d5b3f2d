"""A broker, and consumers that are closed in the end."""

import gc
import threading
import weakref
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException

from assignor.adapters.confluent import Consumer
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.confluent.harness import LIMIT_S, SHORT, TOPOLOGY, servers_of


@pytest.fixture(autouse=True)
def _closed(monkeypatch):
    """Close every consumer, so that no thread runs during later tests."""
    made, begin = [], Consumer.__init__

    def recording(self, *arguments, **options):
        begin(self, *arguments, **options)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Consumer, "__init__", recording)
    yield
    for each in filter(None, (reference() for reference in made)):
        with suppress(RuntimeError, KafkaException):
            each.close()
    gc.collect()
    waiting = [t for t in threading.enumerate() if t.name.startswith("member-")]
    for thread in waiting:
        thread.join(LIMIT_S)
    assert not [thread.name for thread in waiting if thread.is_alive()]


@pytest.fixture
def broker(clock):
    with running_broker(BrokerConfig(topics={"words": 4, "other": 2})) as running:
        yield running


@pytest.fixture
def consumer(broker):
    """Make a consumer: settings with _ for . are those of librdkafka, others of the assignor."""
    made = []

    def make(config=None, *, topology=TOPOLOGY, knows_leaders=True, **options):
        settings = {"bootstrap.servers": servers_of(broker), **SHORT, **(config or {})}
        made.append(Consumer(settings, topology=topology, **options))
        # librdkafka waits half a second with partitions whose leader it does not know yet.
        with suppress(KafkaException):
            if knows_leaders:
                made[-1].list_topics("words", timeout=1)
        return made[-1]

    yield make
    for each in made:
        each.close()
