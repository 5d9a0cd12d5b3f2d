"""Loops over one consumer that overlap: a generator that is still referred to has not ended."""

from collections import Counter
from types import SimpleNamespace

import pytest
from kafka import TopicPartition

from assignor.adapters.aiokafka.port import AiokafkaPort
from assignor.adapters.consumer_state import own_resets
from assignor.adapters.processing import GroupConsumer


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_each_loop_has_the_setting_of_the_application_and_the_last_restores_it(first_ends_first):
    client = SimpleNamespace(resets_to="earliest")
    loops = [own_resets(client, "resets_to", "none") for _ in range(2)]
    assert [loop.__enter__() for loop in loops] == ["earliest", "earliest"]
    for loop in loops if first_ends_first else loops[::-1]:
        assert client.resets_to == "none"
        loop.__exit__(None, None, None)
    assert client.resets_to == "earliest"
    client.resets_to = "latest"
    with own_resets(client, "resets_to", "none") as before:
        assert before == "latest"


def test_a_setting_that_raises_lost_positions_stays():
    client = SimpleNamespace(resets_to="none")
    with own_resets(client, "resets_to", "none") as before:
        assert (before, client.resets_to) == ("none", "none")
    assert client.resets_to == "none"


def test_a_member_of_aiokafka_does_not_join_in_a_batch_though_an_earlier_loop_ends():
    port = AiokafkaPort(Counter())
    first, second = port.loop(), port.loop()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not port._has_no_batch.is_set()
    second.__exit__(None, None, None)
    assert port._has_no_batch.is_set()


def test_a_seek_asks_once_for_the_assignment():
    """It is a copy each time: a seek of many partitions would be quadratic."""
    calls = Counter()
    partitions = [TopicPartition("in", number) for number in range(50)]

    def assignment():
        calls["assignment"] += 1
        return {*partitions}

    consumer = SimpleNamespace(assignment=assignment, seek=lambda *_: calls.update(["seek"]))
    client = GroupConsumer(consumer, None, 1000, {}, "none")
    client.seek(dict.fromkeys([*partitions, TopicPartition("in", 50)], 7))
    assert calls == {"assignment": 1, "seek": 50}
