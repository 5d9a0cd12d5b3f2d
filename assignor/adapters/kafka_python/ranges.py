"""What a kafka-python consumer can tell of topics: first, last and committed offsets, and ids."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.consumer import ConsumerCoordinator
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


class CommittedOffsets:
    """Asks for the committed offsets of any groups, over the connections of a consumer.

    Args:
        consumer: a kafka-python consumer, in a group or not.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._coordinators: dict[str, Any] = {}

    def of(self, group_id: str, partitions: Sequence[Any]) -> Mapping[Any, Any]:
        """Return partition -> offset and metadata, as kafka-python has them.

        Raises:
            KafkaError: the coordinator does not answer within `request_timeout_ms`.
        """
        if group_id not in self._coordinators:
            settings = self._consumer.config | {"group_id": group_id}
            self._coordinators[group_id] = ConsumerCoordinator(
                self._consumer._client,  # noqa: SLF001 no public way
                SubscriptionState("none"),
                assignors=settings["partition_assignment_strategy"],
                **settings,
            )
        limit_ms = getattr(self._consumer, "limit_ms", self._consumer.config["request_timeout_ms"])
        coordinator = self._coordinators[group_id]
        found: Mapping[Any, Any] = coordinator.fetch_committed_offsets(partitions, limit_ms)
        return found

    def close(self) -> None:
        """End what asks; the consumer stays open."""
        for coordinator in self._coordinators.values():
            coordinator.close(autocommit=False, timeout_ms=0)


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
