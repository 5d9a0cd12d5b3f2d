"""Keyword options of a `StreamsAssignor`, grouped into frozen values.

An option is declared once: as a field here, or of `AssignmentConfig`. Signatures and help texts,
`MemberKeywords`, which type checkers read, and the table of docs/operations.md follow from it;
`python -m docs.generate` writes the last two.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

from assignor.config import (
    STATE_DIR_KIND,
    AssignmentConfig,
    check_kind,
    is_deferred,
    takes,
    unknown_setting,
)
from assignor.embedding import InternalTopicSettings
from assignor.errors import ConfigError
from assignor.levels import DEFAULT_EVERY_S, LevelSource
from assignor.observe import Observer, RebalanceHook
from assignor.option_fields import (
    TRUE_OR_FALSE,
    Kind,
    number,
    option,
    option_text,
    optional,
    whole,
)
from assignor.placement import Strategy
from assignor.rebalance import TasksListener
from assignor.topology import Topology

_FEATURES: Final = "features.md#a-group-that-follows-levels"
_FORMATS: Final = "features.md#persisted-formats"


def _runs_callbacks_of(kind: type, value: object) -> bool:
    """Return whether a value is an instance whose methods run when they are called."""
    names = [name for name in vars(kind) if not name.startswith("_")]
    return isinstance(value, kind) and not any(
        is_deferred(inspect.getattr_static(value, name)) for name in names
    )


def _is_sequence_of_hooks(value: object) -> bool:
    return isinstance(value, Sequence) and all(
        _runs_callbacks_of(RebalanceHook, each) for each in value
    )


def _is_sequence_of_topologies(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and bool(value)
        and all(isinstance(each, Topology) for each in value)
    )


_TOPOLOGY: Final = Kind("an assignor.Topology", lambda value: isinstance(value, Topology))
_TOPOLOGIES: Final = Kind("a list of assignor.Topology, at least one", _is_sequence_of_topologies)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityOptions:
    """What a member reports about itself."""

    process_id: UUID | None = option(
        None,
        "identity of the process, where there is no state directory. Give the same one after a"
        " restart and to all consumers of a process, so that its tasks come back. Without it a"
        " static member has one that follows from its `group.instance.id`, any other member a"
        " random one.",
    )
    endpoint: str | None = option(
        None,
        "`host:port` where this member answers interactive queries, `application.server`, or such"
        " a URL, whose scheme is dropped as in Kafka.",
    )
    client_tags: Mapping[str, str] | None = option(
        None, "KIP-708 tags: up to 5, keys of 1 to 20 characters, values of up to 30."
    )
    rack: str | None = option(
        None, "the consumer's `client_rack` (KIP-925), of up to 32,767 bytes."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """Which versions a member writes, and how it moves partitions."""

    upgrade_from: str | None = option(None, "as Kafka Streams' `upgrade.from`.")
    start_version: Literal["latest"] | None = option(
        None,
        '"latest" writes the latest native version, 101, from the start (KIP-268\'s optimistic'
        " start); the default starts at 11, which every modern JVM leader reads.",
    )
    rebalance_protocol: Literal["eager", "cooperative"] = option(
        "eager",
        '"eager" gives everything up before each rebalance, "cooperative" only what moves'
        " (KIP-429); with confluent-kafka, cooperative is the default, and aiokafka has only eager."
        " A value of `upgrade_from` up to 2.3 keeps a member eager.",
    )
    release: str = option(
        "native",
        "whose versions and rules to follow; `native` unless a test emulates another.",
        Kind("a text, such as 'native'", lambda value: isinstance(value, str)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackOptions:
    """What is called during a rebalance."""

    listener: TasksListener | None = option(
        None,
        "called for changes of tasks; see `assignor.TasksListener`.",
        Kind(
            "an instance of a subclass of assignor.TasksListener, without async methods",
            lambda value: value is None or _runs_callbacks_of(TasksListener, value),
        ),
    )
    observer: Observer | None = option(
        None,
        "called with every step of a rebalance; see assignor.observe.",
        Kind("a function of one observation", lambda value: value is None or takes(value, 1)),
    )
    hooks: Sequence[RebalanceHook] | None = option(
        None,
        "called with whole rebalances, such as metrics; see assignor.observe. A line in the log"
        " besides, by `LoggingHook()`; to have it elsewhere, give another one.",
        Kind(
            "a list of instances of assignor.RebalanceHook, without async methods",
            lambda value: value is None or _is_sequence_of_hooks(value),
        ),
        page="clients.md#what-to-watch",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderOptions:
    """How a member leads."""

    strategy: Strategy | str | None = option(
        None,
        "a name, or `(GroupState) -> TaskAssignment`; without one `high_availability`, and"
        " `fallback_prior` while lags cannot be read. Without internal topics lags are never read:"
        " stateful tasks then stay where they run, with a warning; `sticky` moves and restores"
        " them.",
        page="assignors.md#choosing-a-strategy",
    )
    internal_topics: InternalTopicSettings | None = option(
        InternalTopicSettings(),
        "how changelogs and repartition topics are created. They exist, with the right partition"
        " counts, before a task that needs them is assigned. None: the application creates them,"
        " and lags are not known.",
        Kind(
            "an assignor.InternalTopicSettings, or None",
            lambda value: value is None or isinstance(value, InternalTopicSettings),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """Where a member keeps its state, and in which formats."""

    state_dir: str | Path | None = option(
        None,
        "directory for state, locked for this process: its process id outlives restarts, and so"
        " does the version that the group agreed on.",
        STATE_DIR_KIND,
    )
    persistent_metadata_version: int | None = option(
        None,
        "in which formats the state directory is written (KIP-384); None is"
        " `message_format_version`. Once raised and written it cannot go back. A finalized level"
        " of that name goes before it; where no level is finalized, all members write what the"
        " leader writes, and never go back.",
        optional(whole(1)),
        page=_FORMATS,
    )
    message_format_version: int = option(
        1, "the conservative value; not above the other.", whole(1), page=_FORMATS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOptions:
    """Where finalized levels come from (KIP-584)."""

    level_source: LevelSource | None = option(
        None,
        "where finalized levels are kept (`GroupLevels`, `ClusterFeature`); a thread polls it, and"
        " the group's leader rejoins when they change. Without one this member goes by what the"
        " other members report.",
        Kind(
            "a function without arguments that returns the finalized levels, such as GroupLevels",
            lambda value: value is None or takes(value, 0),
        ),
        page=_FEATURES,
    )
    level_poll_s: float = option(
        DEFAULT_EVERY_S,
        "seconds between two polls, plus or minus 20 %.",
        number("seconds, above 0", lambda value: value > 0),
        page=_FEATURES,
    )
    hold_back: bool = option(
        False,  # noqa: FBT003 the default
        "as long as nothing was ever finalized the whole group writes Kafka's newest version at"
        " most, so that a release that knows no other can still join and lead.",
        TRUE_OR_FALSE,
        page=_FEATURES,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """All options of a member, by groups.

    Attributes:
        topology: what the application processes; of several versions the highest.
        older: lower versions of the topology that this program can run, too.
        application_id: prefix of internal topics; None: the group id of the consumer.
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
    each.name: each.type for each in fields(MemberOptions) if each.type is each.default_factory
}
"""Attribute of `MemberOptions` -> its class, whose fields are keyword options of a user."""


_SETTINGS: Final = frozenset(each.name for each in fields(AssignmentConfig))
OPTIONS: Final[Mapping[str, Field[Any]]] = {
    each.name: each for kind in (*OPTION_GROUPS.values(), AssignmentConfig) for each in fields(kind)
}
"""All keyword options, settings of `AssignmentConfig` last."""


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
    if topology is None:
        check_kind("topologies", topologies, _TOPOLOGIES)
    else:
        check_kind("topology", topology, _TOPOLOGY)
    if topology is not None and topologies is not None:
        raise ConfigError("topology and topologies are both given; leave one out")
    for name in sorted(keywords.keys() - OPTIONS.keys()):
        raise unknown_setting(name, OPTIONS)
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


def check_option(name: str, value: object) -> None:
    """Check the kind of an option's value. `AssignmentConfig` checks its own, for files as well.

    Raises:
        ConfigError: it is of another kind; the message says what to give.
    """
    known = option_text(OPTIONS[name])
    check_kind(name, value, known.of_member if name in _SETTINGS else known.kind)
