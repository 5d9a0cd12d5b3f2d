"""Keyword options of a `StreamsAssignor`, grouped into frozen values.

Names, types, defaults and texts of all options are declared here and in `AssignmentConfig`:
signatures and help texts are made from them (`signatures.py`), and a test compares `MemberKeywords`
with them, which type checkers read.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

from assignor.config import (
    STATE_DIR_KIND,
    AssignmentConfig,
    is_deferred,
    refused,
    takes,
    unknown_setting,
)
from assignor.embedding import InternalTopicSettings
from assignor.errors import ConfigError
from assignor.levels import DEFAULT_EVERY_S, LevelSource
from assignor.observe import Observer, RebalanceHook
from assignor.placement import Strategy
from assignor.rebalance import TasksListener
from assignor.topology import Topology

KAFKA_STREAMS_TOPICS: Final = InternalTopicSettings()
_MOST_STANDBYS: Final = 10_000
"""More processes than a group has: a larger number is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityOptions:
    """What a member reports about itself.

    Attributes:
        process_id: identity of the process, where there is no state directory. Give the same one
            after a restart and to all consumers of a process, so that its tasks come back. Without
            it a static member has one that follows from its `group.instance.id`, any other member
            a random one.
        endpoint: `host:port` where this member answers interactive queries.
        client_tags: KIP-708 tags.
        rack: the consumer's `client_rack`.
    """

    process_id: UUID | None = None
    endpoint: str | None = None
    client_tags: Mapping[str, str] | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """Which versions a member writes, and how it moves partitions.

    Attributes:
        upgrade_from: as Kafka Streams' `upgrade.from`.
        start_version: "latest" writes the latest native version at once (KIP-268's optimistic
            start); the default starts at a version that every modern JVM leader reads.
        rebalance_protocol: "eager" gives everything up before each rebalance, "cooperative" only
            what moves (KIP-429). A value of `upgrade_from` up to 2.3 keeps a member eager.
        release: whose versions and rules to follow; `native` unless a test emulates another.
    """

    upgrade_from: str | None = None
    start_version: Literal["latest"] | None = None
    rebalance_protocol: Literal["eager", "cooperative"] = "eager"
    release: str = "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackOptions:
    """What is called during a rebalance.

    Attributes:
        listener: called for changes of tasks; see `assignor.TasksListener`.
        observer: called with every step of a rebalance; see `assignor.observe`.
        hooks: called with whole rebalances; see `assignor.observe`. A line in the log besides, by
            `LoggingHook()`; to have it elsewhere, give another one.
    """

    listener: TasksListener | None = None
    observer: Observer | None = None
    hooks: Sequence[RebalanceHook] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderOptions:
    """How a member leads.

    Attributes:
        strategy: a name, or `(GroupState) -> TaskAssignment`; without one `high_availability`, and
            `fallback_prior` while lags cannot be read. Without internal topics lags are never
            read: stateful tasks then stay where they run, with a warning; `sticky` moves and
            restores them.
        internal_topics: how changelogs and repartition topics are created. They exist, with the
            right partition counts, before a task that needs them is assigned. None: the
            application creates them, and lags are not known.
    """

    strategy: Strategy | str | None = None
    internal_topics: InternalTopicSettings | None = KAFKA_STREAMS_TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """Where a member keeps its state, and in which formats.

    Attributes:
        state_dir: directory for state, locked for this process: its process id outlives restarts,
            and so does the version that the group agreed on.
        persistent_metadata_version: in which formats the state directory is written (KIP-384); None
            is `message_format_version`. Once raised and written it cannot go back. A finalized
            level of that name goes before it; where no level is finalized, all members write what
            the leader writes, and never go back.
        message_format_version: the conservative value; not above the other.
    """

    state_dir: str | Path | None = None
    persistent_metadata_version: int | None = None
    message_format_version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOptions:
    """Where finalized levels come from (KIP-584).

    Attributes:
        level_source: where finalized levels are kept (`GroupLevels`, `ClusterFeature`); a thread
            polls it, and the group's leader rejoins when they change. Without one this member goes
            by what the other members report.
        level_poll_s: seconds between two polls, give or take a fifth.
        hold_back: as long as nothing was ever finalized the whole group writes Kafka's newest
            version at most, so that a release that knows no other can still join and lead.
    """

    level_source: LevelSource | None = None
    level_poll_s: float = DEFAULT_EVERY_S
    hold_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """All options of a member.

    Attributes:
        topology: what the application processes; of several versions the highest.
        older: lower versions of the topology that this program can run, too.
        application_id: prefix of internal topics; None: the group id of the consumer.
        identity: what the member reports about itself.
        protocol: versions and rebalance protocol.
        callbacks: what is called during a rebalance.
        leading: how the member leads.
        state: the state directory.
        levels: finalized levels.
        settings: `num_standby_replicas=1` and others of `assignor.AssignmentConfig`.
    """

    topology: Topology
    application_id: str | None = None
    identity: IdentityOptions = field(default_factory=IdentityOptions)
    protocol: ProtocolOptions = field(default_factory=ProtocolOptions)
    callbacks: CallbackOptions = field(default_factory=CallbackOptions)
    leading: LeaderOptions = field(default_factory=LeaderOptions)
    state: StateOptions = field(default_factory=StateOptions)
    levels: LevelOptions = field(default_factory=LevelOptions)
    settings: Mapping[str, Any] = field(default_factory=dict)
    older: tuple[Topology, ...] = ()


