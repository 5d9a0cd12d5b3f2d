"""Records that a `KafkaConsumer` has fetched, and that are fetched again."""

from collections import deque
from types import SimpleNamespace

from kafka.consumer.fetcher import Fetcher
from kafka.structs import TopicPartition

from assignor.adapters.kafka_python.records import drop_fetched

GONE, KEPT = TopicPartition("in", 0), TopicPartition("in", 1)


def test_nothing_stays_of_a_partition_that_is_fetched_again_also_while_it_is_paused():
    """The client keeps what it has fetched of a paused partition in two other places."""
    drained = []
    fetches = {each: SimpleNamespace(topic_partition=each) for each in (GONE, KEPT)}
    current = SimpleNamespace(topic_partition=GONE, drain=lambda: drained.append(GONE))
    fetcher = Fetcher.__new__(Fetcher)
    fetcher._completed_fetches = deque(fetches.values())
    fetcher._next_partition_records = current
    fetcher._paused_completed_fetches = {each: [fetches[each]] for each in fetches}
    fetcher._paused_partition_records = dict(fetches)
    drop_fetched(SimpleNamespace(_fetcher=fetcher), [GONE])
    assert [*fetcher._completed_fetches] == [fetches[KEPT]]
    assert [*fetcher._paused_completed_fetches] == [KEPT]
    assert [*fetcher._paused_partition_records] == [KEPT]
    assert drained == [GONE]
