"""The poll loop of all clients: deliver, seek back, commit, pause, resume, end. It does no I/O.

An `Engine` yields what is to be done, one call after the other, and is sent what the call has
returned, or is thrown what it has raised. So a blocking client and an asynchronous one have the
same loop; what carries out the calls decides nothing. What an event leads to is decided by the
table of `assignor.embedding.loops.rules`.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from assignor.embedding.errors import is_interrupt
from assignor.embedding.loops.client import Batch, LoopClient
from assignor.embedding.loops.loop import PollLoop, first_offsets, passed_over
from assignor.embedding.loops.rules import Step, lost_positions
from assignor.embedding.loops.watch import PolledBatch

_Result = TypeVar("_Result")
Steps = Generator[Callable[[], Any] | PolledBatch, Any, _Result]
"""What is to be done: a call, or a batch that the application gets."""

NOTHING: Final[Mapping[Any, int]] = MappingProxyType({})


class Engine:
    """Polls a consumer until the loop has to end.

    Args:
        client: the consumer.
        loop: of this consumer alone.
        is_ended: whether the loop is to end.
        wait: waits so many seconds, or until the loop is to end.
    """

    def __init__(
        self,
        client: LoopClient,
        loop: PollLoop,
        is_ended: Callable[[], bool],
        wait: Callable[[float], object],
    ) -> None:
        self._client = client
        self._loop = loop
        self._is_ended = is_ended
        self._wait = wait
        self._waits = True
        # Positions before a poll, until its records are held or the caller has them; what it has
        # returned, and what of that is given to the caller. Whatever raises, and wherever, the
        # records are read again.
        self._before: Mapping[Any, int] | None = None
        self._polled: Batch | None = None
        self._given: PolledBatch | None = None
        self._is_handed_over = False
        self._handler_error: Exception | None = None
        self._commit_error: Exception | None = None

    def batches(self) -> Steps[None]:
        """Deliver what polls return, empty batches too; each is processed before the next poll.

        Raises:
            MemberStopped: the member cannot go on; it has left the group.
            UnreadableRecord: a record cannot be read.
        """
        yield from self._poll_on(self._hand_over, is_measured=True)

    def _hand_over(self, batch: PolledBatch) -> Steps[bool]:
        self._is_handed_over = True
        yield batch
        self._is_handed_over = False
        return False

    def _poll_on(
        self, deliver: Callable[[PolledBatch], Steps[bool]], *, is_measured: bool
    ) -> Steps[None]:
        """Poll and deliver; `deliver` returns whether the loop ends."""
        client, loop = self._client, self._loop
        try:
            while loop.polls(
                is_ended=self._is_ended(),
                is_shutdown=client.is_shutdown,
                has_left=client.has_left,
            ):
                try:
                    size = loop.max_records if is_measured else None
                    batch = yield from self._poll(size, waits=self._waits)
                except BaseException as error:  # noqa: BLE001 raised again, unless it may pass
                    self.read_again()
                    if (yield from self._ends_after(error, Step.POLL)):
                        return
                    continue
                loop.delivered(sum(map(len, batch.values())) if is_measured else None)
                if (yield from self._ends(self._drop_former(batch), Step.POLL)):
                    return
                self._given = PolledBatch(
                    self._polled or {},
                    client.positions(),
                    client.input.take_settled(),
                    loop.wait_s,
                    client.input.topic_ids,
                )
                if (yield from deliver(self._given)):
                    return
                if not is_measured and not self._given.is_held:
                    self.read_again()
                self._before = None
        except BaseException as error:
            # One that leaves the loop while it has a batch has processed it.
            if not (self._is_handed_over and isinstance(error, GeneratorExit)):
                self.read_again()
            raise

    def _poll(self, size: int | None, *, waits: bool) -> Steps[Batch]:
        """Return what a poll returns; `read_again` forgets it."""
        self._polled = self._given = None
        self._before = self._client.positions()
        try:
            batch: Batch = yield partial(self._client.poll, size, waits=waits)
        except Exception as error:
            # An error of the listener, in the same poll, comes before the client's.
            if not is_interrupt(error):
                self._client.check()
            raise
        self._polled = batch
        self._client.check()
        return batch

    def _drop_former(self, batch: Batch) -> Steps[None]:
        """Drop records of topics that were made anew: of the former topic, or read again."""
        client = self._client
        ids = client.topic_ids(asks=False)
        if anew := client.input.look(ids, client.assigned(), self._loop.now()):
            dropped = first_offsets({p: found for p, found in batch.items() if p in anew})
            self._polled = {p: found for p, found in batch.items() if p not in anew}
            client.seek(dropped)
            yield from settle(client, {}, dropped=dropped)

    def read_again(self) -> None:
        """Set positions back to before the last poll, unless its records are held."""
        is_held = self._given is not None and self._given.is_held
        if self._before is not None and not is_held and not self._client.is_closed:
            seek_back(self._client, self._before, self._polled)
        self._before = None

    def _ends(self, work: Steps[object], step: Step) -> Steps[bool]:
        """Do a part of the work; return whether the loop ends, as after `_ends_after`."""
        try:
            yield from work
        except Exception as error:  # noqa: BLE001 raised again, unless it may pass
            is_commits = error is self._commit_error
            return (yield from self._ends_after(error, Step.COMMIT if is_commits else step))
        return False

    def _ends_after(self, error: BaseException, step: Step) -> Steps[bool]:
        """Leave, raise or wait, as is decided; return whether the loop ends."""
        reaction = self._loop.failed(
            step,
            error,
            is_ended=self._is_ended(),
            is_closed=self._client.is_closed,
            is_handlers=error is self._handler_error,
            resets=self._client.input.resets,
        )
        if reaction.settles:
            steps = settle(self._client, lost_positions(error), error)
            return (yield from self._ends(steps, step))
        if reaction.leaves:
            yield self._client.leave
        if reaction.raised is error:
            raise error
        if reaction.raised is not None:
            raise reaction.raised from error
        yield partial(self._wait, reaction.wait_s)
        return reaction.ends


def seek_back(
    client: LoopClient,
    before: Mapping[Any, int],
    polled: Batch | None,
    after: Mapping[Any, float] | None = None,
) -> None:
    """Have what a poll has taken, and nobody has, read again.

    Args:
        client: the consumer.
        before: positions before the poll, where known.
        polled: what the poll has returned; None: it has raised, or the answer is lost.
        after: positions after it; default: those that the client has.
    """
    if polled is not None:
        client.seek(first_offsets(polled))
        return
    after = client.positions() if after is None else after
    client.seek(passed_over({**before, **client.begins(after, before)}, after))


def settle(
    client: LoopClient,
    lost: Mapping[Any, int | None],
    error: BaseException | None = None,
    dropped: Mapping[Any, int] = NOTHING,
) -> Steps[Mapping[Any, int]]:
    """Go on where the input is: with lost positions, and in topics that were made anew.

    Args:
        client: the consumer.
        lost: partition -> offset that the error names.
        error: of the client.
        dropped: partition -> position before records that were polled and are not delivered.

    Returns:
        Partition -> offset at which reading continues.
    """
    ids = yield partial(client.topic_ids, asks=True)
    own = {each: each for each in client.assigned()}
    begins = client.begins(own, NOTHING)
    positions = {**begins, **client.positions(), **dropped}
    lost = {own[each]: at for each, at in lost.items() if each in own}
    truncated = lost if hasattr(error, "divergent_offsets") else {}
    # Where no position is known yet, that of the group comes; below 0: it has committed none.
    uncommitted = {each for each, at in begins.items() if at < 0}
    client.input.note(ids, own)
    anew = client.input.made_anew(ids, own)
    known = {each: at for each, at in positions.items() if at >= 0}
    wanted: dict[Any, int | None] = {each: known.get(each) for each in anew if each in positions}
    wanted |= {each: known.get(each, at) for each, at in lost.items()}
    if not wanted:
        return NOTHING
    ranges = yield partial(client.ranges, wanted)
    found = client.input.settle(wanted, ranges, ids, truncated, uncommitted)
    client.seek(found)
    return found
