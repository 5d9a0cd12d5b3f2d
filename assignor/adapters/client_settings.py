"""Settings of a client among the keywords of its consumer, and which of them are checked here.

A client checks its own settings. `CLIENT_CHECKS` lists those whose wrong values it takes without
a word, or that this package reads, with what breaks.
"""

from collections.abc import Callable, Mapping
from numbers import Integral
from os.path import isfile
from ssl import SSLContext
from typing import Any, Final, Literal, NamedTuple, TypedDict, cast

from assignor.adapters.membership import OPTIONS, MemberKeywords
from assignor.config import check_kind, refused, unknown_setting
from assignor.errors import ConfigError
from assignor.option_fields import TRUE_OR_FALSE, Kind, optional
from encoding.primitives import has_half_pair

_INT: Final = 2**31 - 1
_TIMES: Final = ("heartbeat_interval_ms", "session_timeout_ms", "max_poll_interval_ms")


def _is_from_one(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return 1 <= int(value) <= _INT


_FROM_ONE: Final = Kind(f"a whole number, 1 to {_INT}", _is_from_one)


def _choice(*choices: str) -> Kind:
    names = [repr(each) for each in choices]
    words = f"{', '.join(names[:-1])} or {names[-1]}"
    return Kind(words, lambda value: isinstance(value, str) and value in choices, choices)


def _or_none(words: str, accepts: Callable[[object], bool]) -> Kind:
    return optional(Kind(words, accepts), "{} or None")


class Checked(NamedTuple):
    """What settings of a client take, and what breaks with another value."""

    kind: Kind
    why: str


# In this order they are in docs/operations.md.
_CHECKED: Final[Mapping[tuple[str, ...], Checked]] = {
    ("enable_auto_commit", "allow_auto_create_topics"): Checked(
        TRUE_OR_FALSE,
        'the text "false" counts as true: offsets of records that no task has processed are'
        " committed, and brokers create repartition topics with partition counts of their own",
    ),
    ("auto_offset_reset",): Checked(
        _choice("earliest", "latest", "none"),
        "another text counts as none: a task without a commit never begins",
    ),
    ("key_deserializer", "value_deserializer"): Checked(
        _or_none("a function", callable),
        "each record fails, and `on_bad_record` may drop it",
    ),
    (
        *("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"),
        *("rebalance_timeout_ms", "request_timeout_ms", "max_poll_records"),
    ): Checked(
        _FROM_ONE,
        "poll loops, heartbeats and `health` follow these; with 0 or a text a member is removed"
        " from its group in each rebalance, or polls without end",
    ),
    ("max_request_size",): Checked(_FROM_ONE, "no record of a changelog can be written"),
    ("group_instance_id",): Checked(
        _or_none("a text", lambda value: isinstance(value, str)),
        "the process id of a static member follows from it",
    ),
    ("security_protocol",): Checked(
        _choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        "kafka-python reads another text as PLAINTEXT, for all connections of the member",
    ),
    ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile"): Checked(
        Kind(
            "the path of a file that exists",
            lambda value: not value or isfile(value),  # noqa: PTH113 no error
        ),
        "the file is missing for each attempt to connect, and the error is that no broker answers",
    ),
    ("ssl_context",): Checked(
        _or_none("an instance of SSLContext", lambda value: isinstance(value, SSLContext)),
        "each attempt to connect fails, and the error is that no broker answers",
    ),
}
CLIENT_CHECKS: Final = {name: row for names, row in _CHECKED.items() for name in names}


class SharedSettings(TypedDict, total=False):
    """Settings that all clients have, by the names of kafka-python, as type checkers see them."""

    client_id: str
    group_instance_id: str | None
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    request_timeout_ms: int
    retry_backoff_ms: int
    auto_offset_reset: Literal["earliest", "latest", "none"]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    check_crcs: bool
    isolation_level: Literal["read_uncommitted", "read_committed"]
    metadata_max_age_ms: int
    max_poll_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    connections_max_idle_ms: int
    sasl_plain_username: str | None
    sasl_plain_password: str | None


class CommonSettings(SharedSettings, total=False):
    """Further settings that kafka-python and aiokafka have."""

    ssl_context: SSLContext | None
    exclude_internal_topics: bool
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None
    sasl_oauth_token_provider: Any


def split_keywords(
    keywords: Mapping[str, Any],
    *,
    client: Mapping[str, Any],
    fixed: Mapping[str, str],
    instances: tuple[type, ...] = (),
) -> tuple[MemberKeywords, dict[str, Any]]:
    """Return the options of an assignor among keywords, and the settings of its client.

    Without `heartbeat_interval_ms`, that is at most a third of a given `session_timeout_ms`.

    Args:
        keywords: as a user gave them.
        client: the client's settings, with their defaults.
        fixed: names that cannot be given -> why, or what to give.
        instances: classes of the client for deserializers.

    Raises:
        ConfigError: a name is neither, or cannot be given; a setting of `CLIENT_CHECKS` has a
            wrong value: the message names the nearest one. Heartbeats are as rare as the session
            timeout, or polls have to be more frequent.
    """
    known = {*OPTIONS, *client} - fixed.keys()
    for name in sorted(keywords.keys() - known):
        if name in fixed:
            raise ConfigError(f"{name} cannot be given: {fixed[name]}")
        raise unknown_setting(name, known, listed=OPTIONS)
    options = {name: value for name, value in keywords.items() if name in OPTIONS}
    settings = {name: value for name, value in keywords.items() if name not in OPTIONS}
    for name, value in sorted(settings.items()):
        if name in CLIENT_CHECKS and value is not client[name] and not isinstance(value, instances):
            check_kind(name, value, CLIENT_CHECKS[name].kind)
        if isinstance(value, str) and has_half_pair(value):
            raise refused(name, value, "a text that UTF-8 can encode")
    session_ms, default_ms = settings.get("session_timeout_ms"), client["heartbeat_interval_ms"]
    if session_ms is not None and "heartbeat_interval_ms" not in settings:
        settings["heartbeat_interval_ms"] = max(1, min(default_ms, session_ms // 3))
    beat, session, poll = ({**client, **settings}.get(name) for name in _TIMES)
    if why := heartbeat_problem((_TIMES[0], beat), (_TIMES[1], session)):
        raise ConfigError(why)
    if poll is not None and beat is not None and poll < beat:
        raise ConfigError(
            f"max_poll_interval_ms={poll} is below heartbeat_interval_ms={beat}; give the longest"
            " time between polls"
        )
    return cast("MemberKeywords", options), settings


def heartbeat_problem(interval: tuple[str, int | None], session: tuple[str, int | None]) -> str:
    """Return why a member with these two settings, (name, ms), cannot stay in a group, or "".

    >>> heartbeat_problem(("heartbeat_interval_ms", 9), ("session_timeout_ms", 9))
    'heartbeat_interval_ms=9 is not below session_timeout_ms=9; give at most a third of it'
    """
    (name, interval_ms), (limit, session_ms) = interval, session
    if interval_ms is None or session_ms is None or interval_ms < session_ms:
        return ""
    return f"{name}={interval_ms} is not below {limit}={session_ms}; give at most a third of it"
