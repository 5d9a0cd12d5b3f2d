"""`StreamsApplication` of all clients: consumer, assignor, state stores and changelogs as one.

A client has an `ApplicationPort`, its keywords, and the class that users see. What does no I/O is
in `ApplicationPlan`, for clients whose calls block and those with coroutines.
"""

import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from assignor.adapters.consumer_options import (
    ClientSettings,
    ConsumerOptions,
    ProducerSettings,
    consumer_options,
)
from assignor.adapters.deserializing import deserialized
from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.membership import EmbeddedMember, check_option
from assignor.adapters.poll_arguments import stop_event
from assignor.adapters.processing import COMMITS_ITSELF
from assignor.adapters.threads import EitherEvent, OneThread
from assignor.config import check_handler
from assignor.embedding import (
    ChangelogAccess,
    Handler,
    InternalTopicSettings,
    MemberStopped,
    StateStore,
    TaskStores,
    check_kinds,
)
from assignor.embedding.bad_records import BadRecordAction, OnBadRecord
from assignor.embedding.loops import CLOSED
from assignor.embedding.serving import ServedMember
from assignor.errors import ConfigError, TopologyError
from assignor.topology import Topology

_NO_LIMIT_S: Final = -1.0
_FIXED: Final = MappingProxyType(
    {
        "listener": "it is the state stores; subclass TaskStores to be called, too",
        "topologies": "state stores follow one topology; use streams_consumer for several",
    }
)
_ARGUMENTS: Final = """\
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
    options: of the member, such as `num_standby_replicas=1` and `state_dir=` (one directory a
        process); settings of the consumer, which the changelogs have, too; and those of the
        producer of changelogs and outputs, such as `max_request_size=`.

Attributes:
    stores: the state, also for queries on other threads.
    consumer: the client.

Raises:
    ConfigError, TopologyError, ReleaseError: an option is invalid; the message says why.
    StateDirectoryLocked: another process uses the directory.
    StoreError: the directory cannot be used.
    MemberStopped: the directory has a copy of a store that is kept for the operator.
    ClusterUnavailable, KafkaError: no broker answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationPort:
    """What `StreamsApplication` needs of a client library.

    Attributes:
        options: called with keywords, `group_id` and `bootstrap_servers`; returns checked options.
            It does no I/O.
        open_changelogs: called with options; connects, and may block.
        new_consumer: called with the topology and options, among them the listener; returns a
            consumer with an `assignor`. It may block if the client has no coroutines.
        run_tasks: called with the consumer, `TaskStores`, the function that processes records, and
            `stop`; returns, or is awaited, until the loop has ended.
        check_may_close: called with the consumer and `TaskStores`; raises RuntimeError where a
            `close` would wait for itself.
        reads_bytes: the consumer has no deserializers.
    """

    options: Callable[..., ConsumerOptions]
    open_changelogs: Callable[[ConsumerOptions], ChangelogAccess]
    new_consumer: Callable[[Topology, ConsumerOptions], Any]
    run_tasks: Callable[..., Any]
    check_may_close: Callable[[Any, TaskStores], None] = lambda *_: None
    reads_bytes: bool = False


def application_options(
    settings: ClientSettings, keywords: Mapping[str, Any], **arguments: Any
) -> ConsumerOptions:
    """Return the checked keywords of an application; arguments and errors as `consumer_options`."""
    producer = ProducerSettings.__annotations__
    return consumer_options(keywords, settings, fixed=_FIXED, producer=producer, **arguments)


class ApplicationPlan:
    """A checked application, before it connects.

    Args:
        port: of the client.
        options: of the member and the clients, checked.
        topology, handle, stores, tell, on_bad_record: as for `StreamsApplication`.

    Raises:
        ConfigError, TopologyError: an argument is invalid; the message says why.
    """

    def __init__(
        self,
        port: ApplicationPort,
        options: ConsumerOptions,
        topology: Topology,
        handle: Handler,
        *,
        stores: Sequence[StateStore[Any, Any]],
        tell: Callable[[str], object],
        on_bad_record: OnBadRecord,
    ) -> None:
        if options.client.get("enable_auto_commit"):
            raise ConfigError(COMMITS_ITSELF)
        _check_stores(topology, stores)
        check_handler(handle)
        check_option("internal_topics", options.member.get("internal_topics"))
        client = dict(options.client)
        is_decided = port.reads_bytes or on_bad_record is not BadRecordAction.FAIL
        self._handle = deserialized(client, handle) if is_decided else handle
        self._port, self._options = port, replace(options, client=client)
        internal_topics = options.member.get("internal_topics") or InternalTopicSettings()
        self._topology = topology
        self._new_stores = partial(
            TaskStores,
            topology,
            stores,
            application_id=client["group_id"],
            state_dir=options.member.get("state_dir"),
            tell=tell,
            delete_retention_ms=internal_topics.delete_retention_ms,
            on_bad_record=on_bad_record,
            expires=internal_topics.expires,
        )

    def open_stores(self, resources: ExitStack) -> TaskStores:
        """Connect to the changelogs, and return the state stores; `resources` closes both."""
        access = self._port.open_changelogs(self._options)
        resources.callback(access.close)
        stores = self._new_stores(access=access)
        resources.callback(stores.close)
        return stores

    def new_consumer(self, stores: TaskStores) -> Any:
        """Return the consumer, with its member, whose listener these stores are."""
        self._options.member["listener"] = stores
        return self._port.new_consumer(self._topology, self._options)

    def run_tasks(self, consumer: Any, stores: TaskStores, stop: Any) -> Any:
        """Process records until the event is set, as `run_tasks` of the client."""
        return self._port.run_tasks(consumer, stores, self._handle, stop=stop)

    def check_may_close(self, consumer: Any, stores: TaskStores) -> None:
        """Raise RuntimeError where a `close` would wait for itself."""
        self._port.check_may_close(consumer, stores)


class Application(ServedMember):
    """What `StreamsApplication` of all clients has; its docstring gets the arguments."""

    _plan: ApplicationPlan
    consumer: Any

    def __init_subclass__(cls) -> None:
        if cls.__doc__:  # not with `python -OO`
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{_ARGUMENTS}\n"

    @property
    def assignor(self) -> EmbeddedMember:
        """The member: its tasks, and the hosts of a key."""
        member: EmbeddedMember = self.consumer.assignor
        return member


class BlockingApplication(Application):
    """`StreamsApplication` of a client whose calls block."""

    def __init__(self, plan: ApplicationPlan) -> None:
        self._plan = plan
        with ExitStack() as resources:
            stores = plan.open_stores(resources)
            self.consumer = plan.new_consumer(stores)
            resources.callback(self.consumer.close)
            super().__init__(self.consumer.assignor, stores)
            resources.push(self._servers)
            self._resources = resources.pop_all()
        self._running, self._closing = OneThread(), threading.Event()
        self._dropped = release_if_dropped(self, self._resources.close)

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
        ended = stop_event(stop)
        ending = signals_as(ended.set) if stop is None else nullcontext()
        with self._running, ending:
            self._plan.run_tasks(self.consumer, self.stores, EitherEvent(ended, self._closing))

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
        self._plan.check_may_close(self.consumer, self.stores)
        self._closing.set()
        self._running.acquire(_NO_LIMIT_S)
        try:
            self._dropped.detach()
            self._resources.close()
        finally:
            self._running.release()


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
def signals_as(end: Callable[[], object]) -> Iterator[None]:
    """Have the first SIGTERM or SIGINT call `end`; no other thread than the main one can."""
    process = os.getpid()
    before: dict[int, Any] = {}

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def stop(number: int, _frame: object) -> None:
        restore()
        end()
        if os.getpid() != process:  # a process that a handler has forked ends as ever
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        restore()
