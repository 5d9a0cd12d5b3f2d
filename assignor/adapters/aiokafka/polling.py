"""A poll loop for aiokafka that ends on fatal errors, and waits after all others.

`AIOKafkaConsumer.getmany` raises what its background tasks ended with at every call, thousands of
times a second. aiokafka does not know Kafka's error for a fenced member; it calls that, and other
errors, an unknown error. What a loop does after each error is decided by `PollLoop`. A member that
is ended leaves the group: one that no longer polls would delay every rebalance until
`max_poll_interval_ms`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from aiokafka.consumer.fetcher import OffsetResetStrategy
from aiokafka.errors import ConsumerStoppedError, KafkaError

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.port import commit_existing_topics
from assignor.adapters.aiokafka.records import name_unreadable_records
from assignor.adapters.membership import attached_member
from assignor.adapters.poll_arguments import (
    check_member,
    check_offsets,
    check_timeout,
    first_offsets,
)
from assignor.config import refused
from assignor.embedding import COMMIT_METADATA, MemberStopped
from assignor.embedding.loops import (
    CLOSED,
    InputWatch,
    PolledBatch,
    PollLoop,
    Step,
    log_late_commit,
    lost_positions,
    passed_over,
)
from assignor.errors import ConfigError

POLL_MS = 1000
# How much later than its timeout a call returns at most.
_LATE_S = 0.5
_Batch = Mapping[Any, list[Any]]
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
) -> AsyncIterator[_Batch]:
    """Yield what `getmany` returns, empty batches too, until the member has to stop.

    The loop ends when the whole group was asked to stop (KIP-671). A pause of the application that
    is longer than `max_poll_interval_ms` is a warning in the log, and the batches after a slow one
    are smaller.

    Args:
        consumer: started; of `streams_consumer`, or an `AIOKafkaConsumer` with an assignor
            attached.
        assignor: the attached assignor; default: that of the consumer.
        timeout_ms: of each call.
        stop: ends the loop when set.

    Raises:
        ConfigError: no assignor is attached to this consumer, or it is not started, or `stop` is
            no event, or `timeout_ms` no number.
        MemberStopped: the member cannot go on; the message says why, and what to do. It has left
            the group.
        UnreadableRecord: a record cannot be read; what was returned before can be committed.
    """
    assignor = attached_member(
        StreamsAssignor, assignor, consumer, getattr(consumer, "_partition_assignment_strategy", ())
    )
    _check_arguments(consumer, timeout_ms, stop)
    name_unreadable_records(consumer)
    ended = stop or asyncio.Event()
    loop = PollLoop(
        max_poll_interval_ms=getattr(consumer, "_max_poll_interval_ms", _NO_LIMIT_MS),
        max_poll_records=getattr(consumer, "_max_poll_records", None),
        client_errors=(KafkaError,),
    )
    with _own_resets(consumer) as watch:
        while loop.polls(is_ended=ended.is_set(), is_shutdown=assignor.shutdown_requested):
            before = _positions(consumer)
            size = {} if loop.max_records is None else {"max_records": loop.max_records}
            batch: _Batch = {}
            try:
                batch = await _within(timeout_ms, consumer.getmany(timeout_ms=timeout_ms, **size))
                check_member(consumer, assignor)
            except BaseException as error:  # noqa: BLE001 raised again, unless it may pass
                passed = passed_over(before, _positions(consumer)) | first_offsets(batch)
                for partition, at in passed.items():
                    if partition in consumer.assignment():
                        consumer.seek(partition, at)
                if await _ends_after(error, consumer, loop, ended, watch):
                    return
                continue
            loop.delivered(sum(map(len, batch.values())))
            yield PolledBatch(batch, _positions(consumer))


@contextmanager
def _own_resets(consumer: Any) -> Iterator[InputWatch]:
    """Yield where the loop continues; meanwhile aiokafka raises lost positions, and resets none."""
    fetcher = getattr(consumer, "_fetcher", None)
    before = getattr(fetcher, _STRATEGY, OffsetResetStrategy.NONE)
    if before != OffsetResetStrategy.NONE:
        setattr(fetcher, _STRATEGY, OffsetResetStrategy.NONE)
    try:
        yield InputWatch(OffsetResetStrategy.to_str(before))
    finally:
        if before != OffsetResetStrategy.NONE:
            setattr(fetcher, _STRATEGY, before)


async def _settle(consumer: Any, watch: InputWatch, error: BaseException) -> None:
    """Go on where the input is, with the lost positions of an error."""
    lost = lost_positions(error)
    wanted = {each: lost[each] for each in consumer.assignment() if each in lost}
    starts = await consumer.beginning_offsets([*wanted])
    ends = await consumer.end_offsets([*wanted])
    ranges = {each: (starts[each], ends[each]) for each in wanted}
    # aiokafka 0.14 asks for no ids of topics.
    for each, at in watch.settle(wanted, ranges, {}).items():
        if each in consumer.assignment():
            consumer.seek(each, at)


async def _within(timeout_ms: int, records: Awaitable[_Batch]) -> _Batch:
    """Return what `getmany` returns, or nothing: in a rebalance its own timeout does not count."""
    try:
        async with asyncio.timeout(timeout_ms / 1000 + _LATE_S) as limit:
            return await records
    except TimeoutError:
        if not limit.expired():
            raise
        return {}


async def _ends_after(
    error: BaseException, consumer: Any, loop: PollLoop, ended: asyncio.Event, watch: InputWatch
) -> bool:
    """Leave, raise or wait, as is decided; return whether the loop ends."""
    reaction = loop.failed(
        Step.POLL,
        error,
        is_ended=ended.is_set(),
        is_closed=isinstance(error, ConsumerStoppedError),
        resets=watch.resets,
        fenced_after_s=_patience_s(consumer, error),
    )
    if reaction.settles:
        try:
            await _settle(consumer, watch, error)
        except KafkaError as failure:
            return await _ends_after(failure, consumer, loop, ended, watch)
        return False
    if reaction.leaves:
        consumer.unsubscribe()
    if reaction.raised is error:
        raise error
    if reaction.raised is not None:
        raise reaction.raised from error
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), reaction.wait_s)
    return reaction.ends


async def commit_next(consumer: Any, next_offsets: Mapping[Any, Any] | None = None) -> bool:
    """Commit what is processed; return False if other members own some of the partitions now.

    They process again what was not committed. aiokafka rebalances while the application works, so
    this may happen at every commit. It also returns False if no broker has answered within
    `request_timeout_ms`; aiokafka's own `commit` would wait on. A topic that was deleted is left
    out, and named in the log once.

    Args:
        consumer: a started `AIOKafkaConsumer`.
        next_offsets: partition -> offset of the first record that is not processed, or a pair of
            that and metadata; default: all records that polls returned are processed.

    Raises:
        ConfigError: the consumer is not started, or `next_offsets` are no offsets.
        MemberStopped: the consumer is stopped.
    """
    _check_started(consumer)
    check_offsets(next_offsets, with_metadata=True)
    if not (consumer.assignment() if next_offsets is None else next_offsets):
        return True
    commit_existing_topics(consumer)
    # A user's metadata stand.
    offsets = next_offsets and {
        where: at if isinstance(at, tuple) else (at, COMMIT_METADATA)
        for where, at in next_offsets.items()
    }
    try:
        limit_ms = consumer._client._request_timeout_ms  # noqa: SLF001 no public way
        async with asyncio.timeout(limit_ms / 1000):
            await consumer.commit(offsets)
    except (KafkaError, TimeoutError) as error:
        log_late_commit(error)
        return False
    return True


def _positions(consumer: Any) -> Mapping[Any, int]:
    """Return partition -> position, of those that have one."""
    subscription = getattr(getattr(consumer, "_subscription", None), "subscription", None)
    assignment = getattr(subscription, "assignment", None)
    found = {} if assignment is None else assignment.all_consumed_offsets()
    return {partition: position.offset for partition, position in found.items()}


def _check_arguments(consumer: Any, timeout_ms: object, stop: object) -> None:
    """Check what `polled` is given."""
    if not isinstance(stop, asyncio.Event | None):
        raise refused("stop", stop, "an asyncio.Event")
    check_timeout("timeout_ms", timeout_ms)
    _check_started(consumer)


def _check_started(consumer: Any) -> None:
    """Check that a consumer is between `start` and `stop`."""
    if getattr(consumer, "_closed", False):
        raise MemberStopped(CLOSED)
    if getattr(consumer, "_coordinator", ...) is None:
        raise ConfigError("this consumer is not started; await consumer.start() first")


def _patience_s(consumer: Any, error: BaseException) -> float:
    """Return how long this error may last: a session, if it is that of a fenced static member."""
    is_static = getattr(consumer, "_group_instance_id", None) is not None
    if not (is_static and isinstance(error, KafkaError) and _UNKNOWN in str(error)):
        return float("inf")
    return float(getattr(consumer, "_session_timeout_ms", 10_000)) / 1000
