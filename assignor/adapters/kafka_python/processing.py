"""A consumer's records processed into state stores: poll, restore, process, commit."""

import threading
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from kafka.serializer import Deserializer

from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.polling import POLL_MS, check_client, consumer_loop
from assignor.adapters.poll_arguments import attached_member, stop_event
from assignor.config import check_handler, refused
from assignor.embedding import (
    TaskState,
    TaskStores,
    UnreadableRecord,
    error_text,
    is_interrupt,
)
from assignor.errors import ConfigError

COMMITS_ITSELF: Final = (
    "the consumer commits records that are not processed yet; set enable_auto_commit=False"
)
"""Why state stores need `enable_auto_commit=False`."""
_LEAVE_OUT: Final = "have on_bad_record return BadRecordAction.SKIP or DeadLetter(TOPIC) for it"


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
        ConfigError: the consumer commits by itself, and would commit what is not processed; or the
            stores are not its listener, or of another group or directory;
            or the consumer is of another client, `handle` is no such function, or `stop` no event.
        MemberStopped: the member cannot go on; the message says why, and what to do. A dynamic one
            has left the group.
        UnreadableRecord: a record of the input or of a changelog cannot be read.
        StoreError: a store cannot be used.
        Exception: of `handle`.
    """
    check_handler(handle)
    ended = stop_event(stop)
    config = check_client(consumer)
    if config["enable_auto_commit"]:
        raise ConfigError(COMMITS_ITSELF)
    listed = config["partition_assignment_strategy"]
    member = attached_member(StreamsAssignor, None, consumer, listed)
    stores.check_follows(member.listener, config["group_id"], member.directory)
    with consumer_loop(consumer, member, timeout_ms, ended) as loop:
        loop.run(stores, handle)


def deserialized(
    client: MutableMapping[str, Any], handle: Callable[[Any, TaskState], object]
) -> Callable[[Any, TaskState], object]:
    """Return a function that deserializes records as the client would, which then does not.

    The bytes of a record are still known when its deserializer raises.
    """
    names = ("key", "value")
    given = {name: client.pop(f"{name}_deserializer", None) for name in names}
    found = {name: _deserializer(name, each) for name, each in given.items() if each is not None}
    if not found:
        return handle

    def run(record: Any, state: TaskState) -> object:
        try:
            new = {
                name: deserialize(record.topic, record.headers, getattr(record, name))
                for name, deserialize in found.items()
            }
        except Exception as error:
            where = (record.topic, record.partition, record.offset)
            if is_interrupt(error):
                raise
            raise UnreadableRecord(*where, error_text(error), leave_out=_LEAVE_OUT) from error
        return handle(record._replace(**new), state)

    return run


def _deserializer(name: str, given: Any) -> Callable[[str, Any, Any], Any]:
    """Return a function of topic, headers and data; raise ConfigError."""
    if isinstance(given, Deserializer):
        found: Callable[[str, Any, Any], Any] = given.deserialize
        return found
    if not callable(given):
        wanted = "a function or a kafka.serializer.Deserializer"
        raise refused(f"{name}_deserializer", given, wanted)
    return lambda _topic, _headers, data: given(data)
