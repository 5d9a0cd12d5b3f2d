"""A poll loop for aiokafka that ends on fatal errors, and waits after all others.

`AIOKafkaConsumer.getmany` raises what its background tasks ended with at every call, thousands of
times a second. aiokafka does not know Kafka's error for a fenced member; it calls that, and other
errors, an unknown error. A member that was refused leaves the group: one that no longer polls would
delay every rebalance until `max_poll_interval_ms`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from aiokafka.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    IllegalStateError,
    KafkaError,
)

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.membership import attached_member
from assignor.adapters.poll_arguments import CLOSED, check_offsets, check_timeout
from assignor.config import refused
from assignor.embedding import LEFT_GROUP, MemberStopped, PollErrors, PollPace
from assignor.errors import ConfigError
from assignor.logs import line_logger
from encoding import RebalanceError

_log = line_logger(__name__)

POLL_MS = 1000
_UNKNOWN = "UnknownError"
_NO_LIMIT_MS = 2**31 - 1


async def polled(
    consumer: Any,
    assignor: StreamsAssignor | None = None,
    *,
    timeout_ms: int = POLL_MS,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[Mapping[Any, list[Any]]]:
    """Yield what `getmany` returns, empty batches too, until the member has to stop.

    The loop ends when the whole group was asked to stop (KIP-671). A pause of the application that
    is longer than `max_poll_interval_ms` is a warning in the log.

    Args:
        consumer: started; of `streams_consumer`, or an `AIOKafkaConsumer` with an assignor
            attached.
        assignor: the attached assignor; default: that of the consumer.
        timeout_ms: of each call.
        stop: ends the loop when set.

    Raises:
        ConfigError: no assignor is attached to this consumer, or it is not started, or `stop` is
            no event, or `timeout_ms` no number.
        MemberStopped: the member cannot go on; the message says why, and what to do. A refused
            member leaves the group.
    """
    assignor = attached_member(
        StreamsAssignor, assignor, consumer, getattr(consumer, "_partition_assignment_strategy", ())
    )
    _check_arguments(consumer, timeout_ms, stop)
    ended, errors = stop or asyncio.Event(), PollErrors()
    pace = PollPace(max_poll_interval_ms=getattr(consumer, "_max_poll_interval_ms", _NO_LIMIT_MS))
    failing_since_s: float | None = None
    while not ended.is_set() and not assignor.shutdown_requested:
        if too_long := pace.poll_begins():
            _log.warning("%s", too_long)
        try:
            batch = await consumer.getmany(timeout_ms=timeout_ms)
        except ConsumerStoppedError as error:
            raise MemberStopped(CLOSED) from error
        except (KafkaError, RebalanceError, OSError) as error:
            pause = errors.failed(error)
            now_s = time.monotonic()
            failing_since_s = now_s if failing_since_s is None else failing_since_s
            if _UNKNOWN in str(error) and now_s - failing_since_s > _patience_s(consumer):
                raise MemberStopped(
                    f"{LEFT_GROUP} ({error}): most likely "
                    "another process with this group.instance.id took over; give each its own"
                ) from error
            _log.warning("%s", pause.why)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), pause.wait_ms / 1000)
            continue
        errors.succeeded()
        failing_since_s = None
        if assignor.failed is not None:
            consumer.unsubscribe()
            raise MemberStopped(f"{LEFT_GROUP}: {assignor.failed}")
        pace.poll_ended()
        yield batch


async def commit_next(consumer: Any, next_offsets: Mapping[Any, int] | None = None) -> bool:
    """Commit what is processed; return False if other members own some of the partitions now.

    They process again what was not committed. aiokafka rebalances while the application works, so
    this may happen at every commit. It also returns False if no broker has answered within
    `request_timeout_ms`; aiokafka's own `commit` would wait on.

    Args:
        consumer: a started `AIOKafkaConsumer`.
        next_offsets: partition -> offset of the first record that is not processed; default: all
            records that polls returned are processed.

    Raises:
        ConfigError: the consumer is not started, or `next_offsets` are no offsets.
        MemberStopped: the consumer is stopped.
    """
    _check_started(consumer)
    check_offsets(next_offsets, with_metadata=True)
    if not (consumer.assignment() if next_offsets is None else next_offsets):
        return True
    try:
        limit_ms = consumer._client._request_timeout_ms  # noqa: SLF001 no public way
        async with asyncio.timeout(limit_ms / 1000):
            await consumer.commit(next_offsets)
    except TimeoutError:
        _log.warning("not committed: no broker has answered within request_timeout_ms")
        return False
    except (CommitFailedError, IllegalStateError) as error:
        _log.info("not committed: %s", " ".join(str(error).split()))
        return False
    return True


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


def _patience_s(consumer: Any) -> float:
    """Return how long unknown errors may last: a session; only static members are fenced."""
    if getattr(consumer, "_group_instance_id", None) is None:
        return float("inf")
    return float(getattr(consumer, "_session_timeout_ms", 10_000)) / 1000
