"""What state stores need of a Kafka client: changelogs to read and to write, and a producer.

`assignor.adapters.kafka_python.KafkaChangelogs` implements it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from assignor.embedding.input_facts import LogRange
from assignor.embedding.state_stores.records import ChangelogRecord, Headers, NewRecord
from encoding import TopicPartition

WAIT_S: Final[ContextVar[float | None]] = ContextVar("WAIT_S", default=None)
"""How long each wait for a broker may last, so that the member stays in its group; None: no limit.

A call that is not finished then raises `ClusterUnavailable`: the member polls before the next try.
"""


class FollowedStore(Protocol):
    """A copy that a changelog partition is read into."""

    @property
    def changelog(self) -> TopicPartition:
        """The partition."""
        ...

    @property
    def position(self) -> int:
        """Offset of the next record to read; only the copy changes it."""
        ...

    @property
    def needs_check(self) -> bool:
        """Whether `check_range` is to be called again before the partition is read on."""
        ...

    def check_range(
        self, start: int, end: int, topic_id: UUID | None, asked_ms: int | None = None
    ) -> None:
        """Take the offsets that the partition has; the copy may begin anew, at position 0.

        Called before the partition is read from `position`, or from `start` if that is higher, and
        again whenever `needs_check`.

        Args:
            start: offset of the first record.
            end: offset behind the last record.
            topic_id: of the topic, which has another one once it is made anew; None: the broker
                tells none, as brokers before 2.8 do.
            asked_ms: when the offsets were asked for, in ms since 1970; None: now.

        Raises:
            ChangelogLost: the copy has what its changelog has lost; nothing was changed.
        """
        ...

    def restore(self, records: Sequence[ChangelogRecord]) -> None:
        """Apply records, and set `position` to the offset behind them.

        `position` stays the same if the copy has to be checked first: `needs_check` then, and these
        records are read again.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InputState:
    """An input partition as it is now.

    Attributes:
        log: its offsets, and the id of its topic.
        committed: offset that the group has committed; None: none.
        is_members: a member has committed it: `is_members_commit` of its metadata.
    """

    log: LogRange
    committed: int | None = None
    is_members: bool = True


class ChangelogAccess(Protocol):
    """Changelogs through a Kafka client; every method is called on the thread that processes.

    Every method raises `ClusterUnavailable` where the cluster does not answer or refuses, and
    `MemberStopped` where it would refuse again. A record of a failed `append` may be in the log all
    the same, also later. After a failed `flush` the records of `send` are sent again.
    """

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offsets behind the last records."""
        ...

    def input_state(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, InputState]:
        """Return input partitions as they are now, without those that do not exist.

        Ids of topics have to be those of now: ask the cluster.
        """
        ...

    def read(self, stores: Iterable[FollowedStore], *, wait_s: float = 0.0) -> int:
        """Pass the records that have arrived to their stores; return their number.

        Args:
            stores: all that are followed from now on; at most one a partition.
            wait_s: how long to wait for the first record.
        """
        ...

    def position(self, partition: TopicPartition) -> int:
        """Return the offset up to which a followed partition is read.

        Between it and the position of the store there are offsets without records.
        """
        ...

    def seen_end(self, partition: TopicPartition) -> int | None:
        """Return the end of a followed partition as a broker last said it; on any thread."""
        ...

    def append(self, records: Sequence[NewRecord]) -> Sequence[int]:
        """Write records, and return their offsets once all replicas in sync have them.

        Records of one partition are written in the given order. An offset may be -1: not known.

        Raises:
            RecordTooLarge: a record is larger than the broker allows; fewer input records at once
                are tried then.
        """
        ...

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        *,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Begin to write a record to any topic; Kafka's default partitioner chooses for None.

        Raises:
            OutputTooLarge: a record is larger than the broker allows; or `flush` raises it.
        """
        ...

    def flush(self) -> None:
        """Wait until all replicas in sync have every record of `send`."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...
