"""librdkafka's configuration, divided between the reader and the member.

The reader, librdkafka, gets everything but what the member does: it checks names and values, as it
always does. The member, kafka-python, gets identity, timeouts, connections and security.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, KafkaError
from confluent_kafka import TopicPartition as Position

from assignor.adapters.client_settings import heartbeat_problem
from assignor.adapters.confluent.errors import refused
from assignor.adapters.confluent.security import security_settings
from assignor.adapters.servers import check_servers
from assignor.errors import ConfigError
from encoding import shown
from encoding.primitives import has_half_pair

CommitCallback = Callable[[KafkaError | None, list[Position]], object]

_SECOND_MS: Final = 1000
_DEFAULT_AUTO_COMMIT_MS: Final = 5000
_DEFAULT_CLIENT_ID: Final = "rdkafka"
_FLAGS: Final = MappingProxyType(
    {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
)
_SERVERS: Final = ("bootstrap.servers", "metadata.broker.list")
_TOPIC_SETTINGS: Final = "default.topic.config"
_RESET: Final = "auto.offset.reset"
# Name -> kafka-python's, with librdkafka's default.
_NUMBERS: Final = MappingProxyType(
    {
        "heartbeat.interval.ms": ("heartbeat_interval_ms", 3000),
        "max.poll.interval.ms": ("max_poll_interval_ms", 300_000),
        "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", 10_000),
        "reconnect.backoff.ms": ("reconnect_backoff_ms", 100),
        "retry.backoff.ms": ("retry_backoff_ms", 100),
        "session.timeout.ms": ("session_timeout_ms", 45_000),
        "socket.timeout.ms": ("request_timeout_ms", 60_000),
        "topic.metadata.refresh.interval.ms": ("metadata_max_age_ms", 300_000),
    }
)
WITH_DOTS: Final = frozenset(
    {
        *_NUMBERS,
        _RESET,
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "enable.auto.commit",
        "group.id",
        "group.instance.id",
    }
)
"""Settings that users of other clients give with underscores."""
_RESETS: Final = MappingProxyType(
    {
        **dict.fromkeys(("smallest", "earliest", "beginning"), OFFSET_BEGINNING),
        **dict.fromkeys(("largest", "latest", "end"), OFFSET_END),
    }
)
# librdkafka reads 010 as 8, and of 6_000 the 6; Python refuses thousands of digits.
_WHOLE: Final = re.compile(r"\s*[+-]?(0|[1-9][0-9]{0,17})\s*")
_TRIGGER_MS: Final = 300_000
_IDLE_MS: Final = 540_000
# Settings of the member that librdkafka, which is in no group, must not have.
_MEMBER_ONLY: Final = ("group.instance.id", "on_commit", "partition.assignment.strategy")
_REFUSED: Final = MappingProxyType(
    {
        "group.remote.assignor": "brokers do not assign tasks of a topology; remove it",
        "offset.store.method": "offsets are committed to the group; remove it",
    }
)
_ONLY: Final = MappingProxyType(
    {
        "group.protocol": (
            "classic",
            "tasks of a topology are assigned by the classic protocol; set it to classic",
        ),
        "group.protocol.type": ("consumer", "members of this group are consumers; remove it"),
    }
)
_EAGER_ASSIGNORS: Final = ("range", "roundrobin")
_COOPERATIVE_ASSIGNORS: Final = ("cooperative-sticky",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A checked configuration.

    Attributes:
        reader: of `confluent_kafka.Consumer`.
        member: of `kafka.KafkaConsumer`, without assignors.
        group_id: of both.
        other_assignors: names of the assignors that members of the group without a topology use.
        max_poll_interval_s: after which a consumer that is not polled leaves.
        commit_timeout_s: after which a commit fails.
        auto_commit: whether stored offsets are committed at rebalances and at the end.
        auto_commit_interval_s: seconds between two automatic commits; 0: only then.
        auto_offset_store: whether a record counts as stored once it is returned.
        reset_offset: where a partition begins of which nothing is committed, as a logical offset;
            `OFFSET_INVALID`: librdkafka reports an error.
        rebootstrap: of the member's supervisor (KIP-1102); empty: the member has none.
        on_commit: called with the end of commits.
    """

    reader: Mapping[str, Any]
    member: Mapping[str, Any]
    group_id: str
    other_assignors: tuple[str, ...]
    max_poll_interval_s: float
    commit_timeout_s: float
    auto_commit: bool
    auto_commit_interval_s: float
    auto_offset_store: bool
    reset_offset: int
    rebootstrap: Mapping[str, Any]
    on_commit: CommitCallback | None = field(default=None)

    @property
    def client_rack(self) -> str | None:
        """The rack of this client."""
        rack: str | None = self.reader.get("client.rack")
        return rack


