"""Errors of the member as errors of librdkafka, with its codes, and as messages of `poll`."""

import math
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position
from kafka.errors import (
    BrokerResponseError,
    CommitFailedError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RebalanceInProgressError,
    for_code,
)
from kafka.errors import KafkaError as ClientError

from assignor.embedding import LEFT_GROUP, MemberStopped, UnreadableRecord, error_text
from encoding import TopicPartition

COMMIT_FAILED: Final = "Commit failed"
"""How the sentence of a commit's error begins."""

_NO_TIMESTAMP: Final = (TIMESTAMP_NOT_AVAILABLE, 0)
_UNKNOWN: Final = -1
# kafka-python's errors that no broker sent, by the name of their class.
_LOCAL: Final = MappingProxyType(
    {
        "Cancelled": KafkaError._DESTROY,
        "KafkaConnectionError": KafkaError._TRANSPORT,
        "KafkaTimeoutError": KafkaError._TIMED_OUT,
        "MetadataEmptyBrokerList": KafkaError._TRANSPORT,
        "NodeNotReadyError": KafkaError._WAIT_COORD,
        "OSError": KafkaError._TRANSPORT,
        "TimeoutError": KafkaError._TIMED_OUT,
    }
)

# Refused commits, as kafka-python's coordinator raises them.
_COMMITS: Final = MappingProxyType(
    {
        # Of this package: the member has given the partition up, has ended, or is closed.
        KafkaError._ASSIGNMENT_LOST: CommitFailedError,
        KafkaError._FATAL: CommitFailedError,
        KafkaError._DESTROY: CommitFailedError,
        KafkaError.ILLEGAL_GENERATION: CommitFailedError,
        KafkaError.UNKNOWN_MEMBER_ID: CommitFailedError,
        KafkaError.REBALANCE_IN_PROGRESS: RebalanceInProgressError,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS: KafkaTimeoutError,
        KafkaError.COORDINATOR_NOT_AVAILABLE: KafkaTimeoutError,
        KafkaError.NOT_COORDINATOR: KafkaTimeoutError,
        KafkaError.REQUEST_TIMED_OUT: KafkaTimeoutError,
    }
)

# Codec, checksum and size of a batch.
_UNREADABLE: Final = frozenset(
    {
        KafkaError._BAD_COMPRESSION,
        KafkaError._BAD_MSG,
        KafkaError._NOT_IMPLEMENTED,
        KafkaError.MSG_SIZE_TOO_LARGE,
    }
)


def code_of(error: BaseException) -> int:
    """Return librdkafka's code of an error of kafka-python; `_FAIL` for an unknown one."""
    if isinstance(error, BrokerResponseError):
        number = int(error.errno)
        return KafkaError.UNKNOWN if number == _UNKNOWN else number
    for kind in type(error).__mro__:
        if kind.__name__ in _LOCAL:
            return _LOCAL[kind.__name__]
    return KafkaError._FAIL


def kafka_error(error: BaseException, what: str) -> KafkaError:
    """Return an error of kafka-python as librdkafka's; `what` begins its sentence."""
    return KafkaError(code_of(error), f"{what}: {error_text(error)}")


def commit_error(error: KafkaError) -> ClientError:
    """Return the error of a commit as that of kafka-python, by which poll loops decide.

    Other errors of librdkafka's own codes are of its connections: no broker has answered.
    """
    code = error.code()
    kind = _COMMITS.get(code) or (for_code(code) if code >= _UNKNOWN else KafkaTimeoutError)
    found: ClientError = kind(error.str())
    return found


def message_error(message: Message) -> Exception | None:
    """Return an error that `poll` returns as what other clients raise, by which loops decide.

    None: librdkafka tries again by itself.
    """
    error, topic = message.error(), message.topic()
    if error is None or error.code() == KafkaError._PARTITION_EOF:
        return None
    if error.fatal():
        return MemberStopped(f"{LEFT_GROUP}: {error.str()}")
    where, offset = TopicPartition(topic or "", message.partition() or 0), message.offset()
    found: Exception | None = None
    if topic is not None and error.code() in _UNREADABLE:
        found = UnreadableRecord(*where, offset or 0, error.str())
    elif topic is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
        is_known = offset is not None and offset >= 0
        lost = OffsetOutOfRangeError({where: offset})
        found = lost if is_known else NoOffsetForPartitionError({where})
    return found


def refused(code: int, sentence: str) -> KafkaException:
    """Return what a method raises that cannot be carried out."""
    return KafkaException(KafkaError(code, sentence))


def check_timeout(timeout: float) -> None:
    """Check the timeout of a poll.

    Raises:
        TypeError: it is no number.
        ValueError: it is not a number (nan), so that the poll would never end.
    """
    if math.isnan(timeout):
        raise ValueError(f"timeout={timeout} is refused; give seconds, below 0 for no limit")


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
