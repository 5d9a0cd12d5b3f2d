"""Records that aiokafka cannot read: named, and raised when nothing else has been taken.

aiokafka 0.14 raises the error of a deserializer, codec or checksum in the middle of `getmany`. What
the call had taken of other partitions is gone then, and a commit of the positions passes over it.
Here the partition ends before the record, and the error waits for the next call, as aiokafka does
with the errors of brokers.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from aiokafka.consumer.fetcher import FetchError

from assignor.adapters.unreadable import unreadable


class _Records:
    """The fetched records of a partition, which end before one that cannot be read.

    Attributes:
        error: of that record, or None.
    """

    def __init__(self, partition: Any, records: Any) -> None:
        self._partition = partition
        self._records = records
        self.error: Exception | None = None

    @property
    def next_fetch_offset(self) -> int:
        """Offset from which the partition is fetched after these records."""
        offset: int = self._records.next_fetch_offset
        return offset

    def __iter__(self) -> "_Records":
        return self

    def __next__(self) -> Any:
        try:
            return next(self._records)
        except StopIteration:
            raise
        except Exception as error:
            topic, partition = self._partition
            self.error = unreadable(topic, partition, self.next_fetch_offset, error)
            if self.error is None:
                raise
            self.error.__cause__ = error
            raise StopIteration from error


class _RecordError(FetchError):  # type: ignore[misc] # the client is untyped
    """The error of a record, raised only while the consumer stands where the record was fetched.

    aiokafka keeps results of former assignments, too, and checks only records against them.
    """

    def __init__(self, error: Exception, backoff_s: float, result: Any, records: _Records) -> None:
        super().__init__(error=error, backoff=backoff_s)
        self._assignment = result._assignment  # noqa: SLF001 no hook for it
        self._partition = result._topic_partition  # noqa: SLF001 as above
        self._position = records.next_fetch_offset

    def check_raise(self) -> None:
        if self._assignment.active:
            state = self._assignment.state_value(self._partition)
            if state.has_valid_position and state.position == self._position:
                super().check_raise()


class _FetchedRecords(OrderedDict[Any, Any]):
    """aiokafka's results by partition; a partition that ends with an error has it as next result.

    Args:
        backoff_s: before the partition is fetched again.
        wake: called when there is an error: aiokafka's call looks for it in its next round.

    Attributes:
        begun: partition -> lowest offset of results that have come since it was last emptied.
    """

    def __init__(self, backoff_s: float, wake: Callable[[], object]) -> None:
        super().__init__()
        self._backoff_s = backoff_s
        self._wake = wake
        self._read: dict[Any, _Records] = {}
        self.begun: dict[Any, int] = {}

    def __setitem__(self, partition: Any, result: Any) -> None:
        records = getattr(result, "_partition_records", None)
        self._read.pop(partition, None)
        if records is not None:
            self._read[partition] = _Records(partition, records)
            begin = records.next_fetch_offset
            self.begun[partition] = min(begin, self.begun.get(partition, begin))
            result._partition_records = self._read[partition]  # noqa: SLF001 no hook for it
        super().__setitem__(partition, result)

    def __delitem__(self, partition: Any) -> None:
        records = self._read.pop(partition, None)
        result = self[partition]
        super().__delitem__(partition)
        if records is not None and records.error is not None:
            self[partition] = _RecordError(records.error, self._backoff_s, result, records)
            self._wake()


def name_unreadable_records(consumer: Any) -> None:
    """Have `getmany` and `getone` of a started consumer raise `UnreadableRecord`."""
    fetcher = getattr(consumer, "_fetcher", None)
    if fetcher is None or isinstance(fetcher._records, _FetchedRecords):  # noqa: SLF001 as above
        return

    def wake() -> None:
        for waiter in list(fetcher._fetch_waiters):  # noqa: SLF001 as above
            fetcher._notify(waiter)  # noqa: SLF001 as above

    loop = fetcher._loop  # noqa: SLF001 as above
    records = _FetchedRecords(fetcher._prefetch_backoff, lambda: loop.call_soon(wake))  # noqa: SLF001 as above
    for partition, result in fetcher._records.items():  # noqa: SLF001 as above
        records[partition] = result
    fetcher._records = records  # noqa: SLF001 as above
