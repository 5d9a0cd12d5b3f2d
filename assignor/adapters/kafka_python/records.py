"""Fetched records of kafka-python: those that it cannot read, and those that it would never return.

kafka-python 3.0 keeps a partition whose deserializer, codec or checksum has failed as the one to
read next. The next `poll` takes no record from it, counts none, and never returns. Here the record
is named, and left to the next poll.

A broker sends whole batches, and kafka-python deserializes also the records of a batch that are
before the position: one that cannot be read would be read again after a seek past it, or after a
restart at the committed offset. Here they are left out first, as aiokafka does.

It also parks the records of a partition that is paused before all of a fetch have been returned.
Once the partition is resumed it returns them only while it reads no other partition next, and one
that it has read to the end counts as such: the partition then stands still until a rebalance.
"""

from collections.abc import Collection, Iterator
from typing import Any

from kafka.consumer.fetcher import Fetcher

from assignor.adapters.unreadable import unreadable
from assignor.embedding import is_interrupt


class _Batches:
    """Fetched batches without the records before an offset."""

    def __init__(self, batches: Any, offset: int) -> None:
        self._batches = batches
        self._offset = offset

    def next_batch(self) -> Any:
        """Return the next batch; None after the last one."""
        batch = self._batches.next_batch()
        return None if batch is None else _LaterRecords(batch, self._offset)


class _LaterRecords:
    """A batch of kafka-python that yields only records from an offset on."""

    def __init__(self, batch: Any, offset: int) -> None:
        self._batch = batch
        self._offset = offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        return (record for record in self._batch if record.offset >= self._offset)

    def __next__(self) -> Any:
        return next(self._batch)


class NamedRecords(Fetcher.PartitionRecords):  # type: ignore[misc] # the client is untyped
    """The fetched records of a partition, with errors that name the record.

    Attributes:
        begun: partition -> offset of the first record that a poll of the consumer has taken, since
            the mapping was last emptied.
    """

    begun: dict[Any, int]

    def __init__(
        self, fetch_offset: int, tp: Any, records: Any, *rest: Any, **options: Any
    ) -> None:
        super().__init__(fetch_offset, tp, _Batches(records, fetch_offset), *rest, **options)

    def take(self, n: int | None = None) -> Any:
        """Return the next records, as the client's own method.

        Raises:
            UnreadableRecord: there is none before the one that cannot be read. What was fetched is
                dropped, so that the partition is fetched again.
        """
        self.begun.setdefault(self.topic_partition, self.next_fetch_offset)
        try:
            records = super().take(n)
            # kafka-python leaves it to the next call.
            raise_interrupt(self._next_inline_exception)
        except BaseException as error:
            self.drain()
            topic, partition = self.topic_partition
            named = unreadable(topic, partition, self.next_fetch_offset, error)
            if named is None:
                raise
            raise named from error
        return records


def raise_interrupt(error: BaseException | None) -> None:
    """Raise an error that the handler of a signal has raised, and kafka-python has not."""
    if error is not None and is_interrupt(error):
        raise error


def mend_fetched_records(consumer: Any) -> None:
    """Have `poll` of a `KafkaConsumer` raise `UnreadableRecord`, and return resumed records."""
    fetcher = consumer._fetcher  # noqa: SLF001 the client has no hook for it
    if issubclass(fetcher.PartitionRecords, NamedRecords):
        return
    fetched_records = fetcher.fetched_records

    def fetched(*arguments: Any, **options: Any) -> Any:
        if not fetcher._next_partition_records:  # noqa: SLF001 as above; false once it is read
            fetcher._next_partition_records = None  # noqa: SLF001 as above
        found = fetched_records(*arguments, **options)
        later = fetcher._next_in_line_exception_metadata  # noqa: SLF001 as above
        raise_interrupt(None if later is None else later.exception)
        return found

    fetcher.PartitionRecords = type("ConsumersRecords", (NamedRecords,), {"begun": {}})
    fetcher.fetched_records = fetched


def begins_of(consumer: Any) -> dict[Any, int]:
    """Return `NamedRecords.begun` of a `KafkaConsumer`; empty if its records are not mended."""
    records = getattr(getattr(consumer, "_fetcher", None), "PartitionRecords", None)
    begun: dict[Any, int] = getattr(records, "begun", {})
    return begun


def drop_fetched(consumer: Any, partitions: Collection[Any]) -> None:
    """Have a `KafkaConsumer` fetch partitions again, also if a seek leaves them where they are.

    It keeps what it has fetched at the offset that is sought, also of a former topic.
    """
    fetcher = getattr(consumer, "_fetcher", None)
    if fetcher is None:
        return
    fetches = fetcher._completed_fetches  # noqa: SLF001 as above; another thread appends to it
    for fetch in [fetches.popleft() for _ in range(len(fetches))]:
        if fetch.topic_partition not in partitions:
            fetches.append(fetch)
    if (current := fetcher._next_partition_records) and current.topic_partition in partitions:  # noqa: SLF001 as above
        current.drain()
    for parked in (fetcher._paused_completed_fetches, fetcher._paused_partition_records):  # noqa: SLF001 as above
        for partition in partitions:
            parked.pop(partition, None)
