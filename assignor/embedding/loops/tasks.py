"""The poll loop of a member that processes its records into state stores. It does no I/O."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from assignor.embedding.errors import ClusterUnavailable
from assignor.embedding.loops.client import Batch, TaskClient
from assignor.embedding.loops.engine import NOTHING, Engine, Steps
from assignor.embedding.loops.rules import Step
from assignor.embedding.loops.watch import PolledBatch
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)
_Handler = Callable[[Any, Any], object]
# When a loop ends: most commits, and how long after the last one of the loop another one begins.
_LAST_COMMITS: Final = 5
_LAST_COMMITS_S: Final = 5.0


class TaskEngine(Engine):
    """Polls a consumer, and processes its records into state stores; arguments as `Engine`."""

    _client: TaskClient
    # What a commit has left to a later one: it was refused, or has raised. An earlier loop over
    # these stores may have left something, too.
    _late: Mapping[Any, int] = NOTHING
    _are_committed = False
    _committing_since_s = 0.0
    # By this loop: what the application has paused stays paused.
    _paused: AbstractSet[Any] = frozenset()

    def tasks(self, stores: Any, handle: _Handler) -> Steps[None]:
        """Process and commit batches, in slices: the rest of a batch waits for the next poll.

        What is paused meanwhile is resumed in the end.

        Args:
            stores: the `TaskStores` of the member.
            handle: processes a record with the state of its task.

        Raises:
            MemberStopped, UnreadableRecord: as `batches`.
            StoreError: a store cannot be used.
            Exception: of `handle`.
        """
        process = partial(self._deliver, stores, partial(self._timed, handle))
        try:
            yield from self._poll_on(process, is_measured=False)
            yield from self._commit_last()
        finally:
            self.read_again()
            if not self._client.is_closed:
                self._fetch_except(frozenset())

    def _deliver(self, stores: Any, handle: _Handler, batch: PolledBatch) -> Steps[bool]:
        """Process and commit a batch, and what earlier calls kept, until it is time to poll."""
        for work in (self._process(stores, handle, batch), self._follow(stores)):
            if (yield from self._ends(work, Step.PROCESS)):
                return True
        return False

    def _process(self, stores: Any, handle: _Handler, batch: PolledBatch) -> Steps[None]:
        done = yield partial(
            stores.process,
            batch,
            handle,
            is_over=self._is_over,
            slow=self._loop.slow,
            are_committed=self._are_committed,
        )
        yield from self._commit(done)
        self._loop.processed()

    def _poll(self, size: int | None, *, waits: bool) -> Steps[Batch]:
        """Poll as `Engine`; of partitions that have moved away nothing is committed any more.

        When they come back, their owners meanwhile may have committed higher offsets.
        """
        try:
            return (yield from super()._poll(size, waits=waits))
        finally:
            if self._late and not self._client.is_closed:
                kept = {*self._client.assigned()}
                self._late = {p: at for p, at in self._late.items() if p in kept}

    def _commit(self, done: Mapping[Any, int]) -> Steps[None]:
        """Commit, with what earlier commits have left; what this one leaves is kept.

        Offsets beyond the position are those of a former topic.
        """
        done = {**self._late, **done}
        positions = self._client.positions() if done else {}
        done = {p: at for p, at in done.items() if at <= positions.get(p, at)}
        self._late, self._are_committed = done, False  # also if the commit raises
        self._committing_since_s = self._loop.now()
        try:
            is_done = yield partial(self._client.commit, done)
        except Exception as error:
            self._commit_error = error
            raise
        if is_done:
            self._late, self._are_committed = {}, True

    def _commit_last(self) -> Steps[None]:
        """Commit what is finished when the loop ends, if the last commit was refused.

        Polls in between follow a rebalance. What they return is read again. A commit that no broker
        has answered in the time is not repeated.
        """
        end_s = self._committing_since_s + _LAST_COMMITS_S
        for _ in range(_LAST_COMMITS):
            if not self._late or self._client.is_closed or self._loop.now() > end_s:
                break
            if (yield from self._ends(self._poll_and_commit(), Step.PROCESS)):
                break
        if self._late:
            _log.warning(
                "the loop ended before offsets were committed (%s): the next owners of the "
                "partitions process the records behind them again, without effect on state",
                ", ".join(f"{p}: {at}" for p, at in self._late.items()),
            )

    def _poll_and_commit(self) -> Steps[None]:
        try:
            yield from self._poll(1, waits=True)
        finally:
            self.read_again()
        yield from self._commit({})

    def _follow(self, stores: Any) -> Steps[None]:
        """Read again what was dropped, and nothing of tasks that have records or are restored."""
        self._client.seek(stores.unread())
        self._fetch_except(stores.waiting)
        # A slow record waits for a commit, which is made again after the next poll.
        self._waits = not stores.has_rest or bool(self._loop.slow and self._late)
        yield from ()

    def _fetch_except(self, waiting: AbstractSet[TopicPartition]) -> None:
        """Fetch nothing of these partitions, and again of others that this loop has paused."""
        paused = self._client.paused()
        # A client may forget it in a rebalance; the application may have paused it, too.
        own = self._paused & paused - self._client.paused_by_application()
        pausing = waiting & {*self._client.assigned()} - paused
        self._client.resume(own - waiting)
        self._client.pause(pausing)
        self._paused = own & waiting | pausing

    def _timed(self, handle: _Handler, record: Any, state: Any) -> object:
        """Call the function that processes records, measure it, and keep its error."""
        begin_s = self._loop.now()
        try:
            return handle(record, state)
        except ClusterUnavailable:  # of a changelog or an output
            raise
        except Exception as error:
            self._handler_error = error
            raise
        finally:
            if why := self._loop.handled(record, begin_s, self._client.has_left):
                self._client.report(why)

    def _is_over(self) -> bool:
        return self._is_ended() or self._loop.is_slice_over()
