"""What `run_tasks` does between two polls."""

from types import SimpleNamespace

from kafka import TopicPartition as ClientPartition

from assignor.adapters.kafka_python.polling import ConsumerLoop
from encoding import TopicPartition

FIRST, SECOND, THIRD = (ClientPartition("words", number) for number in range(3))


def test_partitions_are_paused_until_their_tasks_are_restored():
    calls = SimpleNamespace(paused=[], resumed=[])
    consumer = SimpleNamespace(
        assignment=lambda: {FIRST, SECOND, THIRD},
        paused=lambda: {SECOND, THIRD},
        pause=lambda *partitions: calls.paused.extend(partitions),
        resume=lambda *partitions: calls.resumed.extend(partitions),
    )
    waiting = {TopicPartition("words", 0), TopicPartition("words", 1), TopicPartition("words", 7)}
    ConsumerLoop(consumer, None, 0).fetch_except(waiting)
    assert (calls.paused, calls.resumed) == ([FIRST], [THIRD])
