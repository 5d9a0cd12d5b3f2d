"""A poll loop for aiokafka that ends on fatal errors, and waits after all others.

`AIOKafkaConsumer.getmany` raises what its background tasks ended with at every call, thousands of
times a second. aiokafka does not know Kafka's error for a fenced member; it calls that, and other
errors, an unknown error. What a loop does after each error is decided by `PollLoop`. A member that
is ended leaves the group: one that no longer polls would delay every rebalance until
`max_poll_interval_ms`.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

from aiokafka import TopicPartition as ClientPartition
from aiokafka.consumer.fetcher import OffsetResetStrategy
from aiokafka.errors import KafkaError, KafkaTimeoutError

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.coordinator import commit_existing_topics, count_polls
from assignor.adapters.aiokafka.port import AiokafkaPort
from assignor.adapters.aiokafka.records import name_unreadable_records
from assignor.adapters.consumer_state import broker_waits, own_resets, waited_s
from assignor.adapters.membership import EmbeddedMember
from assignor.adapters.poll_arguments import (
    attached_member,
    check_offsets,
    check_timeout,
    is_closed,
    no_consumer,
)
from assignor.adapters.processing import (
    GroupConsumer,
    await_out,
    consumed,
)
from assignor.config import is_deferred, refused
from assignor.embedding import COMMIT_METADATA, MemberStopped, error_text
from assignor.embedding.loops import CLOSED, Batch, Engine, PollLoop, log_late_commit
from assignor.errors import ConfigError

_Engine = TypeVar("_Engine", bound=Engine)

POLL_MS = 1000
# How much later than its timeout a call returns at most.
_LATE_S = 0.5
# How long a poll waits before it returns nothing, since the member is about to join.
_JOINS_S = 0.01
# How long an election may take. The loop tries again after that, and reads other topics meanwhile.
_RANGES_S = 5.0
_UNKNOWN = "UnknownError"
_NO_LIMIT_MS = 2**31 - 1
# Where aiokafka has what to do with a lost position; there is no public way.
_STRATEGY = "_default_reset_strategy"


async def polled(
    consumer: Any,
    assignor: StreamsAssignor | None = None,
    *,
    timeout_ms: int = POLL_MS,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[Batch]:
    """Yield what `getmany` returns, empty batches too, until the member has to stop.

    The loop ends when the whole group was asked to stop (KIP-671). A pause of the application that
    is longer than `max_poll_interval_ms` is a warning in the log, and the batches after a slow one
    are smaller. A call that blocks the event loop, which sends the heartbeats, for longer than
    `session_timeout_ms` is a warning, too: await it with `asyncio.to_thread`.

    Args:
        consumer: started; of `streams_consumer`, or an `AIOKafkaConsumer` with an assignor
            attached.
        assignor: the attached assignor; default: that of the consumer.
        timeout_ms: of each call.
        stop: ends the loop when set.

    Raises:
        ConfigError: an argument is wrong, or no assignor is attached to this consumer, or it is
            not started.
        MemberStopped: the member cannot go on; the message says why, and what to do. It has left
            the group.
        UnreadableRecord: a record cannot be read; what was returned before can be committed.
    """
    check_arguments(consumer, timeout_ms, stop)
    assignor = attached_member(
        StreamsAssignor, assignor, consumer, getattr(consumer, "_partition_assignment_strategy", ())
    )
    ended = stop or asyncio.Event()
    with consumer_engine(Engine, consumer, assignor, timeout_ms, ended) as engine:
        async with aclosing(await_out(engine.batches())) as found:
            async for batch in found:
                yield batch


@contextmanager
def consumer_engine(
    kind: type[_Engine],
    consumer: Any,
    assignor: StreamsAssignor,
    timeout_ms: int,
    ended: asyncio.Event,
) -> Iterator[_Engine]:
    """Yield the loop over a consumer, which resets lost positions itself meanwhile."""
    name_unreadable_records(consumer)
    count_polls(consumer)
    loop = PollLoop(
        max_poll_interval_ms=getattr(consumer, "_max_poll_interval_ms", _NO_LIMIT_MS),
        max_poll_records=getattr(consumer, "_max_poll_records", None),
        client_errors=(KafkaError,),
        waited_s=partial(waited_s, consumer, assignor),
        fenced_after_s=lambda error: _patience_s(consumer, error),
    )
    fetcher = getattr(consumer, "_fetcher", None)
    begun = getattr(getattr(fetcher, "_records", None), "begun", {})
    with (
        own_resets(fetcher, _STRATEGY, OffsetResetStrategy.NONE) as before,
        port_of(assignor).loop(),
    ):
        reset = OffsetResetStrategy.to_str(before)
        client = ConsumerLoop(consumer, assignor, timeout_ms, begun, reset)
        yield kind(client, loop, ended.is_set, lambda wait_s: _wait(ended, wait_s))


def port_of(assignor: EmbeddedMember) -> AiokafkaPort:
    """Return the port of an assignor that is attached."""
    return cast("AiokafkaPort", assignor.driver.port)


async def _wait(ended: asyncio.Event, wait_s: float) -> None:
    """Wait so many seconds, or until the event is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), wait_s)


