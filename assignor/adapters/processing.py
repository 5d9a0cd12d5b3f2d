"""What makes the calls of a poll loop, for clients whose calls block and those with coroutines."""

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from inspect import GEN_CLOSED, getgeneratorstate, isawaitable
from math import inf
from typing import Any, Final, TypeVar
from uuid import UUID

from assignor.adapters.consumer_state import application_pauses, input_watch
from assignor.adapters.membership import EmbeddedMember
from assignor.adapters.poll_arguments import check_member, is_closed
from assignor.adapters.threads import LOOP_END
from assignor.embedding import Handler, RunningTasks, TaskStores, error_text
from assignor.embedding.loops import (
    PolledBatch,
    PollLoop,
    Steps,
    TaskClient,
    TaskEngine,
)

COMMITS_ITSELF: Final = (
    "the consumer commits records that are not processed yet; set enable_auto_commit=False"
)
"""Why state stores need `enable_auto_commit=False`."""

_Result = TypeVar("_Result")


def carry_out(steps: Steps[_Result]) -> Generator[PolledBatch, None, _Result]:
    """Make the calls of a loop; yield the batches that it delivers, and return its result.

    What is raised here, such as an interrupt, is raised in the steps: they read records again.
    """
    answer: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
                answer = error = None
                if isinstance(step, PolledBatch):
                    yield step
                else:
                    answer = step()
            except BaseException as raised:
                if getgeneratorstate(steps) == GEN_CLOSED:
                    if isinstance(raised, StopIteration):
                        result: _Result = raised.value
                        return result
                    raise
                error = raised
    finally:
        steps.close()


def result_of(steps: Steps[_Result]) -> _Result:
    """Make the calls of steps that deliver nothing; return their result."""
    made = carry_out(steps)
    try:
        while True:
            next(made)
    except StopIteration as end:
        result: _Result = end.value
        return result


async def await_out(steps: Steps[None]) -> AsyncGenerator[PolledBatch, None]:
    """Make the calls of a loop and await them; yield what it delivers, as `carry_out`."""
    answer: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
                answer = error = None
                if isinstance(step, PolledBatch):
                    yield step
                else:
                    answer = step()
                    answer = await answer if isawaitable(answer) else answer
            except BaseException as raised:
                if getgeneratorstate(steps) == GEN_CLOSED:
                    if isinstance(raised, StopIteration):
                        return
                    raise
                error = raised
    finally:
        steps.close()


class GroupConsumer:
    """What `TaskClient` of kafka-python's and aiokafka's consumers has in common.

    `partition` is the client's class of partitions, a named tuple.

    Args:
        consumer: with the assignor attached.
        assignor: of the consumer.
        timeout_ms: of each poll.
        begun: partition -> where reading has begun, as the client's records note it; each poll
            empties it first.
        reset: `auto_offset_reset` of the consumer, as far as the loop has to do it.
    """

    partition: Any

    def __init__(
        self,
        consumer: Any,
        assignor: EmbeddedMember,
        timeout_ms: int,
        begun: MutableMapping[Any, int],
        reset: str,
    ) -> None:
        self.input = input_watch(getattr(consumer, "_coordinator", None), reset)
        self.consumer = consumer
        self.assignor = assignor
        self.timeout_ms = timeout_ms
        self.begun = begun
        self._application_pauses = application_pauses(getattr(consumer, "_subscription", None))

    @property
    def is_closed(self) -> bool:
        """Whether the consumer is closed."""
        return is_closed(self.consumer)

    @property
    def is_shutdown(self) -> bool:
        """Whether the whole group was asked to stop."""
        return self.assignor.shutdown_requested

    def check(self) -> None:
        """Check that the member can go on.

        Raises:
            MemberStopped: the member was refused.
            ListenerFailed: the listener of the assignor has raised.
        """
        check_member(self.consumer, self.assignor)

    def assigned(self) -> Collection[Any]:
        """Return the partitions that are assigned."""
        found: Collection[Any] = self.consumer.assignment()
        return found

    def begins(self, partitions: Collection[Any], before: Mapping[Any, int]) -> Mapping[Any, int]:
        """Return where the last poll has begun to read partitions that were assigned in it."""
        return {
            each: at
            for each, at in self.begun.items()
            if each in partitions and at < before.get(each, inf)
        }

    def topic_ids(self, *, asks: bool) -> Mapping[str, UUID | None]:  # noqa: ARG002 unknown here
        """Return topic -> None, of the assigned topics that the client finds."""
        client = getattr(self.consumer, "_client", None)
        topics = {partition.topic for partition in self.consumer.assignment()}
        return dict.fromkeys(known_topics(getattr(client, "cluster", None), topics))

    def seek(self, offsets: Mapping[Any, int]) -> None:
        """Read these partitions from other offsets, those that are still assigned."""
        assigned = self.assigned()
        for partition, offset in offsets.items():
            if partition in assigned:
                self.seek_partition(partition, offset)

    def seek_partition(self, partition: Any, offset: int) -> None:
        """Read a partition, which is assigned, from another offset."""
        self.consumer.seek(partition, offset)

    def paused(self) -> AbstractSet[Any]:
        """Return the partitions of which nothing is fetched."""
        found: AbstractSet[Any] = self.consumer.paused()
        return found

    def paused_by_application(self) -> AbstractSet[Any]:
        """Return the partitions that the application has paused since a loop did so last."""
        return self._application_pauses

    def pause(self, partitions: AbstractSet[Any]) -> None:
        """Fetch nothing of these partitions."""
        self.consumer.pause(*map(self.partition._make, sorted(partitions)))
        self._application_pauses -= partitions

    def resume(self, partitions: AbstractSet[Any]) -> None:
        """Fetch these partitions again."""
        self.consumer.resume(*map(self.partition._make, sorted(partitions)))

    def leave(self) -> None:
        """Leave the group."""
        self.consumer.unsubscribe()

    def has_left(self) -> bool:
        """Return whether the member is in no generation, to a caller that logs why."""
        return self.assignor.driver.has_left()

    def report(self, why: str) -> None:
        """Report a failure, which is logged and kept for the application."""
        self.assignor.driver.reporter.report(why)


