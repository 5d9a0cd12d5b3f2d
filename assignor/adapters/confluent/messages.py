"""Messages that `poll` returns: errors of the member, and records by partition."""

from collections.abc import Iterable
from typing import Any, Final, Protocol, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message
from confluent_kafka import TopicPartition as Position

from encoding import TopicPartition

_NO_TIMESTAMP: Final = (TIMESTAMP_NOT_AVAILABLE, 0)


class Reader(Protocol):
    """What a served consumer reads with: librdkafka, without the group."""

    def incremental_assign(self, partitions: list[Position]) -> None:
        """Read these partitions, too."""

    def incremental_unassign(self, partitions: list[Position]) -> None:
        """Stop reading these partitions."""

    def position(self, partitions: list[Position]) -> list[Position]:
        """Return the offset after the last record of each partition."""

    def close(self) -> None:
        """Give everything up and leave the group."""


class ErrorMessage:
    """An error with the methods of `Message`, which confluent-kafka below 2.13 cannot create.

    Args:
        error: what `error()` returns.
    """

    def __init__(self, error: KafkaError) -> None:
        self._error = error
        self._headers: Any = None
        self._key: Any = None
        self._value: Any = None

    def __len__(self) -> int:
        """Return the size of the value in bytes, as `Message` does."""
        return len(self._value or b"")

    def error(self) -> KafkaError:
        """Return the error."""
        return self._error

    def headers(self) -> Any:
        """Return the headers that were set, or None."""
        return self._headers

    def key(self) -> Any:
        """Return the key that was set, or None."""
        return self._key

    def latency(self) -> float | None:
        """Return None: nothing was produced."""
        return None

    def leader_epoch(self) -> int | None:
        """Return None: this is no record."""
        return None

    def offset(self) -> int | None:
        """Return None: this is no record."""
        return None

    def partition(self) -> int | None:
        """Return None: the error concerns the member."""
        return None

    def timestamp(self) -> tuple[int, int]:
        """Return `(TIMESTAMP_NOT_AVAILABLE, 0)`."""
        return _NO_TIMESTAMP

    def topic(self) -> str | None:
        """Return None: the error concerns the member."""
        return None

    def value(self) -> Any:
        """Return the value that was set, or None."""
        return self._value

    def set_headers(self, value: Any) -> None:
        """Set the headers, as deserializers do."""
        self._headers = value

    def set_key(self, value: Any) -> None:
        """Set the key."""
        self._key = value

    def set_value(self, value: Any) -> None:
        """Set the value."""
        self._value = value


def error_message(error: KafkaError) -> Message:
    """Return a message whose `error()` is this error."""
    try:
        return Message(error=error)
    except TypeError:  # below 2.13 only librdkafka's own calls make messages
        return cast("Message", ErrorMessage(error))


def by_partition(messages: Iterable[Message]) -> dict[TopicPartition, list[Message]]:
    """Return partition -> records of these messages, errors left out."""
    records: dict[TopicPartition, list[Message]] = {}
    for message in messages:
        if message.error() is None:
            partition = TopicPartition(message.topic() or "", message.partition() or 0)
            records.setdefault(partition, []).append(message)
    return records
