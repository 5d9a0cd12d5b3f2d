"""librdkafka's consumer for several threads, whose methods raise once it is closed.

In confluent-kafka below 2.16 four methods use the freed handle of a closed consumer, which ends the
process by a segmentation fault: `list_topics` (below 2.13), `pause`, `resume` and
`set_sasl_credentials`. From 2.16 on a method waits while another thread polls, and a thread that
polls again at once leaves it no gap.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar
from weakref import ref

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.offsets import NOWHERE, StoredOffsets, partition_of
from assignor.adapters.confluent.reader import Reaches
from assignor.adapters.confluent.serving import CLOSED
from assignor.adapters.processing import check_not_processing
from assignor.adapters.threads import OneThread, Turns
from encoding import TopicPartition

_LOOK_UP_S: Final = 10.0
_LOGICAL: Final = frozenset({OFFSET_BEGINNING, OFFSET_END})

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def in_turn(
    method: Callable[Concatenate[Any, _Arguments], _Result],
) -> Callable[Concatenate[Any, _Arguments], _Result]:
    """Return a method that any thread may call; it raises once the consumer is closed."""

    @wraps(method)
    def called(self: Any, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        self._check_open()
        with self._turns.call():
            return method(self, *arguments, **options)

    return called


class CheckedReader(confluent_kafka.Consumer):
    """A `confluent_kafka.Consumer` that is closed until a subclass sets `_is_open`."""

    _is_open = False
    # By `pause`: librdkafka does not tell.
    _paused: frozenset[TopicPartition] = frozenset()
    # Of these, those that the application has paused since a loop did so last.
    _application_pauses: frozenset[TopicPartition] = frozenset()
    # As `ReaderInput.positions`.
    _checked_positions: Callable[[list[Position]], list[Position]] = list
    _turns = Turns()
    _polling = OneThread()

    def _check_open(self, method: str = "") -> None:
        """Check that the consumer is open, and of this process.

        Args:
            method: that a function that processes records into state stores may not call.

        Raises:
            RuntimeError: it is not, or such a function calls it.
        """
        if not self._is_open:
            raise RuntimeError(CLOSED)
        self._polling.check_process()
        if method:
            self._check_not_processing(method)

    def _check_not_processing(self, method: str) -> None:
        listener = getattr(getattr(self, "_assignor", None), "listener", None)
        check_not_processing(getattr(listener, "listener", listener), method)

    @in_turn
    def assignment(self) -> list[Position]:
        """Return what is read."""
        return super().assignment()

    @in_turn
    def position(self, partitions: list[Position]) -> list[Position]:
        """Return the offset after the last record of each partition."""
        return self._checked_positions(super().position(partitions))

    @in_turn
    def committed(self, partitions: list[Position], timeout: float = -1) -> list[Position]:
        """Return what the group has committed of each partition."""
        return super().committed(partitions, timeout)

    @in_turn
    def get_watermark_offsets(
        self,
        partition: Position,
        timeout: float = -1,
        cached: bool = False,  # noqa: FBT001, FBT002 as in confluent-kafka
    ) -> tuple[int, int]:
        """Return the first offset of a partition and the one after its last record."""
        return super().get_watermark_offsets(partition, timeout, cached)

    @in_turn
    def offsets_for_times(self, partitions: list[Position], timeout: float = -1) -> list[Position]:
        """Return the first offset of each partition from a time on, which is its `offset`."""
        return super().offsets_for_times(partitions, timeout)

    def _begins(self, stored: StoredOffsets, partitions: list[Position]) -> list[Position]:
        """Return where to begin to read: at an offset, if one is committed or a broker tells it.

        Else it is `NOWHERE` until a broker does. While librdkafka itself looks up where a partition
        begins, it forgets a seek: half a second later it asks again, and goes on from there.
        """
        begins = list(map(stored.begin, partitions))
        logical = [each for each in begins if each.offset in _LOGICAL]
        looked_up = {}
        with suppress(KafkaException):  # not in time
            # Both are timestamps of ListOffsets, too.
            found = super().offsets_for_times(logical, _LOOK_UP_S) if logical else []
            looked_up = {partition_of(each): each for each in found if each.error is None}
        begins = [stored.begin(looked_up.get(partition_of(each), each)) for each in begins]
        return [
            Position(each.topic, each.partition, NOWHERE) if each.offset in _LOGICAL else each
            for each in begins
        ]

    @in_turn
    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Return brokers and topics, as librdkafka does."""
        given = {} if topic is None else {"topic": topic}
        return super().list_topics(**given, timeout=timeout)

    if hasattr(confluent_kafka.Consumer, "cluster_id"):  # since 2.15

        @in_turn
        def cluster_id(self, timeout: float = -1) -> str:
            """Return the id of the cluster."""
            return super().cluster_id(timeout)

    @in_turn
    def pause(self, partitions: list[Position]) -> None:
        """Fetch nothing of these partitions until `resume`, also after they have moved away."""
        super().pause(partitions)
        self._paused |= (named := frozenset(map(partition_of, partitions)))
        self._application_pauses |= named

    @in_turn
    def resume(self, partitions: list[Position]) -> None:
        """Fetch these partitions again."""
        super().resume(partitions)
        self._paused -= (named := frozenset(map(partition_of, partitions)))
        self._application_pauses -= named

    @in_turn
    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Authenticate new connections with these."""
        super().set_sasl_credentials(username, password)

    def __enter__(self) -> Self:
        """Return the consumer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def reader_reaches(reader: "ref[CheckedReader]") -> Reaches:
    """Return what asks a broker for a topic's metadata; a reader that is gone or closed has it."""

    def reaches(topic: str, timeout_s: float) -> bool:
        consumer = reader()
        if consumer is None:
            return True
        try:
            CheckedReader.list_topics(consumer, topic, timeout_s)
        except KafkaException:
            return False
        except RuntimeError:  # closed
            return True
        return True

    return reaches