def consumed(assignment: Any) -> Mapping[Any, int]:
    """Return partition -> position, of those that have one in a client's assignment, or None."""
    found = {} if assignment is None else assignment.all_consumed_offsets()
    return {partition: position.offset for partition, position in found.items()}


def known_topics(cluster: Any, topics: Iterable[str]) -> list[str]:
    """Return the topics that a client's metadata have, or that it may not describe, sorted.

    Args:
        cluster: the metadata; None: it has none.
        topics: in question.
    """
    if cluster is None:
        return sorted(topics)
    hidden = getattr(cluster, "unauthorized_topics", ())
    return [t for t in sorted(topics) if t in hidden or cluster.partitions_for_topic(t)]


class BlockingLoop:
    """A poll loop over a consumer whose calls block.

    Args:
        client: the consumer.
        loop: of this consumer alone.
        ended: ends the loop, and each of its pauses, when set.
    """

    def __init__(self, client: TaskClient, loop: PollLoop, ended: threading.Event) -> None:
        self._ended = ended
        self._engine = TaskEngine(client, loop, ended.is_set, ended.wait)

    def batches(self) -> Iterator[PolledBatch]:
        """Yield what polls return, as `Engine.batches`."""
        return carry_out(self._engine.batches())

    def run(self, stores: TaskStores, handle: Handler) -> None:
        """Process and commit what polls return, as `TaskEngine.tasks`."""
        with noted_end(stores, self._ended):
            result_of(self._engine.tasks(stores, handle))


@contextmanager
def noted_end(stores: TaskStores, ended: threading.Event | asyncio.Event) -> Iterator[None]:
    """Have waits for a broker look at the event in a block, and note why the block has ended."""
    LOOP_END.set(ended)
    stores.work.ended = ""
    try:
        yield
        stores.work.ended = "it was stopped"
    except BaseException as error:
        stores.work.ended = error_text(error)
        raise
    finally:
        LOOP_END.set(None)


def check_not_processing(listener: object, method: str) -> None:
    """Check that no function that processes records into state stores calls a method.

    Its batch is not finished: a poll would return other records, and a commit without offsets
    would be that of the whole batch.

    Args:
        listener: of the member.
        method: name, for the message.

    Raises:
        RuntimeError: one does.
    """
    if isinstance(listener, TaskStores) and listener.is_working:
        raise RuntimeError(
            f"{method} was called in a function that processes records, before its batch is "
            "finished, so that records would be lost; return instead: the loop commits what is "
            "finished, and polls"
        )


def check_may_close(listener: object) -> None:
    """Check that no function that processes records calls `close`.

    Args:
        listener: of the member.

    Raises:
        RuntimeError: one does; nothing has been closed.
    """
    if isinstance(listener, RunningTasks) and listener.is_working:
        raise RuntimeError(
            "close was called in a function that processes records, before its batch is finished; "
            "set the event that stops the loop, or return, and call close once the loop has ended"
        )
