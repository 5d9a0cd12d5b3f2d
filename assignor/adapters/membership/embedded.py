"""A member inside an application: made of a user's options, and what the application sees of it."""

import inspect
import os
import weakref
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, Unpack

from assignor.adapters.membership.driver import STREAMS_PROTOCOL, Driver
from assignor.adapters.membership.keywords import MemberKeywords
from assignor.adapters.membership.options import member_options
from assignor.adapters.membership.port import check_listed
from assignor.adapters.membership.setup import driver_of, new_driver
from assignor.adapters.membership.signatures import documented, options_section
from assignor.embedding import (
    KeyHosts,
    Partitioner,
    ProcessDirectory,
    key_hosts,
    partition_for_key,
)
from assignor.errors import ConfigError
from assignor.rebalance import Routing, TasksHeld, TasksListener
from assignor.topology import Topology
from encoding import shown
from probing.features import FinalizedLevels


class EmbeddedMember:
    """A group member, whatever its client; the base of every `StreamsAssignor`.

    Args:
        topology: what the application processes.
        application_id: prefix of internal topics. It is the group id of the consumer, which is the
            default; another one is refused by `attach`.
        topologies: several versions of the topology instead, for a program that can run each of
            them; `topology.version` is then a feature level of the group.
        options: keyword options; the docstring of each subclass lists them.

    Attributes:
        client_id: of the consumer; "" before it is known.
        poll_limit_s: its `max.poll.interval.ms`, in seconds.

    Raises:
        StateDirectoryLocked: another process works in the directory.
        StoreError: the directory cannot be used.
        TopologyError, ConfigError, ReleaseError: an option is unknown or invalid; the message says
            which, and what to give.
    """

    name = STREAMS_PROTOCOL
    not_attached = (
        "attach(consumer) was not called, so no task would run; call it right after the consumer"
        " is made, or make the consumer with streams_consumer"
    )
    """What is raised before a consumer is attached."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Add all options to the docstring of the subclass."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{options_section()}\n"

    @documented()
    def __init__(
        self,
        topology: Topology | None = None,
        *,
        application_id: str | None = None,
        topologies: Sequence[Topology] | None = None,
        **options: Unpack[MemberKeywords],
    ) -> None:
        self._check_options(options)
        self._options = member_options(topology, application_id, options, topologies=topologies)
        self._driver = new_driver(self._options)
        # Weak: clients' threads have the assignor, and would keep a consumer that was dropped.
        self._consumer: weakref.ref[Any] | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self.client_id, self.poll_limit_s = "", inf

    @property
    def tasks(self) -> TasksHeld:
        """Active and standby tasks of the last assignment."""
        return self._driver.member.held

    def topology_versions(self, subtopology: int) -> tuple[int, ...]:
        """Return the versions of the topology that contain a subtopology, by its number in `tasks`.

        Raises:
            IndexError: this program has no such subtopology.
        """
        return self._driver.member.topology.carried.versions[subtopology]

    @property
    def source_topics(self) -> tuple[str, ...]:
        """Topics that the consumer subscribes to, of all versions of the topology, sorted."""
        parts = self._driver.member.leader.subtopologies
        return tuple(sorted({topic for part in parts for topic in part.source_topics}))

    @property
    def routing(self) -> Routing:
        """Partitions by the host that serves them, as of the last assignment."""
        return self._driver.member.routing

    @property
    def listener(self) -> TasksListener | None:
        """The listener, as given."""
        return self._options.callbacks.listener

    @property
    def is_cooperative(self) -> bool:
        """Whether this member gives up only what moves (KIP-429)."""
        return self._driver.member.is_cooperative

    @property
    def levels(self) -> FinalizedLevels:
        """The finalized levels that this member goes by."""
        return self._driver.member.state.levels

    @property
    def directory(self) -> ProcessDirectory | None:
        """The state directory, for the application's own state; None without one."""
        return self._driver.directory

    @property
    def failed(self) -> str | None:
        """Why this member ended, or None while it runs."""
        return self._driver.reporter.failed

    @property
    def stopped(self) -> tuple[str, ...]:
        """Why some tasks run on no member until something is corrected; `failed` stays None."""
        return (*self._driver.cluster.problems, *self._driver.warnings.missing)

    @property
    def is_settled(self) -> bool:
        """Whether the member has the tasks that the group gives it, after its first answers."""
        return self._driver.reporter.first_tasks.has_them(may_wait=self.is_cooperative)

    @property
    def endpoint(self) -> str | None:
        """Where this member answers queries, as given."""
        return self._options.identity.endpoint

    @property
    def unheard_s(self) -> float:
        """Seconds since the coordinator answered a heartbeat; 0.0 within the session timeout."""
        port = self._driver.port
        return 0.0 if port is None else port.unheard_s()

    @property
    def failures(self) -> list[str]:
        """The last failures, as sentences."""
        return self._driver.reporter.failures

    @property
    def shutdown_requested(self) -> bool:
        """Whether the whole group was asked to stop (KIP-671): close this member."""
        return self._driver.shutdown_requested

    def hosts_for_key(
        self, store: str, key: bytes, *, partitioner: Partitioner = partition_for_key
    ) -> KeyHosts:
        """Return who has the state of a key, as of the last assignment; callable on any thread.

        Args:
            store: name of the state store.
            key: serialised, as it is in the store's input topic.
            partitioner: (key, partitions) -> partition, if the topic's is not Kafka's default.

        Raises:
            TopologyError: there is no such store.
            MissingSourceTopic: the partition count of the store's input is not known yet.
            ConfigError: no consumer is attached.
        """
        self._check_attached()
        driver, application_id = self._driver, str(self._options.application_id)
        topics = self._options.topology.store_topics(store, application_id)
        counts = {**driver.cluster.partition_counts(), **driver.member.partition_counts}
        return key_hosts(self.routing, topics, counts, key, partitioner=partitioner)

    def request_shutdown(self) -> None:
        """Have every member of the group stop (KIP-671), this one included.

        The next subscription asks for it; the leader passes it on in every answer, and each member
        calls `TasksListener.on_shutdown_requested`. JVM members stop their application.
        """
        self._driver.request_shutdown()

    def close(self) -> None:
        """End threads and timers and release the state directory; after the consumer's close.

        Nothing is done in a forked process: all of that belongs to its parent.
        """
        if os.getpid() == self._pid:
            self._is_closed = True
            self._driver.close()

    # For adapters

    def _check_options(self, options: MemberKeywords) -> None:
        """Check what the client does not support; raises a ConfigError."""

    def raise_listener_error(self) -> None:
        """Raise `ListenerFailed`, once, if a method of the listener has raised in a rebalance."""
        self._driver.reporter.raise_listener_error()

    @property
    def driver(self) -> Driver:
        """What calls the member for its client."""
        return self._driver

    def check_attached_to(self, consumer: object) -> None:
        """Check that this consumer is attached.

        Raises:
            ConfigError: none is, or another one.
        """
        self._check_attached()
        if self._attached is not consumer:
            raise ConfigError(_OF_ANOTHER)

    @property
    def _attached(self) -> object:
        return None if self._consumer is None else self._consumer()

    def _is_attached_to(self, consumer: object) -> bool:
        """Return whether this consumer is attached already.

        Raises:
            ConfigError: another consumer is attached, or this assignor is closed.
        """
        if self._is_closed:
            raise ConfigError("this StreamsAssignor is closed; create another for each consumer")
        if self._consumer is not None and self._attached is not consumer:
            raise ConfigError(_OF_ANOTHER)
        return self._consumer is not None

    def _attach_to(self, consumer: object, *, group_id: str, listed: Sequence[object]) -> None:
        """Accept the consumer to attach, and take its group id as application id.

        Args:
            consumer: of the adapter's client.
            group_id: of the consumer.
            listed: its assignors, in order.

        Raises:
            ConfigError: the consumer has another group id than the application, or does not prefer
                this assignor.
        """
        check_listed(self, listed)
        given = self._options.application_id
        if given not in {None, group_id}:
            raise ConfigError(
                f"application_id={shown(repr(given))} is unlike group_id={shown(repr(group_id))} of"
                " the consumer; leave application_id out"
            )
        if given is None:
            self._options = replace(self._options, application_id=group_id)
            self._driver = driver_of(self._options, self._driver.directory)
        self._consumer = weakref.ref(consumer)

    def _check_asked_by(self, *, attached: bool) -> None:
        """Check that the attached consumer asks for the subscription, as the adapter knows."""
        self._check_attached()
        if not attached:
            raise ConfigError(_OF_ANOTHER)

    def _check_attached(self) -> None:
        if self._consumer is None:
            raise ConfigError(self.not_attached)


_OF_ANOTHER = (
    "this StreamsAssignor is attached to another consumer; create one assignor for each consumer"
)
