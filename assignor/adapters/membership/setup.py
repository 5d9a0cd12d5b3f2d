"""From checked options to what the membership core is made of: settings, identity, member."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID, uuid4

from assignor.adapters.membership.options import MemberOptions
from assignor.config import config_from_mapping
from assignor.errors import ConfigError
from assignor.placement import high_availability, strategy_of
from assignor.rebalance import LeaderSettings, MemberIdentity, StreamsMember
from assignor.topology import CarriedTopologies, Subtopology, Topology, is_topic_name
from assignor.topology.changes import carried_topologies
from encoding import shown
from probing import HELD_BACK, RebalanceProtocol, Release, find_release
from probing.features import UNKNOWN_LEVELS
from probing.topologies import Reached

# Stands for the group id, with which the options are checked again once it is known.
_UNNAMED = "application"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSetup:
    """Options after all checks, as the membership core uses them.

    Attributes:
        topology: what the application processes.
        application_id: prefix of internal topics.
        leader: release, subtopologies, strategy and settings of a leader.
        protocol: how the member moves partitions.
        identity_is_given: the process id came from the user or the state directory.
        strategy_is_default: the user chose no strategy.
    """

    topology: Topology
    application_id: str
    leader: LeaderSettings
    protocol: RebalanceProtocol
    identity_is_given: bool
    strategy_is_default: bool


def member_setup(options: MemberOptions, process_id: UUID | None) -> MemberSetup:
    """Resolve names and check numbers.

    Args:
        options: of the member.
        process_id: of the options or the state directory; None: neither has one.

    Raises:
        TopologyError, ConfigError, ReleaseError: an option is invalid; the message says why.
    """
    chosen, protocol = options.leading.strategy, options.protocol
    application_id = _UNNAMED if options.application_id is None else options.application_id
    carried = _carried(options, application_id)
    release = find_release(protocol.release)
    return MemberSetup(
        topology=options.topology,
        application_id=application_id,
        leader=LeaderSettings(
            release=release,
            subtopologies=carried.subtopologies,
            config=config_from_mapping(options.settings),
            strategy=strategy_of(high_availability if chosen is None else chosen),
            versions=() if carried.is_plain else carried.versions,
        ),
        protocol=offered_protocol(release, protocol.upgrade_from, protocol.rebalance_protocol),
        identity_is_given=process_id is not None,
        strategy_is_default=chosen is None,
    )


def new_member(
    options: MemberOptions,
    setup: MemberSetup,
    *,
    process_id: UUID | None,
    remembered_version: int | None,
    reached: Mapping[bytes, Reached] | None = None,
) -> StreamsMember:
    """Return a member that has not joined yet.

    Args:
        options: of the member.
        setup: made from the options.
        process_id: as for `member_setup`; None: a random one.
        remembered_version: that the group agreed on before a restart, by the state directory.
        reached: versions of the topology that were reached before a restart, likewise.

    Raises:
        ConfigError, ReleaseError: an option is invalid; the message says why.
    """
    identity, protocol = options.identity, options.protocol
    tags = identity.client_tags
    return StreamsMember(
        setup.leader.release,
        MemberIdentity(
            process_id=process_id or uuid4(),
            user_endpoint=identity.endpoint,
            rack=identity.rack,
            client_tags=dict(tags) if isinstance(tags, Mapping) else tags or {},
        ),
        carried=setup.leader.carried,
        reached=reached,
        upgrade_from=protocol.upgrade_from,
        start_version=protocol.start_version,
        remembered_version=remembered_version,
        levels=HELD_BACK if options.levels.hold_back else UNKNOWN_LEVELS,
    )


def _carried(options: MemberOptions, application_id: str) -> CarriedTopologies:
    """Return all versions of the topology, if Kafka can have topics with these names."""
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
