"""The consumer that a Quix application uses in place of its own `confluent_kafka.Consumer`.

Quix expects the eager protocol with the `range` assignor: every rebalance revokes and assigns all
partitions, and changelogs are subscribed as inputs are. Under a cooperative protocol three things
in Quix would go wrong, and are put right here:

- `Application` replaces its whole assignment by what is new. Here it is added.
- Before a revocation Quix commits its checkpoint without writing it to the stores. A store that
  stays would miss those changes. Here the checkpoint is written first.
- Quix ends the recovery of all stores with the number of a revoked partition. Here the recovery of
  those that stay continues.

A group owns input partitions only; the changelog partitions of its tasks are added to them. Quix
pauses them once they are assigned, and ends with a KeyError if it gets a record of one outside a
recovery. Here they are assigned at their ends and paused before the inputs are, and a record of a
changelog is passed on in a recovery only, whatever the client returns. A recovery seeks first.

In a recovery Quix looks whether it has all records once a poll of a second was empty, and at
positions that it keeps for a second. Here such a poll ends when all records have been read.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from confluent_kafka import OFFSET_END, Message
from confluent_kafka import TopicPartition as Position
from quixstreams.exceptions import PartitionAssignmentError

from assignor.embedding.loops import LoopFacts, Step, Then, decide
from assignor.integrations.quix.state import QuixState
from encoding import TaskId, TopicPartition

Callback = Callable[[Any, list[Position]], object]
_SLICE_S: Final = 0.1


class Copies(Protocol):
    """The standbys beside the application's own stores."""

    def run_here(self, tasks: frozenset[TaskId]) -> None:
        """The application has these tasks from now on: close standby copies of them."""
        ...

    def turn(self) -> None:
        """Follow the standby tasks of the last assignment; called after each poll."""
        ...

    def close(self) -> None:
        """Close all copies."""
        ...


