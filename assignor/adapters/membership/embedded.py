"""A member inside an application: made of a user's options, and what the application sees of it."""

import inspect
import os
import weakref
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, Unpack

from assignor.adapters.membership.client import check_listed
from assignor.adapters.membership.core import MembershipCore
from assignor.adapters.membership.keywords import MemberKeywords
from assignor.adapters.membership.level_polling import LevelPolling
from assignor.adapters.membership.member import STREAMS_PROTOCOL, Membership
from assignor.adapters.membership.options import MemberOptions, StateOptions, member_options
from assignor.adapters.membership.reports import Reporter
from assignor.adapters.membership.resources import Resources
from assignor.adapters.membership.setup import member_setup, new_member
from assignor.adapters.membership.signatures import documented, options_section
from assignor.embedding import (
    ClusterWatch,
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
from probing.persisted_formats import PersistedSettings


def new_membership(options: MemberOptions) -> Membership:
    """Return a member that has no client yet; it locks its state directory.

    Raises:
        StateDirectoryLocked: another process works in the directory.
        StoreError: the directory cannot be used.
        TopologyError, ConfigError, ReleaseError: an option is invalid; the message says why.
    """
    directory = _state_directory(options.state)
    try:
        return _membership(options, directory)
    except BaseException:
        if directory is not None:
            directory.close()
        raise


def _state_directory(state: StateOptions) -> ProcessDirectory | None:
    persisted = PersistedSettings(
        message_format_version=state.message_format_version,
        persistent_metadata_version=state.persistent_metadata_version,
    )
    return None if state.state_dir is None else ProcessDirectory(state.state_dir, persisted)


def _membership(options: MemberOptions, directory: ProcessDirectory | None) -> Membership:
    process_id, remembered_version, reached = options.identity.process_id, None, None
    if directory is not None:
        process_id = process_id or directory.process_id
        remembered_version, reached = directory.remembered_version, directory.reached
    setup = member_setup(options, process_id)
    member = new_member(
        options,
        setup,
        process_id=process_id,
        remembered_version=remembered_version,
        reached=reached,
    )
    # An emulated Kafka release creates no topics here, and knows no levels.
    is_native = setup.leader.release.is_native
    callbacks = options.callbacks
    return Membership(
        MembershipCore(setup, member),
        Reporter(callbacks.listener or TasksListener(), callbacks.observer, callbacks.hooks or ()),
        Resources(
            cluster=ClusterWatch(
                setup.leader.subtopologies,
                options.leading.internal_topics if is_native else None,
            ),
            levels=LevelPolling(
                options.levels.level_source if is_native else None, options.levels.level_poll_s
            ),
            directory=directory,
        ),
    )


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
        self._membership = new_membership(self._options)
        # Weak: clients' threads have the assignor, and would keep a consumer that was dropped.
        self._consumer: weakref.ref[Any] | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self.client_id, self.poll_limit_s = "", inf

    @property
    def tasks(self) -> TasksHeld:
        """Active and standby tasks of the last assignment."""
        return self._membership.core.member.held

    def topology_versions(self, subtopology: int) -> tuple[int, ...]:
        """Return the versions of the topology that contain a subtopology, by its number in `tasks`.

        Raises:
            IndexError: this program has no such subtopology.
        """
        return self._membership.core.member.topology.carried.versions[subtopology]

    @property
    def source_topics(self) -> tuple[str, ...]:
        """Topics that the consumer subscribes to, of all versions of the topology, sorted."""
        parts = self._membership.core.leader_settings.subtopologies
        return tuple(sorted({topic for part in parts for topic in part.source_topics}))

    @property
    def routing(self) -> Routing:
        """Partitions by the host that serves them, as of the last assignment."""
        return self._membership.core.member.routing

    @property
    def listener(self) -> TasksListener | None:
        """The listener, as given."""
        return self._options.callbacks.listener

    @property
    def is_cooperative(self) -> bool:
        """Whether this member gives up only what moves (KIP-429)."""
        return self._membership.core.is_cooperative

    @property
    def levels(self) -> FinalizedLevels:
        """The finalized levels that this member goes by."""
        return self._membership.core.levels

    @property
    def directory(self) -> ProcessDirectory | None:
        """The state directory, for the application's own state; None without one."""
        return self._membership.resources.directory

    @property
    def failed(self) -> str | None:
        """Why this member ended, or None while it runs."""
        return self._membership.reporter.failed

    @property
    def stopped(self) -> tuple[str, ...]:
        """Why some tasks run on no member until something is corrected; `failed` stays None."""
        return (*self._membership.resources.cluster.problems, *self._membership.warnings.missing)

    @property
    def is_settled(self) -> bool:
        """Whether the member has the tasks that the group gives it, after its first answers."""
        return self._membership.reporter.first_tasks.has_them(may_wait=self.is_cooperative)

    @property
    def endpoint(self) -> str | None:
        """Where this member answers queries, as given."""
        return self._options.identity.endpoint

    @property
    def unheard_s(self) -> float:
        """Seconds since the coordinator answered a heartbeat; 0.0 within the session timeout."""
        client = self._membership.followups.client
        return 0.0 if client is None else client.unheard_s()

    @property
    def failures(self) -> list[str]:
        """The last failures, as sentences."""
        return self._membership.reporter.failures

    @property
    def shutdown_requested(self) -> bool:
        """Whether the whole group was asked to stop (KIP-671): close this member."""
        return self._membership.shutdown_requested

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
        core = self._membership.core
        topics = core.setup.topology.store_topics(store, core.setup.application_id)
        counts = {**self._membership.resources.cluster.partition_counts(), **core.partition_counts}
        return key_hosts(self.routing, topics, counts, key, partitioner=partitioner)

    def request_shutdown(self) -> None:
        """Have every member of the group stop (KIP-671), this one included.

        The next subscription asks for it; the leader passes it on in every answer, and each member
        calls `TasksListener.on_shutdown_requested`. JVM members stop their application.
        """
        self._membership.request_shutdown()

    def close(self) -> None:
        """End threads and timers and release the state directory; after the consumer's close.

        Nothing is done in a forked process: all of that belongs to its parent.
        """
        if os.getpid() == self._pid:
            self._is_closed = True
            self._membership.close()

    # For adapters

    def _check_options(self, options: MemberKeywords) -> None:
        """Check what the client does not support; raises a ConfigError."""

    def raise_listener_error(self) -> None:
        """Raise `ListenerFailed`, once, if a method of the listener has raised in a rebalance."""
        self._membership.reporter.raise_listener_error()

    @property
    def membership(self) -> Membership:
        """The member without its client."""
        return self._membership

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
            directory = self._membership.resources.directory
            self._membership = _membership(self._options, directory)
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
