"""Poll loops of clients whose calls block: batches for an application, or processed into stores."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID

from assignor.adapters.threads import LOOP_END
from assignor.embedding import ClusterUnavailable, Handler, TaskState, TaskStores
from assignor.embedding.loops import (
    InputWatch,
    PolledBatch,
    PollLoop,
    Step,
    first_offsets,
    lost_positions,
    note_record,
    passed_over,
)
from assignor.logs import line_logger
from encoding import TopicPartition

Batch = Mapping[Any, Sequence[Any]]
_log = line_logger(__name__)
# When a loop ends: most commits, and how long after the last one of the loop another one begins.
_LAST_COMMITS: Final = 5
_LAST_COMMITS_S: Final = 5.0
_NOTHING: Final[Mapping[Any, int]] = MappingProxyType({})


class LoopClient(Protocol):
    """What a loop does with the consumer of its client; partitions are the client's own."""

    @property
    def is_closed(self) -> bool:
        """Whether the consumer is closed."""

    @property
    def is_shutdown(self) -> bool:
        """Whether the whole group was asked to stop."""

    def poll(self, max_records: int | None, *, waits: bool) -> Batch:
        """Return partition -> records.

        Args:
            max_records: most records; None: as the consumer is configured.
            waits: for the time that the loop was given; else not at all.

        Raises:
            MemberStopped: the member cannot go on.
            UnreadableRecord: the next record of a partition cannot be read.
        """

    def assigned(self) -> Collection[Any]:
        """Return the partitions that are assigned."""

    def positions(self) -> Mapping[Any, int]:
        """Return partition -> offset of the record that the next poll returns, where known.

        It is behind the control records of transactions that polls have passed.
        """

    def ranges(self, partitions: Collection[Any]) -> Mapping[Any, tuple[int, int]]:
        """Return partition -> its first offset, and the one behind its last; asks the cluster."""

    def topic_ids(self, *, asks: bool) -> Mapping[str, UUID | None]:
        """Return topic -> id of the assigned topics, as far as the client knows them.

        Args:
            asks: the cluster, if the client can; else the ids that it had last.
        """

    def seek(self, offsets: Mapping[Any, int]) -> None:
        """Read these partitions from other offsets, those that are still assigned."""

    def paused(self) -> AbstractSet[Any]:
        """Return the partitions of which nothing is fetched, also those of the application."""

    def pause(self, partitions: AbstractSet[Any]) -> None:
        """Fetch nothing of these partitions."""

    def resume(self, partitions: AbstractSet[Any]) -> None:
        """Fetch these partitions again."""

    def commit(self, next_offsets: Mapping[Any, int]) -> bool:
        """Commit offsets; return False if they have to be committed again."""

    def leave(self) -> None:
        """Leave the group."""