def divided(config: Mapping[str, Any]) -> Settings:
    """Divide a configuration of `confluent_kafka.Consumer`.

    Raises:
        KafkaException: a setting cannot be carried out; the error names it. What librdkafka itself
            refuses, it refuses when the consumer is made of `reader`.
        ValueError: group.id is missing.
    """
    config = flattened(config)
    group_id = config.get("group.id")
    if not group_id:
        raise ValueError("Failed to create consumer: group.id must be set")
    _check(config)
    on_commit = config.get("on_commit")
    if on_commit is not None and not callable(on_commit):
        raise refused(KafkaError._INVALID_ARG, "on_commit requires a callable object")
    member = _member_settings(config, str(group_id))
    return Settings(
        reader=_reader_settings(config),
        member=member,
        group_id=str(group_id),
        other_assignors=_other_assignors(config),
        max_poll_interval_s=member["max_poll_interval_ms"] / _SECOND_MS,
        commit_timeout_s=member["request_timeout_ms"] / _SECOND_MS,
        auto_commit=_flag(config, "enable.auto.commit"),
        auto_commit_interval_s=_auto_commit_interval_s(config),
        auto_offset_store=_flag(config, "enable.auto.offset.store"),
        reset_offset=_reset_offset(config),
        rebootstrap=_rebootstrap(config),
        on_commit=on_commit,
    )


def _reader_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's settings: it commits nothing, and reports lost positions."""
    reader = {name: value for name, value in config.items() if name not in _MEMBER_ONLY}
    if _reset_offset(config) != OFFSET_INVALID:
        reader.pop(f"topic.{_RESET}", None)
        reader[_RESET] = "error"
    return reader | {"enable.auto.commit": False}


