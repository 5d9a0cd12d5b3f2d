"""What a member asks of an aiokafka consumer, which joins between two batches.

aiokafka joins while the application works. Here a member joins as Kafka's client does, which joins
in `poll`: what is processed can be committed before, and the event loop never waits for a batch
that is processed on a thread, which may itself wait for the event loop.
"""

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from assignor.adapters.membership import Cancellable
from assignor.adapters.poll_arguments import is_closed
from encoding import TopicPartition

# aiokafka's generation of a member that has not joined yet, or that the group removed.
_NO_GENERATION = -1
# When a coordinator was last heard (`time.monotonic()`): an attribute of the client's coordinator.
HEARD = "assignor_heard_s"
# Between two requests for the metadata of topics that do not exist.
_ASK_AGAIN_S = 5.0


class AiokafkaPort:
    """`ClientPort` of an `AIOKafkaConsumer`, which has a coordinator once it is started.

    Args:
        consumer: in a group.

    Attributes:
        joins_soon: the member waits for the end of a batch, to join.
    """

    def __init__(self, consumer: Any) -> None:
        # Weak: the consumer's tasks have this port, and would keep it when it is dropped.
        self._consumer = weakref.ref(consumer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asks_again: Cancellable | None = None
        self._last_loop: object = None
        self._has_no_batch = asyncio.Event()
        self._has_no_batch.set()
        self.joins_soon = False

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Have the member join only within `polling`, during the block.

        A later loop may begin before this one has ended, and counts instead of it.
        """
        self._last_loop = own = object()
        self._has_no_batch.clear()
        try:
            yield
        finally:
            if self._last_loop is own:
                self._has_no_batch.set()

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Note that the application has no batch, during the block."""
        self._has_no_batch.set()
        try:
            yield
        finally:
            self._has_no_batch.clear()

    async def until_idle(self, pause_work: Callable[[], None]) -> bool:
        """Wait until the application has no batch; return False if the consumer closes meanwhile.

        Args:
            pause_work: waits for a batch that a loop of the application's own processes; called
                on a thread.
        """
        closing = self.coordinator._closing  # noqa: SLF001 no public way
        parts: list[Callable[[], Awaitable[object]]] = [
            self._has_no_batch.wait,
            lambda: _ended_on_a_thread(pause_work),
        ]
        self.joins_soon = True
        try:
            for part in parts:
                waiting = asyncio.ensure_future(part())
                await asyncio.wait({waiting, closing}, return_when=asyncio.FIRST_COMPLETED)
                if closing.done():
                    waiting.cancel()
                    return False
            return True
        finally:
            self.joins_soon = False

    @property
    def coordinator(self) -> Any:
        """The coordinator of the consumer; None before the consumer is started."""
        return getattr(self._consumer(), "_coordinator", None)

    def is_joining(self) -> bool:
        """Whether the running call comes from the task in which this consumer joins."""
        if self.coordinator is None:  # not started: another consumer joins
            return False
        joins = getattr(self.coordinator, "_coordination_task", None)
        return joins is None or asyncio.current_task() is joins

    def remember_loop(self) -> None:
        """Keep the running event loop, on which the consumer joins, for timers of other threads."""
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    def request_rejoin(self) -> None:
        """Have the coordinator join again."""
        if self.coordinator is not None:
            self.coordinator.request_rejoin()

    def is_rebalancing(self) -> bool:
        """Whether the coordinator joins, or is going to."""
        joins = getattr(self.coordinator, "_performed_join_prepare", True)
        asked = getattr(self.coordinator, "_rejoin_needed_fut", None)
        return bool(joins) or (asked is not None and bool(asked.done()))

    def generation(self) -> int:
        """Generation of the last join; -1 if unknown."""
        return int(getattr(self.coordinator, "generation", _NO_GENERATION))

    def member_id(self) -> str:
        """Member id of the last join; "" if unknown."""
        return str(getattr(self.coordinator, "member_id", ""))

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """Return no partitions: aiokafka is eager and gives up all of them before it joins."""
        return ()

    def group_instance_id(self) -> str | None:
        """The consumer's `group_instance_id`."""
        instance_id: str | None = getattr(self._consumer(), "_group_instance_id", None)
        return instance_id

    def unheard_s(self) -> float:
        """Seconds since a coordinator answered a member in a session; 0.0 within the timeout."""
        heard_s: float | None = getattr(self.coordinator, HEARD, None)
        # A join is answered once all members have joined, and sends no heartbeats meanwhile.
        has_coordinator = getattr(self.coordinator, "coordinator_id", None) is not None
        if heard_s is None or (has_coordinator and self.is_rebalancing()):
            return 0.0
        silent_s = time.monotonic() - heard_s
        return silent_s if silent_s > self.coordinator._session_timeout_ms / 1000 else 0.0  # noqa: SLF001 no public way

    def ask_for_topics(self) -> None:
        """Have the client of a leader ask for metadata until it knows all topics that it reads.

        aiokafka asks after `metadata_max_age_ms`, 5 minutes, and then joins again as they changed.
        Called on the consumer's event loop.
        """
        if self._asks_again is not None:
            self._asks_again.cancel()
            self._asks_again = None
        consumer = self._consumer()
        client = getattr(consumer, "_client", None)
        if client is None or is_closed(consumer):
            return
        if not all(map(client.cluster.partitions_for_topic, sorted(client._topics))):  # noqa: SLF001 no hook for it
            client.force_metadata_update()
            self._asks_again = self.start_timer(_ASK_AGAIN_S, self.ask_for_topics)

    def start_timer(self, delay_s: float, call: Callable[[], None]) -> Cancellable:
        """Have `call` called on the consumer's event loop; callable on any thread."""
        try:
            return asyncio.get_running_loop().call_later(delay_s, call)
        except RuntimeError:  # no loop in this thread
            later = _LaterCall(delay_s, call)
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(later.begin)
            return later


async def _ended_on_a_thread(call: Callable[[], None]) -> None:
    """Wait for a call on a thread of its own: those of the event loop may all be busy."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            call()
        finally:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=run, name="pause-work", daemon=True).start()
    await ended.wait()


class _LaterCall:
    """A call that another thread asked the event loop for."""

    def __init__(self, delay_s: float, call: Callable[[], None]) -> None:
        self._delay_s, self._call, self._cancelled = delay_s, call, False

    def begin(self) -> None:
        if not self._cancelled:
            asyncio.get_running_loop().call_later(self._delay_s, self._run)

    def cancel(self) -> None:
        self._cancelled = True

    def _run(self) -> None:
        if not self._cancelled:
            self._call()