class ConsumerLoop(GroupConsumer):
    """`TaskClient` of an `AIOKafkaConsumer`."""

    partition = ClientPartition

    async def poll(self, max_records: int | None, *, waits: bool) -> Batch:
        """Return what `getmany` does, or nothing: in a rebalance its own timeout does not count.

        While the member is about to join, nothing is returned until it does.
        """
        port = port_of(self.assignor)
        with port.polling():
            if port.joins_soon:
                await asyncio.sleep(_JOINS_S)
                return {}
            return await self._getmany(max_records, self.timeout_ms if waits else 0)

    async def _getmany(self, max_records: int | None, timeout_ms: int) -> Batch:
        size = {} if max_records is None else {"max_records": max_records}
        self.begun.clear()
        try:
            async with asyncio.timeout(timeout_ms / 1000 + _LATE_S) as limit:
                batch: Batch = await self.consumer.getmany(timeout_ms=timeout_ms, **size)
                return batch
        except TimeoutError:
            if not limit.expired():
                raise
            return {}

    def check(self) -> None:
        """Check after a poll that the member can go on.

        Raises:
            MemberStopped: the member was refused; or the task that fetches for the consumer has
                ended, so that each poll would return nothing (aiokafka 983).
            ListenerFailed: the listener of the assignor has raised.
        """
        super().check()
        fetching = getattr(getattr(self.consumer, "_fetcher", None), "_fetch_task", None)
        if fetching is not None and fetching.done():
            error = None if fetching.cancelled() else fetching.exception()
            why = "it was cancelled" if error is None else error_text(error)
            raise MemberStopped(
                f"aiokafka has ended the task that fetches records ({why}), and would return none "
                "any more; make another consumer"
            )

    def positions(self) -> Mapping[Any, int]:
        """Return partition -> position, of those that have one."""
        subscription = getattr(getattr(self.consumer, "_subscription", None), "subscription", None)
        return consumed(getattr(subscription, "assignment", None))

    async def ranges(self, partitions: Collection[Any]) -> Mapping[Any, tuple[int, int]]:
        """Return partition -> its first offset, and the one behind its last.

        Raises:
            KafkaError: the cluster does not answer in time, or a topic was deleted: aiokafka itself
                would ask on for `request_timeout_ms`.
        """
        try:
            async with asyncio.timeout(_RANGES_S):
                starts = await self.consumer.beginning_offsets([*partitions])
                ends = await self.consumer.end_offsets([*partitions])
        except TimeoutError:
            listed = ", ".join(f"{topic} [{number}]" for topic, number in sorted(partitions))
            raise KafkaTimeoutError(
                f"the offsets of {listed} are not known within {_RANGES_S:g} s: they do not exist, "
                "have no leader, or no broker answers"
            ) from None
        return {each: (starts[each], ends[each]) for each in partitions}

    async def commit(self, next_offsets: Mapping[Any, int]) -> bool:
        """Commit offsets; return False if they have to be committed again."""
        return await commit_next(self.consumer, next_offsets)


async def commit_next(consumer: Any, next_offsets: Mapping[Any, Any] | None = None) -> bool:
    """Commit what is processed; return False if other members own some of the partitions now.

    They process again what was not committed. A loop of `polled` commits before the member joins; a
    loop of your own may lose tasks at any time. It also returns False if no broker has answered
    within `request_timeout_ms`; aiokafka's own `commit` would wait on. A topic that does not exist
    is left out, and named in the log once.

    Args:
        consumer: a started `AIOKafkaConsumer`.
        next_offsets: partition, or pair of topic and number -> offset of the first record that is
            not processed, or a pair of that and metadata; default: all records that polls returned
            are processed.

    Raises:
        ConfigError: it is a consumer of another client, or not started, or `next_offsets` are no
            offsets.
        MemberStopped: the consumer is stopped.
    """
    _check_started(consumer)
    check_offsets(next_offsets, with_metadata=True)
    if not (consumer.assignment() if next_offsets is None else next_offsets):
        return True
    commit_existing_topics(consumer)
    # A user's metadata stand.
    offsets = next_offsets and {
        ClientPartition(*where): at if isinstance(at, tuple) else (at, COMMIT_METADATA)
        for where, at in next_offsets.items()
    }
    try:
        limit_ms = consumer._client._request_timeout_ms  # noqa: SLF001 no public way
        with broker_waits(getattr(consumer, "_coordinator", None)).waiting():
            async with asyncio.timeout(limit_ms / 1000):
                await consumer.commit(offsets)
    except (KafkaError, TimeoutError) as error:
        log_late_commit(error)
        return False
    return True


def check_arguments(consumer: Any, timeout_ms: object, stop: object) -> None:
    """Check what `polled` and `run_tasks` are given."""
    if not isinstance(stop, asyncio.Event | None):
        raise refused("stop", stop, "an asyncio.Event")
    check_timeout("timeout_ms", timeout_ms)
    _check_started(consumer)


def _check_started(consumer: Any) -> None:
    """Check that a consumer is aiokafka's, between `start` and `stop`."""
    if isinstance(consumer, type) or not is_deferred(getattr(consumer, "commit", None)):
        raise no_consumer(consumer, "an AIOKafkaConsumer")
    if is_closed(consumer):
        raise MemberStopped(CLOSED)
    if getattr(consumer, "_coordinator", ...) is None:
        raise ConfigError("this consumer is not started; await consumer.start() first")


def _patience_s(consumer: Any, error: BaseException) -> float:
    """Return how long this error may last: a session, if it is that of a fenced static member."""
    is_static = getattr(consumer, "_group_instance_id", None) is not None
    if not (is_static and isinstance(error, KafkaError) and _UNKNOWN in str(error)):
        return float("inf")
    return float(getattr(consumer, "_session_timeout_ms", 10_000)) / 1000
