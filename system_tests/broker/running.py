"""The embedded broker in a background thread, for code without an event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from system_tests.broker.config import BrokerConfig
from system_tests.broker.embedded import EmbeddedBroker
from system_tests.broker.faults import Fault, RecordedRequest
from system_tests.coordinator import CommittedOffset, GroupDescription, GroupEvent, OffsetKey

_Value = TypeVar("_Value")
_CALL_TIMEOUT_S = 120.0


class RunningBroker:
    """`EmbeddedBroker` for other threads; every call waits for the broker's loop."""

    def __init__(
        self,
        broker: EmbeddedBroker,
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[], object],
    ) -> None:
        self._broker = broker
        self._loop = loop
        self.stop = stop

    def run(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        """Run a coroutine on the broker's loop.

        Raises:
            TimeoutError: it was not done in time, which is a bug of the broker.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT_S)
        except TimeoutError:
            raise TimeoutError(
                f"the embedded broker was not done in {_CALL_TIMEOUT_S:.0f} s"
            ) from None

    def call(self, work: Callable[[EmbeddedBroker], _Value]) -> _Value:
        """Run a function of the broker on its loop."""

        async def body() -> _Value:
            return work(self._broker)

        return self.run(body())

    @property
    def bootstrap_servers(self) -> list[str]:
        """Bootstrap addresses for clients."""
        return self.call(lambda broker: broker.bootstrap_servers)

    @property
    def addresses(self) -> Mapping[int, str]:
        """Address by node id."""
        return self.call(lambda broker: broker.addresses)

    @property
    def events(self) -> tuple[GroupEvent, ...]:
        """Events of the groups, oldest first."""
        return self.call(lambda broker: broker.events)

    def subscribe(self, callback: Callable[[GroupEvent], None]) -> None:
        """Call `callback` in the broker's thread with every further event; it must not block."""
        self.call(lambda broker: broker.subscribe(callback))

    def requests(self, api: str = "") -> tuple[RecordedRequest, ...]:
        """The last requests, of one API or of all."""
        return self.call(lambda broker: broker.requests(api))

    def inject(self, fault: Fault) -> None:
        """Activate a fault."""
        self.call(lambda broker: broker.inject(fault))

    def clear_faults(self) -> None:
        """Deactivate all faults, and end the delays of requests that wait."""
        self.call(lambda broker: broker.clear_faults())

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic."""
        self.call(lambda broker: broker.create_topic(name, partitions))

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Let another running node coordinate a group."""
        self.call(lambda broker: broker.move_coordinator(group_id, node_id))

    def coordinator_of(self, group_id: str) -> int:
        """The node that coordinates a group."""
        return self.call(lambda broker: broker.coordinator_of(group_id))

    def start_node(self, node_id: int, *, port: int | None = None) -> tuple[str, int]:
        """Start a node."""
        return self.run(self._broker.start_node(node_id, port=port))

    def stop_node(self, node_id: int) -> None:
        """Stop a node."""
        self.run(self._broker.stop_node(node_id))

    def replace_nodes(self) -> Mapping[int, str]:
        """Replace every running node by a new one on a new port; return their addresses."""
        return self.run(self._broker.replace_nodes())

    def demand_rebootstrap(self, node_ids: Iterable[int] | None = None) -> None:
        """Let nodes answer Metadata version 13 and later with REBOOTSTRAP_REQUIRED (KIP-1102)."""
        self.call(lambda broker: broker.demand_rebootstrap(node_ids))

    def groups(self) -> Mapping[str, GroupDescription]:
        """Every known group."""
        return self.call(lambda broker: broker.groups())

    def committed(self, group_id: str) -> Mapping[OffsetKey, CommittedOffset]:
        """Everything that a group has committed."""
        return self.call(lambda broker: broker.committed(group_id))

    def end_offsets(self) -> Mapping[OffsetKey, int]:
        """Next offset of every partition."""
        return self.call(lambda broker: broker.end_offsets())


@contextmanager
def running_broker(config: BrokerConfig | None = None) -> Iterator[RunningBroker]:
    """Run a broker in a background thread until the end of the `with` block.

    Raises:
        OSError: a port is not available.
    """
    started: Future[RunningBroker] = Future()

    async def live() -> None:
        try:
            async with EmbeddedBroker(config) as broker:
                loop = asyncio.get_running_loop()
                end = asyncio.Event()

                def stop() -> None:
                    with suppress(RuntimeError):  # the loop has ended already
                        loop.call_soon_threadsafe(end.set)

                running = RunningBroker(broker, loop, stop)
                started.set_result(running)
                await end.wait()
        except Exception as error:
            # An error at the start is raised in the caller's thread.
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(
        target=asyncio.run, args=(live(),), name="embedded-broker", daemon=True
    )
    thread.start()
    try:
        running = started.result(_CALL_TIMEOUT_S)
        try:
            yield running
        finally:
            running.stop()
    finally:
        thread.join()
