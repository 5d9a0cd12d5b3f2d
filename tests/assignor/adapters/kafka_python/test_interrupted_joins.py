"""Joins that interrupted polls have begun: the client's event loop continues each of them."""

from collections import Counter
from functools import partial

from assignor.adapters.kafka_python import streams_consumer
from assignor.observe import AnswerHandled
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.embedding.clusters import until
from tests.assignor.rebalance.groups import TOPOLOGY

LIMIT_MS = 120_000


def test_an_answer_is_taken_once_however_many_polls_were_interrupted_in_its_join(clock):
    answers = Counter()

    def observe(observation):
        if isinstance(observation, AnswerHandled):
            answers[observation.generation] += 1

    with (
        running_broker(BrokerConfig(topics={"lines": 2})) as broker,
        streams_consumer(
            TOPOLOGY,
            group_id="app",
            bootstrap_servers=broker.bootstrap_servers,
            observer=observe,
            session_timeout_ms=60_000,
        ) as consumer,
    ):
        coordinator = consumer._coordinator
        for joins in (1, 2):
            for _ in range(50):  # what an interrupted poll leaves behind
                join = partial(coordinator.ensure_active_group_async, LIMIT_MS)
                coordinator._net.call_soon_threadsafe(join)
            until(lambda n=joins: len(answers) >= n, lambda: consumer.poll(timeout_ms=100))
            until(coordinator.stable, lambda: consumer.poll(timeout_ms=100))
            coordinator.request_rejoin()
        assert set(answers.values()) == {1}
        assert len(answers) <= 4, "each interrupt cost the group a rebalance"
