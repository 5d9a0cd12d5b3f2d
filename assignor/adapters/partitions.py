"""Partitions as the consumer protocol lists them."""

from collections.abc import Iterable

from encoding import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Numbers by topic, sorted by topic; numbers stay in the order in which they come.

    >>> by_topic([TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)])
    [('a', [0]), ('b', [1, 0])]
    """
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return sorted(found.items())
