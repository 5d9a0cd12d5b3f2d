"""A poll loop for kafka-python that ends on fatal errors, and waits after all others.

`KafkaConsumer.poll` raises the same error again at once when a member is fenced or has no rights,
and kafka-python makes no pause of its own. Here such an error ends the loop with `MemberStopped`,
and the next poll after any other error waits. A member that is ended leaves the group: one that no
longer polls would delay every rebalance until `max_poll_interval_ms`.

From the JoinGroup request until a poll takes the answer, kafka-python sends no heartbeats. So a
pause between two polls that is longer than the session timeout can cost the membership.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
)
from kafka.structs import OffsetAndMetadata

from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.membership import attached_member
from assignor.adapters.poll_arguments import CLOSED, check_offsets, check_timeout, stop_event
from assignor.embedding import LEFT_GROUP, MemberStopped, PollErrors, PollPace
from assignor.errors import ConfigError
from assignor.logs import line_logger
from encoding import RebalanceError

_log = line_logger(__name__)

POLL_MS = 1000
"""Default timeout of a poll: longer than most rebalances, so that their answer comes within it."""

# How long a consumer sends no heartbeats, at every check, before it counts as fenced.
_SILENT_S = 1.0


class SilenceWatch:
    """Finds a member whose heartbeats have stopped, as kafka-python's do once it is fenced."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    def is_fenced(self, assignor: StreamsAssignor) -> bool:
        """Return whether the member was silent at every check, for longer than a moment.

        A poll or the application may take long between two checks: one check is no proof.
        """
        now_s = time.monotonic()
        if not assignor.is_silent:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = now_s
        return self._since_s is not None and now_s - self._since_s > _SILENT_S


def polled(
    consumer: Any,
    assignor: StreamsAssignor | None = None,
    *,
    timeout_ms: int = POLL_MS,
    stop: threading.Event | None = None,
) -> Iterator[Mapping[Any, list[Any]]]:
    """Yield what `poll` returns, empty batches too, until the member has to stop.

    The loop ends when the whole group was asked to stop (KIP-671). A pause of the application
    beyond the session timeout or `max_poll_interval_ms` is a warning in the log.

    Args:
        consumer: of `streams_consumer`, or a `KafkaConsumer` with an assignor attached.
        assignor: the attached assignor; default: that of the consumer.
        timeout_ms: of each poll.
        stop: ends the loop when set.

    Raises:
        ConfigError: no assignor is attached to this consumer, or `stop` is no event, or
            `timeout_ms` no number.
        MemberStopped: the member cannot go on; the message says why. A dynamic one has left.
    """
    config = getattr(consumer, "config", None) or {}
    listed = config.get("partition_assignment_strategy", ())
    assignor = attached_member(StreamsAssignor, assignor, consumer, listed)
    ended = stop_event(stop)
    check_timeout("timeout_ms", timeout_ms)
    errors, pace = PollErrors(), _pace(consumer)
    silence = SilenceWatch()
    while not ended.is_set() and not assignor.shutdown_requested:
        too_long = pace.poll_begins()
        if too_long:
            _log.warning("%s", too_long)
        try:
            batch = consumer.poll(timeout_ms=timeout_ms)
        except (KafkaError, RebalanceError, OSError) as error:
            if getattr(consumer, "_closed", False):
                raise MemberStopped(CLOSED) from error
            try:
                pause = errors.failed(error)
            except MemberStopped:
                leave(consumer)
                raise
            _log.warning("%s", pause.why)
            ended.wait(pause.wait_ms / 1000)
            continue
        errors.succeeded()
        if assignor.failed is not None:
            leave(consumer)
            raise MemberStopped(f"{LEFT_GROUP}: {assignor.failed}")
        if silence.is_fenced(assignor):
            errors.failed(FencedInstanceIdError())
        pace.poll_ended()
        yield batch


def _pace(consumer: Any) -> PollPace:
    config = consumer.config
    return PollPace(
        max_poll_interval_ms=config["max_poll_interval_ms"],
        session_timeout_ms=config["session_timeout_ms"],
    )


def check_client(consumer: Any) -> Mapping[str, Any]:
    """Return the settings of a consumer of kafka-python.

    Raises:
        ConfigError: it is of another client.
    """
    config: Mapping[str, Any] | None = getattr(consumer, "config", None)
    if config is None:
        raise ConfigError(
            f"{type(consumer).__name__} is no KafkaConsumer; with confluent-kafka use"
            " assignor.adapters.confluent.run_tasks and consumer.commit, with aiokafka"
            " assignor.adapters.aiokafka"
        )
    return config


def leave(consumer: Any) -> None:
    """Leave the group, also as one that was given a member id and has not joined yet."""
    with suppress(KafkaError, OSError):
        consumer.unsubscribe()


def commit_next(consumer: Any, next_offsets: Mapping[Any, int] | None = None) -> bool:
    """Commit what is processed; return False if it is not committed.

    If the group has removed this member, other members own the partitions, and process again what
    was not committed. If the rebalance is still running, or no coordinator has answered within
    `request_timeout_ms`, commit again after the next poll.

    Args:
        consumer: a `KafkaConsumer`.
        next_offsets: partition -> offset of the first record that is not processed; default: all
            records that polls returned are processed.

    Raises:
        ConfigError: it is a consumer of another client, or `next_offsets` are no offsets.
        MemberStopped: the consumer is closed.
    """
    if getattr(consumer, "_closed", False):
        raise MemberStopped(CLOSED)
    check_offsets(next_offsets)
    if next_offsets is not None and not next_offsets:
        return True
    config = check_client(consumer)
    offsets = next_offsets and {
        where: OffsetAndMetadata(at, "", -1) for where, at in next_offsets.items()
    }
    try:
        consumer.commit(offsets, timeout_ms=config["request_timeout_ms"])
    except (CommitFailedError, RebalanceInProgressError) as error:
        _log.info("not committed: %s", error)
        return False
    except KafkaTimeoutError:
        _log.warning("not committed: no coordinator has answered within request_timeout_ms")
        return False
    return True
