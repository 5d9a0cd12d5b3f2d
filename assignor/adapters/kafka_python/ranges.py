"""What a kafka-python consumer can tell of topics: first, last and committed offsets, and ids."""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final
from uuid import UUID

from kafka.admin import OffsetSpec
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import RetriableError, UnknownTopicOrPartitionError

from assignor.adapters.kafka_python.bounded import answer_of, longest_wait_ms

# How long an election may take. A loop tries again after that, and reads other topics meanwhile.
_ELECTION_S: Final = 2.0


def log_ranges(consumer: Any, partitions: Collection[Any]) -> Mapping[Any, tuple[int, int]]:
    """Return partition -> its first offset, and the one behind its last.

    Raises:
        KafkaError: as of `first_offsets`.
    """
    starts, ends = first_offsets(consumer, partitions), end_offsets(consumer, partitions)
    return {each: (starts[each], ends[each]) for each in partitions}


def first_offsets(consumer: Any, partitions: Collection[Any]) -> Mapping[Any, int]:
    """Return partition -> its first offset.

    Raises:
        UnknownTopicOrPartitionError: a partition does not exist, or has got no leader in time.
        KafkaError: the cluster does not answer.
    """
    return _offsets(consumer, partitions, OffsetSpec.EARLIEST)


def end_offsets(consumer: Any, partitions: Collection[Any]) -> Mapping[Any, int]:
    """Return partition -> the offset behind its last.

    Raises:
        KafkaError: as of `first_offsets`.
    """
    return _offsets(consumer, partitions, OffsetSpec.LATEST)


def _offsets(consumer: Any, partitions: Collection[Any], spec: OffsetSpec) -> Mapping[Any, int]:
    """Ask until all offsets are known.

    kafka-python's own methods ask for a topic that was deleted until `request_timeout_ms` is over,
    and without a pause while the metadata still have it.
    """
    end_s, found, left = time.monotonic() + _ELECTION_S, dict[Any, int](), list(partitions)
    while left:
        failure: RetriableError | None = None
        try:
            found |= _ask(consumer, dict.fromkeys(left, spec))
        except RetriableError as error:
            failure = error
        left = [each for each in left if each not in found]
        if left and time.monotonic() > end_s:
            raise failure or UnknownTopicOrPartitionError(f"{left[0]} has no leader yet")
        if left:
            _check_exist(consumer, left)
            time.sleep(consumer.config["retry_backoff_ms"] / 1000)
    return found


def _ask(consumer: Any, wanted: Mapping[Any, OffsetSpec]) -> Mapping[Any, int]:
    """Ask once; return the offsets of the partitions that exist and have a leader."""
    ask = consumer._fetcher._send_list_offsets_requests  # noqa: SLF001 no public way
    found, _ = answer_of(consumer, consumer._manager.call_soon(ask, wanted))  # noqa: SLF001 as above
    return {each: at.offset for each, at in found.items()}


def _check_exist(consumer: Any, partitions: Collection[Any]) -> None:
    with suppress(UnknownTopicOrPartitionError):  # of the only topic that is asked for
        refresh_metadata(consumer)
    for each in partitions:
        if each.partition not in (consumer._cluster.partitions_for_topic(each.topic) or ()):  # noqa: SLF001 no public way
            raise UnknownTopicOrPartitionError(
                f"{each.topic} [{each.partition}] does not exist, as far as the brokers know"
            )


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
        limit_ms = longest_wait_ms(self._consumer)
        coordinator = self._coordinators[group_id]
        found: Mapping[Any, Any] = coordinator.fetch_committed_offsets(partitions, limit_ms)
        return found

    def close(self) -> None:
        """End what asks; the consumer stays open."""
        for coordinator in self._coordinators.values():
            coordinator.close(autocommit=False, timeout_ms=0)


def refresh_metadata(consumer: Any, end_s: float = inf) -> None:
    """Fetch the metadata of the topics that a consumer knows.

    Args:
        consumer: a kafka-python consumer.
        end_s: when the wait ends (`time.monotonic()`), at the latest after `request_timeout_ms`.

    Raises:
        KafkaError: no broker has answered in time.
    """
    cluster = consumer._cluster  # noqa: SLF001 no public way
    # An answer that is under way may be older than this call.
    for _ in range(2 if cluster.metadata_refresh_in_progress else 1):
        answer_of(consumer, cluster.request_update(), end_s)