def flattened(config: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a configuration without `default.topic.config`, as confluent-kafka reads it.

    Its settings go before those beside it, whatever their names are.

    Raises:
        KafkaException: a name is no text, a text is no UTF-8, or `default.topic.config` is no dict.
    """
    given = config.get(_TOPIC_SETTINGS, {})
    if not isinstance(given, Mapping):
        why = f"{_TOPIC_SETTINGS} is {shown(repr(given))}; give a dict of settings"
        raise refused(KafkaError._INVALID_ARG, why)
    settings = {**config, **given}
    settings.pop(_TOPIC_SETTINGS, None)
    for name, value in settings.items():
        if not isinstance(name, str):
            why = f'No such configuration property: "{name}"'
            raise refused(KafkaError._INVALID_ARG, why)
        if isinstance(value, str) and has_half_pair(value):
            why = f"{name}={shown(repr(value))} is no valid UTF-8; give a valid text"
            raise refused(KafkaError._INVALID_ARG, why)
    return settings


def _reset_offset(config: Mapping[str, Any]) -> int:
    """Return where a partition begins; of a setting and the same with `topic.` the last counts."""
    given = "largest"
    for name, value in config.items():
        if name.removeprefix("topic.") == _RESET:
            given = str(value)
    return _RESETS.get(given.lstrip().lower(), OFFSET_INVALID)


def _auto_commit_interval_s(config: Mapping[str, Any]) -> float:
    if not _flag(config, "enable.auto.commit"):
        return 0.0
    return _number(config, "auto.commit.interval.ms", _DEFAULT_AUTO_COMMIT_MS) / _SECOND_MS


def _rebootstrap(config: Mapping[str, Any]) -> Mapping[str, Any]:
    if str(config.get("metadata.recovery.strategy", "rebootstrap")).lower() != "rebootstrap":
        return {}
    trigger_ms = _number(config, "metadata.recovery.rebootstrap.trigger.ms", _TRIGGER_MS)
    return {"metadata_recovery_rebootstrap_trigger_ms": trigger_ms}


def _check(config: Mapping[str, Any]) -> None:
    for name, todo in _REFUSED.items():
        if name in config:
            raise refused(KafkaError._INVALID_ARG, f"{name} is not supported: {todo}")
    for name, (value, todo) in _ONLY.items():
        if str(config.get(name, value)).strip().lower() != value:
            given = shown(repr(config[name]))
            raise refused(KafkaError._INVALID_ARG, f"{name}={given} is not supported: {todo}")


def _member_settings(config: Mapping[str, Any], group_id: str) -> dict[str, Any]:
    servers = next((config[name] for name in _SERVERS if config.get(name)), None)
    if servers is None:
        raise refused(KafkaError._INVALID_ARG, "bootstrap.servers is missing; give host:port")
    try:
        named = check_servers(servers, has_scheme=True, name=_SERVERS[0], is_text=True)
    except ConfigError as error:
        raise refused(KafkaError._INVALID_ARG, str(error)) from None
    client_id = config.get("client.id")
    settings: dict[str, Any] = {
        "bootstrap_servers": list(named),
        "client_id": str(_DEFAULT_CLIENT_ID if client_id is None else client_id),
        "group_id": group_id,
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 0,
        **{name: _number(config, key, default) for key, (name, default) in _NUMBERS.items()},
    }
    _check_heartbeats(config, settings)
    settings["metadata_max_age_ms"] = max(1, settings["metadata_max_age_ms"])
    idle_ms = _number(config, "connections.max.idle.ms", 0) or _IDLE_MS
    settings["connections_max_idle_ms"] = max(idle_ms, settings["request_timeout_ms"] + 1)
    for key, name in (("group.instance.id", "group_instance_id"), ("client.rack", "client_rack")):
        if config.get(key):
            settings[name] = str(config[key])
    return settings | security_settings(config)


def _check_heartbeats(config: Mapping[str, Any], settings: dict[str, Any]) -> None:
    """Check both times; an interval that is not given becomes at most a third of the session."""
    names = ("heartbeat.interval.ms", "session.timeout.ms")
    session_ms = settings["session_timeout_ms"]
    if session_ms < 1:
        return  # librdkafka refuses it, with its range
    if config.get(names[0]) is None:  # librdkafka accepts a session below its default interval
        if session_ms == 1:
            why = f"{names[1]}=1 leaves no time for a heartbeat; give 2 or more"
            raise refused(KafkaError._INVALID_ARG, why)
        third = max(1, session_ms // 3)
        settings["heartbeat_interval_ms"] = min(settings["heartbeat_interval_ms"], third)
    why = heartbeat_problem(*((name, settings[_NUMBERS[name][0]]) for name in names))
    if why:
        raise refused(KafkaError._INVALID_ARG, why)


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    value = config.get(name, default)
    if not _WHOLE.fullmatch(str(value)):
        why = f"{name} is {shown(repr(value))}; give a whole number"
        raise refused(KafkaError._INVALID_ARG, why)
    return int(str(value))


def _flag(config: Mapping[str, Any], name: str) -> bool:
    """Return a boolean; wrong ones are refused in librdkafka's words, which does not see all."""
    value = config.get(name, True)
    if value is None or value == "":
        why = f'Bool configuration property "{name}" cannot be set to empty value'
        raise refused(KafkaError._INVALID_ARG, why)
    flag = _FLAGS.get(str(value).lower())
    if flag is None:
        why = f'Expected bool value for "{name}": true or false'
        raise refused(KafkaError._INVALID_ARG, why)
    return flag


def _other_assignors(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the assignors that are listed behind this package's own."""
    given = str(config.get("partition.assignment.strategy") or "")
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    known = (*_EAGER_ASSIGNORS, *_COOPERATIVE_ASSIGNORS)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise refused(
            KafkaError._INVALID_ARG,
            f"partition.assignment.strategy={shown(repr(unknown[0]))} is unknown; name what the "
            f"members without a topology use ({', '.join(known)}), or nothing",
        )
    if {*names} & {*_EAGER_ASSIGNORS} and {*names} & {*_COOPERATIVE_ASSIGNORS}:
        raise refused(
            KafkaError._INVALID_ARG,
            f"partition.assignment.strategy={shown(repr(given))} mixes eager and cooperative "
            "assignors; name one kind",
        )
    return names


def rebalance_protocol(wanted: str | None, other_assignors: tuple[str, ...]) -> str:
    """Return how a member moves partitions: as wanted, as the other assignors, or cooperative.

    Raises:
        KafkaException: the other assignors move partitions in another way.
    """
    natural = "eager" if {*other_assignors} & {*_EAGER_ASSIGNORS} else "cooperative"
    if wanted is not None and other_assignors and wanted != natural:
        raise refused(
            KafkaError._INVALID_ARG,
            f"rebalance_protocol={shown(repr(wanted))} does not fit "
            f"partition.assignment.strategy={','.join(other_assignors)}, which is {natural}; "
            "give the one or the other",
        )
    return wanted or natural
