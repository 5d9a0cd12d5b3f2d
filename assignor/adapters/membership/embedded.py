"""A member inside an application: made of a user's options, and what the application sees of it."""

from typing import Unpack

from assignor.adapters.membership.core import MembershipCore
from assignor.adapters.membership.keywords import MemberKeywords
from assignor.adapters.membership.level_polling import LevelPolling
from assignor.adapters.membership.member import Membership, Resources
from assignor.adapters.membership.options import MemberOptions, StateOptions, member_options
from assignor.adapters.membership.reports import Reporter
from assignor.adapters.membership.setup import member_setup, new_member
from assignor.embedding import (
    ClusterWatch,
    KeyHosts,
    Partitioner,
    ProcessDirectory,
    key_hosts,
    partition_for_key,
)
from assignor.rebalance import Routing, TasksHeld, TasksListener
from assignor.topology import Topology
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
    process_id, remembered_version = options.identity.process_id, None
    if directory is not None:
        process_id = process_id or directory.process_id
        remembered_version = directory.remembered_version
    setup = member_setup(options, process_id)
    member = new_member(
        options, setup, process_id=process_id, remembered_version=remembered_version
    )
    # An emulated Kafka release creates no topics here, and knows no levels.
    is_native = setup.leader.release.is_native
    callbacks = options.callbacks
    return Membership(
        MembershipCore(setup, member),
        Reporter(callbacks.listener or TasksListener(), callbacks.observer, callbacks.hooks),
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
        application_id: prefix of internal topics; normally the group id.
        options: keyword options. Their names, defaults and meanings are the fields of
            `IdentityOptions` (`process_id`, `endpoint`, `client_tags`, `rack`), `ProtocolOptions`
            (`upgrade_from`, `start_version`, `rebalance_protocol`, `release`), `CallbackOptions`
            (`listener`, `observer`, `hooks`), `LeaderOptions` (`strategy`, `internal_topics`),
            `StateOptions` (`state_dir`, `persistent_metadata_version`, `message_format_version`)
            and `LevelOptions` (`level_source`, `level_poll_s`, `hold_back`). All others are
            settings of `assignor.AssignmentConfig`, such as `num_standby_replicas=1`.

    Raises:
        StateDirectoryLocked: another process works in the directory.
        StoreError: the directory cannot be used.
        TopologyError, ConfigError, ReleaseError: an option is invalid; the message says why.
    """

    name = "stream"

    def __init__(
        self, topology: Topology, *, application_id: str, **options: Unpack[MemberKeywords]
    ) -> None:
        self._membership = new_membership(member_options(topology, application_id, options))

    @property
    def tasks(self) -> TasksHeld:
        """Active and standby tasks of the last assignment."""
        return self._membership.core.member.held

    @property
    def routing(self) -> Routing:
        """Partitions by the host that serves them, as of the last assignment."""
        return self._membership.core.member.routing

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
        """Why this member ended, or None while it goes on."""
        return self._membership.reporter.failed

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
        """
        core = self._membership.core
        topics = core.setup.topology.store_topics(store, core.setup.application_id)
        known = self._membership.resources.cluster.partition_counts()
        counts = {**known, **core.partition_counts}
        return key_hosts(self.routing, topics, counts, key, partitioner=partitioner)

    def request_shutdown(self) -> None:
        """Have every member of the group stop (KIP-671), this one included.

        The next subscription asks for it; the leader passes it on in every answer, and each member
        calls `TasksListener.on_shutdown_requested`. JVM members stop their application.
        """
        self._membership.request_shutdown()

    def close(self) -> None:
        """End threads and timers and give the state directory free; after the consumer's close."""
        self._membership.close()
