"""An application in one object: consumer, assignor, state stores and changelogs."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, Unpack

from assignor.adapters.aiokafka.consumer import CLIENT_SETTINGS, StreamsConsumer, new_consumer
from assignor.adapters.aiokafka.processing import on_a_thread, run_tasks
from assignor.adapters.aiokafka.settings import ConsumerSettings
from assignor.adapters.application import (
    Application,
    ApplicationPlan,
    ApplicationPort,
    application_options,
    signals_as,
)
from assignor.adapters.consumer_options import ConsumerOptions, ProducerSettings
from assignor.adapters.membership import ApplicationMemberKeywords, documented
from assignor.clients import require_client
from assignor.config import refused
from assignor.embedding import ChangelogAccess, MemberStopped, StateStore, TaskState
from assignor.embedding.bad_records import BadRecordAction, OnBadRecord
from assignor.embedding.loops import CLOSED
from assignor.topology import Topology


class ApplicationKeywords(
    ApplicationMemberKeywords, ConsumerSettings, ProducerSettings, total=False
):
    """Keywords of `StreamsApplication`: options of the member, and settings of the clients."""


def _open_changelogs(options: ConsumerOptions) -> ChangelogAccess:
    require_client("kafka-python")
    from assignor.adapters.kafka_python import open_changelogs  # noqa: PLC0415 an extra

    return open_changelogs(options)


PORT: Final = ApplicationPort(
    options=partial(application_options, CLIENT_SETTINGS),
    open_changelogs=_open_changelogs,
    new_consumer=new_consumer,
    run_tasks=run_tasks,
)


class StreamsApplication(Application):
    """A member of a group that processes records into state stores, with coroutines.

    Use it in `async with`, or await `start` and `close`; `run` is on the same event loop. `stores`,
    `consumer` and `assignor` exist, and something can be served, from `start` on. `handle` runs on
    a thread, one call after the other. Changelogs are read and written with kafka-python, on
    threads: install the extra `kafka`, too.
    """

    consumer: StreamsConsumer

    @documented(rest="options", without=("listener",))
    def __init__(
        self,
        topology: Topology,
        handle: Callable[[Any, TaskState], object],
        *,
        group_id: str,
        bootstrap_servers: str | Sequence[str],
        stores: Sequence[StateStore[Any, Any]] = (),
        tell: Callable[[str], object] = lambda _: None,
        on_bad_record: OnBadRecord = BadRecordAction.FAIL,
        **options: Unpack[ApplicationKeywords],
    ) -> None:
        given = PORT.options(options, group_id=group_id, bootstrap_servers=bootstrap_servers)
        self._plan = ApplicationPlan(
            PORT, given, topology, handle, stores=stores, tell=tell, on_bad_record=on_bad_record
        )
        self._resources = AsyncExitStack()
        self._closing, self._running = asyncio.Event(), asyncio.Lock()
        self._ending: asyncio.Future[None] | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say that this is not started, of what exists from `start` on."""
            why = "; this application may not be started: await start(), or use `async with`"
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{why}")

    async def start(self) -> None:
        """Connect, and subscribe, without waiting for tasks. It cannot be started again.

        Raises:
            KafkaError, ClusterUnavailable: no broker answered.
            MemberStopped: this is closed, or is started.
            StateDirectoryLocked, StoreError: the directory cannot be used.
        """
        if self._closing.is_set() or "consumer" in vars(self):
            raise MemberStopped(CLOSED if self._closing.is_set() else "this is started already")
        async with AsyncExitStack() as resources:
            blocking = ExitStack()
            resources.push_async_callback(on_a_thread, blocking.close)
            stores = await on_a_thread(lambda: self._plan.open_stores(blocking))
            consumer = self._plan.new_consumer(stores)
            resources.push_async_callback(consumer.stop)
            await consumer.start()
            self.consumer = consumer
            super().__init__(consumer.assignor, stores)
            resources.push_async_callback(on_a_thread, self._servers.close)
            self._resources = resources.pop_all()

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Process records until the event is set, the group has to stop, or `close` is called.

        If this is cancelled, the record that is processed is finished first.

        Args:
            stop: None: SIGTERM and SIGINT end it, on the main thread; the second one at once.

        Raises:
            MemberStopped: the member cannot go on; the message says why, and what to do.
            UnreadableRecord: a record cannot be read. The next `run` raises again, unless the cause
                has gone.
            StoreError: a store cannot be used.
            Exception: of `handle`; its record is processed again by the next `run`, or member.
            RuntimeError: another task runs it.
        """
        if not isinstance(stop, asyncio.Event | None):
            raise refused("stop", stop, "an asyncio.Event")
        if self._closing.is_set():
            raise MemberStopped(CLOSED)
        if self._running.locked():
            raise RuntimeError("another task runs this application; run it in one task")
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        waits = [asyncio.ensure_future(each.wait()) for each in (stop, self._closing) if each]
        for each in waits:
            each.add_done_callback(lambda _: ended.set())
        wake = lambda: loop.call_soon_threadsafe(ended.set)  # noqa: E731 brief
        async with self._running:
            try:
                with signals_as(wake) if stop is None else nullcontext():
                    await self._plan.run_tasks(self.consumer, self.stores, ended)
            finally:
                for each in waits:
                    each.cancel()

    async def close(self) -> None:  # type: ignore[override] # it is awaited
        """Leave the group, and release everything; twice is once.

        If `run` runs in another task, that ends first, with the record that it processes. If the
        caller is cancelled, closing continues, and another `close` waits for its end.
        """
        self._closing.set()
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        async with self._running:
            await self._resources.aclose()

    def __enter__(self) -> NoReturn:
        """Refuse `with`, whose end cannot be awaited."""
        raise TypeError("this application has coroutines; use `async with`")

    async def __aenter__(self) -> Self:
        """Start, and return this."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
