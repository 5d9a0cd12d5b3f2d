"""Fetched records of kafka-python: those that it cannot read, and those that it would never return.

kafka-python 3.0 keeps a partition whose deserializer, codec or checksum has failed as the one to
read next. The next `poll` takes no record from it, counts none, and never returns. Here the record
is named, and left to the next poll.

It also parks the records of a partition that is paused before all of a fetch have been returned.
Once the partition is resumed it returns them only while it reads no other partition next, and one
that it has read to the end counts as such: the partition then stands still until a rebalance.
"""

from collections.abc import Collection
from typing import Any

from kafka.consumer.fetcher import Fetcher

from assignor.adapters.unreadable import unreadable
from assignor.embedding import is_interrupt


class NamedRecords(Fetcher.PartitionRecords):  # type: ignore[misc] # the client is untyped
    """The fetched records of a partition, with errors that name the record.

    Attributes:
        begun: partition -> offset of the first record that a poll of the consumer has taken, since
            the mapping was last emptied.
    """

    begun: dict[Any, int]

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
