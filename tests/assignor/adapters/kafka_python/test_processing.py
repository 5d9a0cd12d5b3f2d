"""What `run_tasks` asks of a consumer of kafka-python."""

from types import SimpleNamespace

from kafka import TopicPartition as ClientPartition

from assignor.adapters.kafka_python.polling import ConsumerLoop
from encoding import TopicPartition


def test_partitions_are_paused_as_the_clients_own_which_checks_their_class():
    given = []
    consumer = SimpleNamespace(pause=lambda *partitions: given.extend(partitions))
    ConsumerLoop(consumer, None, 0, "none").pause(
        {TopicPartition("words", 1), TopicPartition("words", 0)}
    )
    assert given == [ClientPartition("words", 0), ClientPartition("words", 1)]
    assert {type(each) for each in given} == {ClientPartition}
