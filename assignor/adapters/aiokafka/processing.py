"""A consumer's records processed into state stores: poll, restore, process, commit.

Stores are processed on a thread, so that heartbeats and other tasks of the event loop continue.
The member joins in the next poll, and the rest of a batch waits for that.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.polling import POLL_MS, check_arguments, consumer_engine, port_of
from assignor.adapters.aiokafka.port import AiokafkaPort
from assignor.adapters.poll_arguments import attached_member, check_stores
from assignor.adapters.processing import COMMITS_ITSELF, await_out, noted_end
from assignor.config import check_handler
from assignor.embedding import Handler, TaskStores
from assignor.embedding.loops import TaskEngine
from assignor.errors import ConfigError

_Result = TypeVar("_Result")


async def run_tasks(
    consumer: Any,
    stores: TaskStores,
    handle: Handler,
    *,
    timeout_ms: int = POLL_MS,
    stop: asyncio.Event | None = None,
) -> None:
    """Poll, restore tasks, process their records and commit, as `run_tasks` of kafka-python.

    `handle` runs on a thread, one call after the other. If this is cancelled, the record that is
    processed is finished first.

    Args:
        consumer: started; of `streams_consumer`, or an `AIOKafkaConsumer` with an assignor attached
            and `enable_auto_commit=False`.
        stores: the state of the member's tasks; the listener of the assignor.
        handle: called with each record and the stores of its task.
        timeout_ms: of each poll.
        stop: ends the loop when set.

    Raises:
        ConfigError: as `run_tasks` of kafka-python; or the consumer is not started.
        MemberStopped: the member cannot go on; the message says why, and what to do. A dynamic one
            has left the group.
        UnreadableRecord: a record of the input or of a changelog cannot be read.
        StoreError: a store cannot be used.
        Exception: of `handle`.
    """
    check_handler(handle)
    check_arguments(consumer, timeout_ms, stop)
    listed = getattr(consumer, "_partition_assignment_strategy", ())
    member = attached_member(StreamsAssignor, None, consumer, listed)
    if consumer._enable_auto_commit:  # noqa: SLF001 no public way
        raise ConfigError(COMMITS_ITSELF)
    check_stores(stores, member.listener, consumer._group_id, member)  # noqa: SLF001 as above
    ended = stop or asyncio.Event()
    on_thread = _ThreadedStores(stores, port_of(member))
    with (
        consumer_engine(TaskEngine, consumer, member, timeout_ms, ended) as engine,
        noted_end(stores, ended),
    ):
        async for _ in await_out(engine.tasks(on_thread, handle)):
            pass  # nothing is delivered


class _ThreadedStores:
    """`TaskStores` as the engine uses them; `process` is awaited, and runs on a thread."""

    def __init__(self, stores: TaskStores, port: AiokafkaPort) -> None:
        self._stores = stores
        self._port = port
        self._yields = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stores, name)

    async def process(
        self, *arguments: Any, is_over: Callable[[], bool], **options: Any
    ) -> dict[Any, int]:
        """Process a batch, until a rebalance waits for it, too."""
        over = lambda: self._yields.is_set() or self._port.joins_soon or is_over()  # noqa: E731 brief
        call = partial(self._stores.process, *arguments, is_over=over, **options)
        return await on_a_thread(call, self._yields.set)


async def on_a_thread(
    call: Callable[[], _Result], on_cancel: Callable[[], object] = lambda: None
) -> _Result:
    """Return what a call on a thread returns; a cancellation waits for its end.

    Args:
        call: may block.
        on_cancel: called when this is cancelled, so that the call ends soon.
    """
    # A future, not a task: what the call raises, such as SystemExit, is raised here first.
    work = asyncio.get_running_loop().run_in_executor(None, copy_context().run, call)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        on_cancel()
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({work})
        work.exception()  # the cancellation is raised
        raise
