"""Records that kafka-python cannot read: named, and left to the next poll.

kafka-python 3.0 keeps a partition whose deserializer, codec or checksum has failed as the one to
read next. The next `poll` takes no record from it, counts none, and never returns.
"""

from typing import Any

from kafka.consumer.fetcher import Fetcher

from assignor.adapters.unreadable import unreadable


class NamedRecords(Fetcher.PartitionRecords):  # type: ignore[misc] # the client is untyped
    """The fetched records of a partition, with errors that name the record."""

    def take(self, n: int | None = None) -> Any:
        """Return the next records, as the client's own method.

        Raises:
            UnreadableRecord: there is none before the one that cannot be read. What was fetched is
                dropped, so that the partition is fetched again.
        """
        try:
            return super().take(n)
        except Exception as error:
            self.drain()
            partition = self.topic_partition
            raise unreadable(
                partition.topic, partition.partition, self.next_fetch_offset, error
            ) from error


def name_unreadable_records(consumer: Any) -> None:
    """Have `poll` of a `KafkaConsumer` raise `UnreadableRecord`."""
    consumer._fetcher.PartitionRecords = NamedRecords  # noqa: SLF001 the client has no hook for it
