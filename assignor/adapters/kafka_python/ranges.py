"""What a kafka-python consumer can tell of topics: first and last offsets, and ids."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from kafka.errors import UnknownTopicOrPartitionError


def log_ranges(consumer: Any, partitions: Collection[Any]) -> Mapping[Any, tuple[int, int]]:
    """Return partition -> its first offset, and the one behind its last.

    Raises:
        KafkaError: the cluster does not answer, or a partition has no leader.
    """
    starts = offsets_of(consumer.beginning_offsets, partitions)
    ends = offsets_of(consumer.end_offsets, partitions)
    return {each: (starts[each], ends[each]) for each in partitions}


def offsets_of(
    ask: Callable[[list[Any]], Mapping[Any, int]], partitions: Iterable[Any]
) -> Mapping[Any, int]:
    """Ask a consumer for the offsets of partitions.

    Raises:
        KafkaError: the cluster does not answer, or a partition has no leader.
    """
    try:
        return ask(list(partitions))
    except KeyError as error:  # kafka-python leaves out a partition that has no leader yet
        why = f"{error.args[0]} has no leader yet"
        raise UnknownTopicOrPartitionError(why) from None


def topic_id(consumer: Any, topic: str) -> UUID | None:
    """Return the id of a topic, as the consumer's metadata have it; None if they have none."""
    found: UUID | None = consumer._cluster.topic_id(topic)  # noqa: SLF001 no public way
    return found if found is not None and found.int else None


def refresh_metadata(consumer: Any) -> None:
    """Fetch the metadata of the topics that a consumer knows.

    Raises:
        KafkaError: no broker has answered within `request_timeout_ms`.
    """
    cluster, net = consumer._cluster, consumer._net  # noqa: SLF001 no public way
    wait = consumer._manager.wait_for  # noqa: SLF001 as above
    limit_ms = consumer.config["request_timeout_ms"]
    # An answer that is under way may be older than this call.
    for _ in range(2 if cluster.metadata_refresh_in_progress else 1):
        net.run(wait, cluster.request_update(), limit_ms)
