"""A consumer's records processed into state stores: poll, restore, process, commit."""

import threading
from collections.abc import Callable
from typing import Any

from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.polling import POLL_MS, check_client, consumer_loop
from assignor.adapters.poll_arguments import (
    attached_member,
    check_stores,
    check_timeout,
    stop_event,
)
from assignor.adapters.processing import COMMITS_ITSELF
from assignor.config import check_handler
from assignor.embedding import TaskState, TaskStores
from assignor.errors import ConfigError


def run_tasks(
    consumer: Any,
    stores: TaskStores,
    handle: Callable[[Any, TaskState], object],
    *,
    timeout_ms: int = POLL_MS,
    stop: threading.Event | None = None,
) -> None:
    """Poll, restore tasks, process their records and commit, until the member has to stop.

    While the cluster cannot be reached, records are kept and tried again. A batch that takes longer
    than half of `max_poll_interval_ms`, or of the session timeout, is processed in parts, with a
    commit and a poll in between.

    An exception of `handle` ends the loop, also an error of a producer or another client that it
    uses: its record has no effect on state, and is processed again by the next call or member.
    Catch in `handle` what may pass, or write with `state.send`, whose errors are retried.

    Args:
        consumer: of `streams_consumer`, or a `KafkaConsumer` with an assignor attached and
            `enable_auto_commit=False`.
        stores: the state of the member's tasks; the listener of the assignor.
        handle: called with each record and the stores of its task. It may not poll, commit or
            close: `RuntimeError`.
        timeout_ms: of each poll.
        stop: ends the loop when set.

    Raises:
        ConfigError: an argument is wrong; or the consumer commits by itself, and would commit what
            is not processed; or the stores are not its listener, or of another group or directory.
        MemberStopped: the member cannot go on; the message says why, and what to do. A dynamic one
            has left the group.
        UnreadableRecord: a record of the input or of a changelog cannot be read.
        StoreError: a store cannot be used.
        Exception: of `handle`.
    """
    check_handler(handle)
    check_timeout("timeout_ms", timeout_ms)
    ended = stop_event(stop)
    config = check_client(consumer)
    if config["enable_auto_commit"]:
        raise ConfigError(COMMITS_ITSELF)
    listed = config["partition_assignment_strategy"]
    member = attached_member(StreamsAssignor, None, consumer, listed)
    check_stores(stores, member.listener, config["group_id"], member)
    with consumer_loop(consumer, member, timeout_ms, ended) as loop:
        loop.run(stores, handle)
