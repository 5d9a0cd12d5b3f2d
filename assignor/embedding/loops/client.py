"""What a poll loop needs of the consumer of its client."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol
from uuid import UUID

from assignor.embedding.loops.watch import InputWatch

Batch = Mapping[Any, Sequence[Any]]


class LoopClient(Protocol):
    """What a loop does with the consumer of its client; partitions are the client's own.

    Of a client with coroutines, `poll`, `ranges` and `leave` return awaitables. The methods without
    "asks" in their description do no I/O.

    Attributes:
        input: where this consumer continues.
    """

    input: InputWatch

    @property
    def is_closed(self) -> bool:
        """Whether the consumer is closed."""

    @property
    def is_shutdown(self) -> bool:
        """Whether the whole group was asked to stop."""

    def poll(self, max_records: int | None, *, waits: bool) -> Batch | Awaitable[Batch]:
        """Return partition -> records; asks the cluster.

        Args:
            max_records: most records; None: as the consumer is configured.
            waits: for the time that the loop was given; else not at all.

        Raises:
            UnreadableRecord: the next record of a partition cannot be read.
        """

    def check(self) -> None:
        """Check after a poll, also one that has raised, that the member can go on.

        Raises:
            MemberStopped: it cannot.
            ListenerFailed: a method of its listener has raised.
        """

    def assigned(self) -> Collection[Any]:
        """Return the partitions that are assigned."""

    def positions(self) -> Mapping[Any, int]:
        """Return partition -> offset of the record that the next poll returns, where known.

        It is behind the control records of transactions that polls have passed.
        """

    def begins(self, partitions: Collection[Any], before: Mapping[Any, int]) -> Mapping[Any, int]:
        """Return where the last poll has begun to read partitions that were assigned in it.

        Also one that it has given up and got back, which begins at its committed offset then.

        Args:
            partitions: to look for.
            before: positions before the poll.
        """

    def ranges(self, partitions: Collection[Any]) -> Any:
        """Return partition -> its first offset, and the one behind its last; asks the cluster."""

    def topic_ids(self, *, asks: bool) -> Mapping[str, UUID | None]:
        """Return topic -> id of the assigned topics that the client finds; None: it has no id.

        Args:
            asks: the cluster, if the client can; else the ids that it had last.
        """

    def seek(self, offsets: Mapping[Any, int]) -> None:
        """Read these partitions from other offsets, those that are still assigned.

        What is fetched of them is fetched again, also at their own position.
        """

    def leave(self) -> None:
        """Leave the group; asks the cluster."""

    def has_left(self) -> bool:
        """Return whether the member is in no generation, to a caller that logs why."""


class TaskClient(LoopClient, Protocol):
    """What a loop that processes records into state stores does with the consumer, too."""

    def paused(self) -> AbstractSet[Any]:
        """Return the partitions of which nothing is fetched, also those of the application."""

    def paused_by_application(self) -> AbstractSet[Any]:
        """Return the partitions that the application has paused, also after `pause` of the loop."""

    def pause(self, partitions: AbstractSet[Any]) -> None:
        """Fetch nothing of these partitions."""

    def resume(self, partitions: AbstractSet[Any]) -> None:
        """Fetch these partitions again."""

    def report(self, why: str) -> None:
        """Report a failure, which is logged and kept for the application."""

    def commit(self, next_offsets: Mapping[Any, int]) -> bool:
        """Commit offsets; return False if they have to be committed again; asks the cluster."""
