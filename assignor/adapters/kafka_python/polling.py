"""A poll loop for kafka-python that ends when it should, and never spins.

`KafkaConsumer.poll` raises the same error again at once when a member is fenced or has no rights,
and kafka-python makes no pause of its own. Here such an error ends the loop with one sentence, and
all others are waited for.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaError
from kafka.structs import OffsetAndMetadata

from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.embedding import MemberStopped, PollErrors
from assignor.logs import line_logger
from encoding import RebalanceError

_log = line_logger(__name__)

POLL_MS = 1000
# A consumer that comes from a rebalance may be silent for an instant.
_SILENT_S = 1.0


def polled(
    consumer: Any,
    assignor: StreamsAssignor,
    *,
    timeout_ms: int = POLL_MS,
    stop: threading.Event | None = None,
) -> Iterator[Mapping[Any, list[Any]]]:
    """What `poll` returns, empty batches too, until there is a reason to stop.

    Args:
        consumer: a `KafkaConsumer` with this assignor attached.
        assignor: ends the loop when the whole group was asked to stop (KIP-671).
        timeout_ms: of each poll.
        stop: ends the loop when set.

    Raises:
        MemberStopped: the member cannot go on; the message says why, and what to do.
    """
    ended = stop or threading.Event()
    errors = PollErrors()
    heard_s = time.monotonic()
    while not ended.is_set() and not assignor.shutdown_requested:
        try:
            batch = consumer.poll(timeout_ms=timeout_ms)
        except (KafkaError, RebalanceError, OSError) as error:
            pause = errors.failed(error)
            _log.warning("%s", pause.why)
            ended.wait(pause.wait_ms / 1000)
            continue
        errors.succeeded()
        if assignor.failed is not None:
            raise MemberStopped(f"this member left the group for good: {assignor.failed}")
        heard_s = heard_s if assignor.is_silent else time.monotonic()
        if time.monotonic() - heard_s > _SILENT_S:
            errors.failed(FencedInstanceIdError())
        yield batch


def commit_next(consumer: Any, next_offsets: Mapping[Any, int]) -> bool:
    """Commit what is processed; False when the group went on without this member meanwhile.

    Then others own the partitions, and process again what was not committed.

    Args:
        consumer: a `KafkaConsumer`.
        next_offsets: partition -> offset of the first record that is not processed.
    """
    if not next_offsets:
        return True
    offsets = {where: OffsetAndMetadata(at, "", -1) for where, at in next_offsets.items()}
    try:
        consumer.commit(offsets)
    except CommitFailedError as error:
        _log.info("not committed: %s", error)
        return False
    return True
