"""Members with each of the three clients, each in a thread, with the loops of the pages."""

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from assignor import DictStore, RunningTasks, TaskState, Topology
from assignor.adapters import aiokafka, confluent, kafka_python
from assignor.embedding import JSON, TEXT
from assignor.observe import AssignmentTaken, Observation
from encoding import TaskId

CLIENTS: Final = ("kafka-python", "aiokafka", "confluent")
LIMIT_S: Final = 180.0
GROUP: Final = "app"
TOPOLOGY: Final = (
    Topology()
    .add_source("words", topics=["words"])
    .add_processor("count", parents=["words"])
    .add_state_store("counts", processors=["count"])
)
COUNTS: Final = DictStore("counts", key=TEXT, value=JSON)
_APPLICATIONS: Final = {
    "kafka-python": kafka_python.StreamsApplication,
    "aiokafka": aiokafka.StreamsApplication,
    "confluent": confluent.StreamsApplication,
}
_SESSION_MS, _HEARTBEAT_MS, _POLL_S = 60_000, 100, 0.1


class ClientMember:
    """A member in a thread; it joins when it is made, and leaves in `close`.

    Args:
        client: one of `CLIENTS`.
        servers: of the broker.
        name: its client id.
        has_stores: it is the client's `StreamsApplication`, and keeps counts; else its loop is
            that of docs/clients.md.
        options: of the assignor.

    Attributes:
        assignments: the active tasks of each assignment, oldest first.
        generation: of the last one.
        error: what ended the loop, or None.
    """

    def __init__(
        self,
        client: str,
        servers: list[str],
        name: str,
        *,
        has_stores: bool = False,
        **options: Any,
    ) -> None:
        self.client, self.name = client, name
        self.assignments: list[frozenset[TaskId]] = []
        self.generation = 0
        self.error: BaseException | None = None
        self.assignor: Any = None
        self._servers, self._has_stores = servers, has_stores
        self._options: dict[str, Any] = {"listener": RunningTasks(), **options}
        self._options["observer"] = self._observe
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{client} {name}", daemon=True)
        self._thread.start()

    @property
    def active(self) -> frozenset[TaskId]:
        """The active tasks of the last assignment."""
        return self.assignments[-1] if self.assignments else frozenset()

    @property
    def is_restored(self) -> bool:
        """Whether all active tasks are restored."""
        listener = getattr(self.assignor, "listener", None)
        return listener is not None and not listener.restoring_tasks()

    def close(self) -> None:
        """End the loop and leave the group."""
        self._stop.set()
        self._thread.join(LIMIT_S)

    def rejoin(self) -> None:
        """Ask for a rebalance, as the timer of a probing rebalance does."""
        self.assignor.driver.timer.request_rejoin()

    def _observe(self, observation: Observation) -> None:
        if isinstance(observation, AssignmentTaken):
            self.assignments.append(frozenset(observation.active_tasks))
            self.generation = observation.generation

    def _run(self) -> None:
        try:
            if self._has_stores:
                self._count()
            else:
                LOOPS[self.client](self)
        except BaseException as error:  # noqa: BLE001 the test looks at it
            self.error = error

    def _settings(self) -> dict[str, Any]:
        return {
            "group_id": GROUP,
            "bootstrap_servers": self._servers,
            "client_id": self.name,
            "session_timeout_ms": _SESSION_MS,
            "heartbeat_interval_ms": _HEARTBEAT_MS,
        } | self._options

    def _count(self) -> None:
        """Run the application of the client."""
        kind: Any = _APPLICATIONS[self.client]
        settings = self._settings()
        settings.pop("listener")
        application = kind(TOPOLOGY, count, stores=[COUNTS], **settings)
        if self.client == "aiokafka":
            asyncio.run(self._await(application))
            return
        with application:
            self.assignor = application.assignor
            application.run(self._stop)

    async def _await(self, application: aiokafka.StreamsApplication) -> None:
        stop = asyncio.Event()
        waiting = asyncio.create_task(self._set_when_stopped(stop))
        async with application:
            self.assignor = application.assignor
            await application.run(stop)
        await waiting

    def _poll(self) -> None:
        with kafka_python.streams_consumer(TOPOLOGY, **self._settings()) as consumer:
            self.assignor = consumer.assignor
            for _ in kafka_python.polled(consumer, stop=self._stop):
                kafka_python.commit_next(consumer)

    def _iterate(self) -> None:
        asyncio.run(self._getmany())

    async def _getmany(self) -> None:
        stop = asyncio.Event()
        waiting = asyncio.create_task(self._set_when_stopped(stop))
        async with aiokafka.streams_consumer(TOPOLOGY, **self._settings()) as consumer:
            self.assignor = consumer.assignor
            async for _ in aiokafka.polled(consumer, stop=stop, timeout_ms=_HEARTBEAT_MS):
                await aiokafka.commit_next(consumer)
        await waiting

    async def _set_when_stopped(self, stop: asyncio.Event) -> None:
        await asyncio.to_thread(self._stop.wait)
        stop.set()

    def _consume(self) -> None:
        config = {
            "bootstrap.servers": ",".join(self._servers),
            "group.id": GROUP,
            "client.id": self.name,
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        with confluent.Consumer(config, topology=TOPOLOGY, **self._options) as consumer:
            self.assignor = consumer.assignor
            consumer.subscribe(["words"])
            while not self._stop.is_set():
                consumer.poll(_POLL_S)


LOOPS: Final[dict[str, Callable[[ClientMember], None]]] = {
    "kafka-python": ClientMember._poll,  # noqa: SLF001 its own
    "aiokafka": ClientMember._iterate,  # noqa: SLF001 as above
    "confluent": ClientMember._consume,  # noqa: SLF001 as above
}
"""Client -> the loop of a member without state; tests add those of their own."""


def count(record: Any, state: TaskState) -> None:
    """Count a record's key."""
    word = record.key.decode()
    state[COUNTS].put(word, state[COUNTS].get(word, 0) + 1)


class MemberGroup:
    """Members with one client on one broker, and the running tasks that moved.

    Args:
        client, servers, options: as for `ClientMember`.
        tasks: number of tasks.
    """

    def __init__(self, client: str, servers: list[str], *, tasks: int, **options: Any) -> None:
        self._client, self._servers, self._options = client, servers, options
        self._tasks = frozenset(TaskId(0, number) for number in range(tasks))
        self.members: dict[str, ClientMember] = {}

    def join(self, name: str, **options: Any) -> int:
        """Start a member; wait until tasks are even and run; return how many running ones moved."""
        before = self._seen()
        self.start(name, **options)
        self.until(self.is_settled)
        return self._moved(before)

    def start(self, name: str, **options: Any) -> None:
        """Start a member, and wait for nothing."""
        given = self._options | options
        self.members[name] = ClientMember(self._client, self._servers, name, **given)

    def leave(self, name: str) -> int:
        """End a member, as `join`."""
        gone = self.members.pop(name)
        before = self._seen()
        gone.close()
        self.until(self.is_settled)
        return self._moved(before)

    def is_even(self) -> bool:
        """Whether each task runs once, and members differ by at most one task."""
        loads = [len(member.active) for member in self.members.values()]
        running = [task for member in self.members.values() for task in member.active]
        return sorted(running) == sorted(self._tasks) and max(loads) - min(loads) <= 1

    def is_settled(self) -> bool:
        """Whether tasks are even and restored: a leader may move those that are not."""
        return self.is_even() and all(member.is_restored for member in self.members.values())

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds.

        Raises:
            TimeoutError: it does not within minutes, or a member ended.
        """
        end_s = time.monotonic() + LIMIT_S
        while not holds():
            ended = {name: each.error for name, each in self.members.items() if each.error}
            if ended or time.monotonic() > end_s:
                active = {name: sorted(each.active) for name, each in self.members.items()}
                raise TimeoutError(f"{active}; ended: {ended}")
            time.sleep(0.05)

    def close(self) -> None:
        """End all members."""
        for member in self.members.values():
            member.close()

    def _seen(self) -> dict[str, int]:
        return {name: len(member.assignments) for name, member in self.members.items()}

    def _moved(self, before: dict[str, int]) -> int:
        """Return how many tasks left a member that stays, also if they came back."""
        moved = set[TaskId]()
        for name, seen in before.items():
            assignments = self.members[name].assignments[max(0, seen - 1) :]
            moved.update(*(earlier - later for earlier, later in pairwise(assignments)))
        return len(moved)