class QuixConsumer:
    """A consumer for one run of an `Application`; methods that are not here are the client's.

    Args:
        app: the application.
        client: has the methods of a `confluent_kafka.Consumer`, under the eager or the cooperative
            protocol.
        state: tasks and stores of the application.
        copies: the standbys.
    """

    def __init__(self, app: Any, client: Any, state: QuixState, copies: Copies) -> None:
        self._app = app
        self._client = client
        self._state = state
        self._copies = copies
        self._tasks: frozenset[TaskId] = frozenset()

    def __getattr__(self, name: str) -> Any:
        """Return what is not defined here from the client."""
        return getattr(self._client, name)

    def subscribe(
        self, topics: Sequence[str], *, on_assign: Callback, on_revoke: Callback, on_lost: Callback
    ) -> None:
        """Join the group for the input topics among these; changelogs follow the tasks."""
        inputs = {
            topic for part in self._state.subtopologies.values() for topic in part.source_topics
        }
        self._client.subscribe(
            sorted(inputs & {*topics}),
            on_assign=lambda _, partitions: self._assigned(partitions, on_assign),
            on_revoke=lambda _, partitions: self._gone(partitions, on_revoke, is_lost=False),
            on_lost=lambda _, partitions: self._gone(partitions, on_lost, is_lost=True),
        )

    def assign(self, partitions: list[Position]) -> None:
        """Add partitions; Quix calls it for what a rebalance has brought."""
        changelogs = [each for each in partitions if self._state.is_changelog(each.topic)]
        if changelogs:
            at_ends = [Position(each.topic, each.partition, OFFSET_END) for each in changelogs]
            self._client.incremental_assign(at_ends)
            self._client.pause(changelogs)
        self._client.incremental_assign([each for each in partitions if each not in changelogs])

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next record; callbacks run here."""
        end_s = time.monotonic() + abs(timeout)
        while True:
            recovers = self._is_recovering()
            left_s = max(0.0, end_s - time.monotonic())
            message: Message | None = self._client.poll(
                min(_SLICE_S, left_s) if recovers else timeout
            )
            self._copies.turn()
            is_over = not recovers or left_s <= _SLICE_S or self._has_recovered()
            if message is not None or is_over:
                return message if self._is_expected(message) else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return the next records; callbacks run here."""
        messages: list[Message] = self._client.consume(num_messages, timeout)
        self._copies.turn()
        return [message for message in messages if self._is_expected(message)]

    def close(self) -> None:
        """Revoke everything, leave the group, and close the standbys."""
        try:
            self._client.close()
        finally:
            self._copies.close()

    # Callbacks of the client

    def _assigned(self, partitions: list[Position], call: Callback) -> None:
        if not partitions:
            return  # a rebalance that has brought nothing
        self._tasks |= self._state.tasks(map(_plain, partitions))
        self._copies.run_here(self._tasks)
        call(self, self._with_changelogs(partitions))

    def _gone(self, partitions: list[Position], call: Callback, *, is_lost: bool) -> None:
        facts = LoopFacts(step=Step.REBALANCE, is_lost=is_lost)
        recovering = self._recovering()
        try:
            if decide(facts).then is Then.DROP:
                # What came after the last commit must not be written.
                self._app._processing_context.init_checkpoint()
            else:
                self._write_checkpoint()
        finally:
            # Quix closes the stores whatever fails, so that the next owner can open them.
            self._give_up(partitions, call)
        self._recover_on(recovering)

    def _write_checkpoint(self) -> None:
        """Commit what is processed, and write it to all stores.

        Raises:
            PartitionAssignmentError: it is not committed; the application ends by this.
        """
        if self._app._failed:
            return  # Quix commits nothing then
        try:
            self._app._processing_context.commit_checkpoint(force=True)
        except Exception as error:
            raise PartitionAssignmentError("Error before partitions are revoked") from error

    def _give_up(self, partitions: list[Position], call: Callback) -> None:
        gone = self._state.tasks(map(_plain, partitions))
        self._state.note_open(gone)
        with_changelogs = self._with_changelogs(partitions)
        try:
            call(self, with_changelogs)
        finally:
            self._client.incremental_unassign(with_changelogs)
            self._tasks -= gone
            self._copies.run_here(self._tasks)

    def _with_changelogs(self, partitions: Sequence[Position]) -> list[Position]:
        """Return input partitions and the changelog partitions of their tasks."""
        changelogs = self._state.changelogs(self._state.tasks(map(_plain, partitions)))
        return [*partitions, *(Position(*each) for each in changelogs)]

    def _is_expected(self, message: Message | None) -> bool:
        """Return whether Quix can take a record: those of changelogs in a recovery only."""
        if (
            message is None
            or self._is_recovering()
            or not self._state.is_changelog(message.topic())
        ):
            return True
        self._client.pause([Position(message.topic() or "", message.partition() or 0)])
        return False

    def _is_recovering(self) -> bool:
        """Return whether Quix reads changelogs now."""
        manager = self._app._state_manager._recovery_manager
        return manager is not None and bool(manager.recovering)

    def _has_recovered(self) -> bool:
        """Return whether all records of the recovery have been read, and have Quix see it."""
        recovering = self._recovering()
        ends = {each: recovery.changelog_highwater for each, recovery in recovering.items()}
        positions = self._client.position([Position(*each) for each in ends])
        if any(each.error or each.offset < ends[_plain(each)] for each in positions):
            return False
        self._app._state_manager._recovery_manager._position_cache.clear()
        return True

    def _recovering(self) -> dict[TopicPartition, Any]:
        """Return changelog partition -> what Quix recovers from it."""
        manager = self._app._state_manager._recovery_manager
        if manager is None:
            return {}
        return {
            TopicPartition(topic, partition): recovery
            for partition, by_topic in manager.partitions.items()
            for topic, recovery in by_topic.items()
        }

    def _recover_on(self, before: dict[TopicPartition, Any]) -> None:
        """Continue recoveries of tasks that stay and that Quix has ended."""
        stay = before.keys() & set(self._state.changelogs(self._tasks))
        ended = sorted(stay - self._recovering().keys())
        for partition in ended:
            manager = self._app._state_manager._recovery_manager
            by_topic = manager.partitions.setdefault(partition.partition, {})
            by_topic[partition.topic] = before[partition]
        # A recovery that has not begun seeks and resumes them itself.
        if ended and self._is_recovering():
            self._client.resume([Position(*each) for each in ended])


def _plain(partition: Position) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)