class BlockingLoop:
    """Polls a consumer until the loop has to end, and does what `PollLoop` says after an error.

    Args:
        client: the consumer.
        loop: of this consumer alone.
        ended: ends the loop, and each of its pauses, when set.
        reset: `auto_offset_reset` of the consumer, as far as the loop has to do it.
    """

    def __init__(
        self, client: LoopClient, loop: PollLoop, ended: threading.Event, reset: str = "none"
    ) -> None:
        self._input = InputWatch(reset)
        self._client = client
        self._loop = loop
        self._ended = ended
        self._waits = True
        # What a commit has left to a later one: it was refused, or has raised.
        self._late: Mapping[Any, int] = {}
        self._committing_since_s = 0.0
        # By this loop: what the application has paused stays paused.
        self._paused: AbstractSet[Any] = frozenset()
        self._handler_error: Exception | None = None
        # Positions before a poll, until its records are held or the caller has them; what it has
        # returned, and what of that is given to the caller. Whatever raises, and wherever, the
        # records are read again.
        self._before: Mapping[Any, int] | None = None
        self._polled: Batch | None = None
        self._given: PolledBatch | None = None

    def batches(self, *, is_measured: bool = True) -> Iterator[Batch]:
        """Yield what polls return, empty batches too.

        Args:
            is_measured: the application processes a batch before it asks for the next one.

        Raises:
            MemberStopped: the member cannot go on; it has left the group.
            UnreadableRecord: a record cannot be read.
        """
        client, loop = self._client, self._loop
        try:
            while loop.polls(is_ended=self._ended.is_set(), is_shutdown=client.is_shutdown):
                self._polled = self._given = None
                self._before = client.positions()
                try:
                    size = loop.max_records if is_measured else None
                    self._polled = batch = client.poll(size, waits=self._waits)
                except BaseException as error:  # noqa: BLE001 raised again, unless it may pass
                    self._read_again()
                    if self._ends_after(error, Step.POLL):
                        return
                    continue
                loop.delivered(sum(map(len, batch.values())) if is_measured else 0)
                anew = self._input.made_anew(client.topic_ids(asks=False), client.assigned())
                if anew:
                    # Of the former topic, or read again.
                    dropped = first_offsets({p: found for p, found in batch.items() if p in anew})
                    batch = {each: found for each, found in batch.items() if each not in anew}
                    self._polled = batch
                    client.seek(dropped)
                    if self._ends(partial(self._settle, {}, dropped=dropped), Step.POLL):
                        return
                self._given = PolledBatch(batch, client.positions())
                yield self._given
                if not is_measured and not self._given.is_held:
                    self._read_again()
                self._before = None
        except GeneratorExit:  # the caller has the batch
            raise
        except BaseException:
            self._read_again()
            raise

    def _read_again(self) -> None:
        """Set positions back to before the last poll, unless its records are held."""
        client = self._client
        is_held = self._given is not None and self._given.is_held
        if self._before is not None and not is_held and not client.is_closed:
            found = first_offsets(self._polled or {})
            client.seek(found | passed_over(self._before, client.positions()))
        self._before = None

    def run(self, stores: TaskStores, handle: Handler) -> None:
        """Process and commit batches, in slices: the rest of a batch waits for the next poll.

        What is paused meanwhile is resumed in the end.

        Raises:
            MemberStopped, UnreadableRecord: as `batches`.
            StoreError: a store cannot be used.
            Exception: of `handle`.
        """
        LOOP_END.set(self._ended)
        try:
            for batch in self.batches(is_measured=False):
                process = partial(self._process, stores, batch, partial(self._timed, handle))
                if self._ends(process) or self._ends(partial(self._follow, stores)):
                    return
            self._commit_last()
        finally:
            self._read_again()
            LOOP_END.set(None)
            if not self._client.is_closed:
                self._fetch_except(frozenset())

    def _process(self, stores: TaskStores, batch: Batch, handle: Handler) -> None:
        """Process and commit a batch, and what earlier calls kept, until it is time to poll."""
        self._commit(stores.process(batch, handle, is_over=self._is_over))
        self._loop.processed()

    def _commit(self, done: Mapping[Any, int]) -> None:
        """Commit, with what earlier commits have left; what this one leaves is kept."""
        if self._late:
            kept = self._client.assigned()
            done = {p: at for p, at in self._late.items() if p in kept} | {**done}
        self._late = done  # also if the commit raises
        self._committing_since_s = self._loop.now()
        if self._client.commit(done):
            self._late = {}

    def _commit_last(self) -> None:
        """Commit what is finished when the loop ends, if the last commit was refused.

        Polls in between follow a rebalance. What they return is read again. A commit that no broker
        has answered in the time is not repeated.
        """
        end_s = self._committing_since_s + _LAST_COMMITS_S
        for _ in range(_LAST_COMMITS):
            if not self._late or self._client.is_closed or self._loop.now() > end_s:
                break
            if self._ends(self._poll_and_commit):
                break
        if self._late:
            _log.warning(
                "the loop ended before offsets were committed (%s): the next owners of the "
                "partitions process the records behind them again, without effect on state",
                ", ".join(f"{p}: {at}" for p, at in self._late.items()),
            )

    def _poll_and_commit(self) -> None:
        batch = self._client.poll(1, waits=True)
        self._client.seek(first_offsets(batch))
        self._commit({})

    def _follow(self, stores: TaskStores) -> None:
        """Read again what was dropped, and nothing of tasks that have records or are restored."""
        self._client.seek(stores.unread())
        self._fetch_except(stores.waiting)
        self._waits = not stores.has_rest

    def _fetch_except(self, waiting: AbstractSet[TopicPartition]) -> None:
        """Fetch nothing of these partitions, and again of others that this loop has paused."""
        paused = self._client.paused()
        own = self._paused & paused  # a client may forget it in a rebalance
        pausing = waiting & {*self._client.assigned()} - paused
        self._client.resume(own - waiting)
        self._client.pause(pausing)
        self._paused = own & waiting | pausing

    def _timed(self, handle: Handler, record: Any, state: TaskState) -> object:
        """Call the function that processes records, measure it, and keep its error."""
        begin_s = self._loop.now()
        try:
            return handle(record, state)
        except ClusterUnavailable:  # of a changelog or an output
            raise
        except Exception as error:
            self._handler_error = error
            note_record(error, record, state.task)
            raise
        finally:
            self._loop.handled(record, begin_s)

    def _is_over(self) -> bool:
        return self._ended.is_set() or self._loop.is_slice_over()

    def _settle(
        self,
        lost: Mapping[Any, int | None],
        error: BaseException | None = None,
        dropped: Mapping[Any, int] = _NOTHING,
    ) -> None:
        """Go on where the input is: with lost positions, and in topics that were made anew.

        Args:
            lost: partition -> offset that the error names.
            error: of the client.
            dropped: partition -> position before records that were polled and are not delivered.
        """
        client = self._client
        ids = client.topic_ids(asks=True)
        positions = {**client.positions(), **dropped}
        own = {each: each for each in client.assigned()}
        lost = {own[each]: at for each, at in lost.items() if each in own}
        truncated = lost if hasattr(error, "divergent_offsets") else {}
        # Where no position is known yet, that of the group comes.
        anew = self._input.made_anew(ids, own)
        wanted: dict[Any, int | None] = {
            each: positions[each] for each in anew if each in positions
        }
        wanted |= {each: positions.get(each, at) for each, at in lost.items()}
        if wanted:
            client.seek(self._input.settle(wanted, client.ranges(wanted), ids, truncated))

    def _ends(self, work: Callable[[], object], step: Step = Step.PROCESS) -> bool:
        """Do a part of the work; return whether the loop ends, as after `_ends_after`."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 raised again, unless it may pass
            return self._ends_after(error, step)
        return False

    def _ends_after(self, error: BaseException, step: Step) -> bool:
        """Leave, raise or wait, as is decided; return whether the loop ends."""
        reaction = self._loop.failed(
            step,
            error,
            is_ended=self._ended.is_set(),
            is_closed=self._client.is_closed,
            is_handlers=error is self._handler_error,
            resets=self._input.resets,
        )
        if reaction.settles:
            return self._ends(partial(self._settle, lost_positions(error), error), step)
        if reaction.leaves:
            self._client.leave()
        if reaction.raised is error:
            raise error
        if reaction.raised is not None:
            raise reaction.raised from error
        self._ended.wait(reaction.wait_s)
        return reaction.ends


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
