"""An application in one object: consumer, assignor, state stores and changelogs."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final, Unpack

from kafka import KafkaConsumer

from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.changelogs import KafkaChangelogs
from assignor.adapters.kafka_python.consumer import (
    connected_consumer,
    consumer_options,
)
from assignor.adapters.kafka_python.port import check_may_close
from assignor.adapters.kafka_python.processing import COMMITS_ITSELF, deserialized, run_tasks
from assignor.adapters.kafka_python.settings import ConsumerSettings, ProducerSettings
from assignor.adapters.membership import ApplicationMemberKeywords, check_option, documented
from assignor.adapters.threads import EitherEvent, OneThread
from assignor.config import check_handler
from assignor.embedding import (
    InternalTopicSettings,
    MemberStopped,
    StateStore,
    TaskState,
    TaskStores,
    check_kinds,
)
from assignor.embedding.bad_records import BadRecordAction, OnBadRecord
from assignor.embedding.loops import CLOSED
from assignor.embedding.serving import ServedMember
from assignor.errors import ConfigError, TopologyError
from assignor.topology import Topology

_NO_LIMIT_S: Final = -1.0


class ApplicationKeywords(
    ApplicationMemberKeywords, ConsumerSettings, ProducerSettings, total=False
):
    """Keywords of `StreamsApplication`: options of the member, and settings of the clients."""


class StreamsApplication(ServedMember):
    """A member of a group that processes records into state stores; close it, or use it in `with`.

    It is `streams_consumer`, `TaskStores`, `KafkaChangelogs`, `run_tasks` and `ServedMember`
    together.

    Args:
        topology: what the application processes.
        handle: called with each record and the stores of its task. It runs again for a record if
            the member ends meanwhile, and has then had no effect on state.
        group_id: of the consumer; also the prefix of internal topics.
        bootstrap_servers: `host:port`, or several.
        stores: all state stores of the topology, as `SqliteStore` or `DictStore`.
        tell: called with a sentence after each new assignment, restoration and error.
        on_bad_record: what becomes of a record that cannot be deserialized (by `key_deserializer`
            and `value_deserializer`) or processed, or whose writes are too large for a broker: a
            `BadRecordAction`, `DeadLetter(TOPIC)`, or a function of a `BadRecord` that returns one.
            If it is not `FAIL`, which is the default, records are deserialized one by one, when
            they are processed.
        options: those that `help(streams_consumer)` explains, such as `num_standby_replicas=1` and
            `state_dir=` (one directory a process), and settings of `KafkaConsumer`, which the
            changelogs have, too, and of the producer of changelogs and outputs, such as
            `max_request_size=`.

    Attributes:
        stores: the state, also for queries on other threads.
        consumer: the client.

    Raises:
        ConfigError, TopologyError, ReleaseError: an option is invalid; the message says why.
        StateDirectoryLocked: another process uses the directory.
        StoreError: the directory cannot be used.
        MemberStopped: the directory has a copy of a store that is kept for the operator.
        ClusterUnavailable, KafkaError: no broker answered.
    """

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
        given = consumer_options(
            options,
            group_id=group_id,
            bootstrap_servers=bootstrap_servers,
            more=ProducerSettings.__annotations__,
            fixed={
                "listener": "it is the state stores; subclass TaskStores to be called, too",
                "topologies": "state stores follow one topology; use streams_consumer for several",
            },
        )
        if given.client.get("enable_auto_commit"):
            raise ConfigError(COMMITS_ITSELF)
        _check_stores(topology, stores)
        check_handler(handle)
        client = dict(given.client)
        check_option("internal_topics", given.member.get("internal_topics"))
        is_decided = on_bad_record is not BadRecordAction.FAIL
        self._handle = deserialized(client, handle) if is_decided else handle
        internal_topics = given.member.get("internal_topics") or InternalTopicSettings()
        with ExitStack() as resources:
            access = KafkaChangelogs(**client)
            resources.callback(access.close)
            kept = TaskStores(
                topology,
                stores,
                application_id=group_id,
                access=access,
                state_dir=given.member.get("state_dir"),
                tell=tell,
                delete_retention_ms=internal_topics.delete_retention_ms,
                on_bad_record=on_bad_record,
                expires=internal_topics.expires,
            )
            resources.callback(kept.close)
            given.member["listener"] = kept
            self.consumer = connected_consumer(
                topology, replace(given, client=_of_consumer(client))
            )
            resources.callback(self.consumer.close)
            super().__init__(self.consumer.assignor, kept)
            resources.push(self._servers)
            self._resources = resources.pop_all()
        self._running, self._closing = OneThread(), threading.Event()
        self._dropped = release_if_dropped(self, self._resources.close)

    @property
    def assignor(self) -> StreamsAssignor:
        """The member: its tasks, and the hosts of a key."""
        return self.consumer.assignor

    def run(self, stop: threading.Event | None = None) -> None:
        """Process records until the event is set, the group has to stop, or `close` is called.

        Args:
            stop: None: SIGTERM and SIGINT end it, on the main thread; the second one at once.

        Raises:
            MemberStopped: the member cannot go on; the message says why, and what to do.
            UnreadableRecord: a record cannot be read. The next `run` raises again, unless the cause
                has gone.
            StoreError: a store cannot be used.
            Exception: of `handle`; its record is processed again by the next `run`, or member.
            RuntimeError: another thread runs it, or the process was forked after it was made.
        """
        if self._closing.is_set():
            raise MemberStopped(CLOSED)
        ending = signals_as_event() if stop is None else nullcontext(stop)
        with self._running, ending as ended:
            both = EitherEvent(ended, self._closing)
            run_tasks(self.consumer, self.stores, self._handle, stop=both)

    def close(self) -> None:
        """Leave the group, and release everything; twice is once.

        If another thread is in `run`, that ends first, with the record that it processes. Nothing
        is done in a forked process: all of that belongs to its parent.

        Raises:
            RuntimeError: this is `handle` or a listener; nothing has been closed.
        """
        if self._running.is_forked:
            self._dropped.detach()
            return
        check_may_close(self.consumer, self.stores)
        self._closing.set()
        self._running.acquire(_NO_LIMIT_S)
        try:
            self._dropped.detach()
            self._resources.close()
        finally:
            self._running.release()


def _of_consumer(client: Mapping[str, Any]) -> dict[str, Any]:
    own = ProducerSettings.__annotations__.keys() - KafkaConsumer.DEFAULT_CONFIG.keys()
    return {name: value for name, value in client.items() if name not in own}


def _check_stores(topology: Topology, stores: Sequence[StateStore[Any, Any]]) -> None:
    """Check that every state store of the topology that can be given is given."""
    check_kinds(topology, stores)
    given = {store.name for store in stores}
    missing = [name for name in topology.logged_stores() if name not in given]
    if missing:
        listed = ", ".join(f"SqliteStore({name!r}, key=TEXT, value=JSON)" for name in missing)
        raise TopologyError(
            f"the topology has state stores that were not given: {', '.join(missing)}; give all, "
            f"such as stores=[{listed}], or remove them from the topology"
        )


@contextmanager
def signals_as_event() -> Iterator[threading.Event]:
    """Yield an event that the first SIGTERM or SIGINT sets; no other thread can set handlers."""
    event, process = threading.Event(), os.getpid()
    before: dict[int, Any] = {}

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def stop(number: int, _frame: object) -> None:
        restore()
        event.set()
        if os.getpid() != process:  # a process that a handler has forked ends as ever
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, stop)
    try:
        yield event
    finally:
        restore()