OPTION_GROUPS: Final[Mapping[str, Any]] = {
    "identity": IdentityOptions,
    "protocol": ProtocolOptions,
    "callbacks": CallbackOptions,
    "leading": LeaderOptions,
    "state": StateOptions,
    "levels": LevelOptions,
}
"""Attribute of `MemberOptions` -> its class, whose fields are keyword options of a user."""


def option_fields() -> tuple[Field[Any], ...]:
    """Return all keyword options, settings of `AssignmentConfig` last."""
    kinds = (*OPTION_GROUPS.values(), AssignmentConfig)
    return tuple(option for kind in kinds for option in fields(kind))


def member_options(
    topology: Topology | None,
    application_id: str | None,
    keywords: Mapping[str, Any],
    *,
    topologies: Sequence[Topology] | None = None,
) -> MemberOptions:
    """Group the keyword options of a `StreamsAssignor`; those of no group are `settings`.

    Raises:
        ConfigError: a name is unknown, or a value is of another kind; the message names the nearest
            option, or the value to give. Both `topology` and `topologies` are given.
        TypeError: neither of them is given.
    """
    if topology is None and topologies is None:
        raise TypeError(
            "missing argument: give topology, or topologies with its versions; a consumer needs an"
            " instance, partition_assignment_strategy=[StreamsAssignor(topology)]"
        )
    check_option(*(("topologies", topologies) if topology is None else ("topology", topology)))
    if topology is not None and topologies is not None:
        raise ConfigError("topology and topologies are both given; leave one out")
    known = {option.name for option in option_fields()}
    for name in sorted(keywords.keys() - known):
        raise unknown_setting(name, known)
    for name, value in sorted(keywords.items()):
        check_option(name, value)
    settings = dict(keywords)
    given = [topology] if topology is not None else topologies or ()
    newest, *older = sorted(given, key=lambda each: -each.version)
    groups = {
        name: kind(**{f.name: settings.pop(f.name) for f in fields(kind) if f.name in settings})
        for name, kind in OPTION_GROUPS.items()
    }
    return MemberOptions(
        topology=newest,
        older=tuple(older),
        application_id=application_id,
        settings=settings,
        **groups,
    )


def _is_sequence_of_hooks(value: object) -> bool:
    return isinstance(value, Sequence) and all(
        _runs_callbacks_of(RebalanceHook, each) for each in value
    )


def _runs_callbacks_of(kind: type, value: object) -> bool:
    """Return whether a value is an instance whose methods run when they are called."""
    names = [name for name in vars(kind) if not name.startswith("_")]
    return isinstance(value, kind) and not any(
        is_deferred(inspect.getattr_static(value, name)) for name in names
    )


def _is_whole(value: object, least: int, most: float = inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


# Option -> what it takes, as a sentence and as a check. Other options are checked where they are
# used; for these a wrong value would show as an error in the log of each rebalance.
_KINDS: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "topology": ("an assignor.Topology", lambda value: isinstance(value, Topology)),
    "topologies": (
        "a list of assignor.Topology, at least one",
        lambda value: (
            isinstance(value, Sequence)
            and bool(value)
            and all(isinstance(each, Topology) for each in value)
        ),
    ),
    "listener": (
        "an instance of a subclass of assignor.TasksListener, without async methods",
        lambda value: value is None or _runs_callbacks_of(TasksListener, value),
    ),
    "observer": ("a function of one observation", lambda value: value is None or takes(value, 1)),
    "hooks": (
        "a list of instances of assignor.RebalanceHook, without async methods",
        lambda value: value is None or _is_sequence_of_hooks(value),
    ),
    "internal_topics": (
        "an assignor.InternalTopicSettings, or None",
        lambda value: value is None or isinstance(value, InternalTopicSettings),
    ),
    "state_dir": STATE_DIR_KIND,
    "release": ("a text, such as 'native'", lambda value: isinstance(value, str)),
    "level_source": (
        "a function without arguments that returns the finalized levels, such as GroupLevels",
        lambda value: value is None or takes(value, 0),
    ),
    "message_format_version": ("a whole number, 1 or more", lambda value: _is_whole(value, 1)),
    "persistent_metadata_version": (
        "a whole number, 1 or more, or None",
        lambda value: value is None or _is_whole(value, 1),
    ),
    "num_standby_replicas": (
        f"a whole number, 0 to {_MOST_STANDBYS}",
        lambda value: _is_whole(value, 0, _MOST_STANDBYS),
    ),
    "level_poll_s": (
        "seconds, above 0",
        lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf
        ),
    ),
    "hold_back": ("True or False", lambda value: isinstance(value, bool)),
}


def check_option(name: str, value: object) -> None:
    """Check the kind of an option's value.

    Raises:
        ConfigError: it is of another kind; the message says what to give.
    """
    wanted, is_kind = _KINDS.get(name, ("", lambda _: True))
    if not is_kind(value):
        raise refused(name, value, wanted)
