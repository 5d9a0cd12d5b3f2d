"""From checked options to a member with its driver, state directory and resources."""

from collections.abc import Mapping
from typing import Literal
from uuid import uuid4

from assignor.adapters.membership.driver import Driver
from assignor.adapters.membership.options import MemberOptions, StateOptions
from assignor.adapters.membership.reports import Reporter
from assignor.config import config_from_mapping
from assignor.embedding import ClusterWatch, ProcessDirectory, lags_or_prior
from assignor.errors import ConfigError
from assignor.placement import high_availability, strategy_of
from assignor.rebalance import LeaderSettings, Member, MemberIdentity, TasksListener
from assignor.topology import CarriedTopologies, Subtopology, is_topic_name
from assignor.topology.changes import carried_topologies
from encoding import shown
from probing import HELD_BACK, RebalanceProtocol, Release, find_release
from probing.features import UNKNOWN_LEVELS
from probing.persisted_formats import PersistedSettings

# Stands for the group id, with which the options are checked again once it is known.
_UNNAMED = "application"


def new_driver(options: MemberOptions) -> Driver:
    """Return a member that has no client yet; it locks its state directory.

    Raises:
        StateDirectoryLocked: another process works in the directory.
        StoreError: the directory cannot be used.
        TopologyError, ConfigError, ReleaseError: an option is invalid; the message says why.
    """
    directory = state_directory(options.state)
    try:
        return driver_of(options, directory)
    except BaseException:
        if directory is not None:
            directory.close()
        raise


def state_directory(state: StateOptions) -> ProcessDirectory | None:
    """Return the locked state directory, or None; raises as `new_driver` does."""
    persisted = PersistedSettings(
        message_format_version=state.message_format_version,
        persistent_metadata_version=state.persistent_metadata_version,
    )
    return None if state.state_dir is None else ProcessDirectory(state.state_dir, persisted)


def driver_of(options: MemberOptions, directory: ProcessDirectory | None) -> Driver:
    """Return a member that works in a state directory; raises as `new_driver` does."""
    member, application_id = new_member(options, directory), _application_id(options)
    # An emulated Kafka release creates no topics here, and knows no levels.
    topics, source = options.leading.internal_topics, options.levels.level_source
    if not member.is_native:
        topics = source = None
    callbacks, has_id = options.callbacks, options.identity.process_id or directory
    return Driver(
        member,
        Reporter(callbacks.listener or TasksListener(), callbacks.observer, callbacks.hooks or ()),
        ClusterWatch(member.leader.subtopologies, topics),
        level_source=source,
        level_poll_s=options.levels.level_poll_s,
        directory=directory,
        strategy=lags_or_prior if options.leading.strategy is None else None,
        static_name=None if has_id else application_id,
    )


def new_member(options: MemberOptions, directory: ProcessDirectory | None = None) -> Member:
    """Return a member that has not joined yet, with checked options.

    Args:
        options: of the member.
        directory: what it remembers from before a restart; None: nothing.

    Raises:
        TopologyError, ConfigError, ReleaseError: an option is invalid; the message says why.
    """
    identity, protocol, chosen = options.identity, options.protocol, options.leading.strategy
    carried, release = _carried(options), find_release(protocol.release)
    leader = LeaderSettings(
        release=release,
        subtopologies=carried.subtopologies,
        config=config_from_mapping(options.settings),
        strategy=strategy_of(high_availability if chosen is None else chosen),
        versions=() if carried.is_plain else carried.versions,
    )
    offered = offered_protocol(release, protocol.upgrade_from, protocol.rebalance_protocol)
    tags, kept_id = identity.client_tags, None if directory is None else directory.process_id
    return Member(
        release,
        MemberIdentity(
            process_id=identity.process_id or kept_id or uuid4(),
            user_endpoint=identity.endpoint,
            rack=identity.rack,
            client_tags=dict(tags) if isinstance(tags, Mapping) else tags or {},
        ),
        carried=leader.carried,
        reached=None if directory is None else directory.reached,
        upgrade_from=protocol.upgrade_from,
        start_version=protocol.start_version,
        remembered_version=None if directory is None else directory.remembered_version,
        levels=HELD_BACK if options.levels.hold_back else UNKNOWN_LEVELS,
        leader=leader,
        is_cooperative=offered is RebalanceProtocol.COOPERATIVE,
    )


def _application_id(options: MemberOptions) -> str:
    return _UNNAMED if options.application_id is None else options.application_id


def _carried(options: MemberOptions) -> CarriedTopologies:
    """Return all versions of the topology, if Kafka can have topics with these names."""
    application_id = _application_id(options)
    if not (isinstance(application_id, str) and is_topic_name(application_id)):
        raise ConfigError(
            f"application_id={shown(repr(application_id))} is refused, since internal topics begin"
            " with it (by default it is the group id); give 1 to 249 letters, digits, dots,"
            " underscores and hyphens"
        )
    carried = carried_topologies((options.topology, *options.older), application_id)
    internal = {name for part in carried.subtopologies for name in _internal_topics(part)}
    for name in sorted(internal):
        if not is_topic_name(name):
            raise ConfigError(
                f"internal topic {shown(name)} has {len(name)} characters, and Kafka takes 249; "
                "shorten application_id or the name of the store or repartition topic"
            )
    return carried


def _internal_topics(part: Subtopology) -> tuple[str, ...]:
    return (*part.changelog_topics, *(topic.name for topic in part.repartition_topics))


def offered_protocol(
    release: Release, upgrade_from: str | None, wanted: Literal["eager", "cooperative"]
) -> RebalanceProtocol:
    """Return how a member moves partitions: as wanted, unless its release or pin is eager.

    Raises:
        ConfigError: `wanted` is no protocol.
        ReleaseError: the release does not accept this value of `upgrade.from`.
    """
    if wanted not in tuple(RebalanceProtocol):
        names = ", ".join(repr(str(known.value)) for known in RebalanceProtocol)
        raise ConfigError(f"rebalance_protocol={wanted!r} is unknown; give one of {names}")
    row = release.started_with(upgrade_from)
    if wanted == RebalanceProtocol.EAGER.value:
        return RebalanceProtocol.EAGER
    if row is not None:
        return row.rebalance_protocol
    return RebalanceProtocol.COOPERATIVE if release.is_native else release.rebalance_protocol
