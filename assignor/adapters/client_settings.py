"""Settings of a client among the keywords of its consumer, and which of them are checked here.

A client checks its own settings. `CHECKED_SETTINGS` lists those whose wrong values it takes without
a word, or that this package reads, with what breaks.
"""

import os.path
from collections.abc import Mapping
from numbers import Integral
from ssl import SSLContext
from typing import Any, Final, NamedTuple, cast

from assignor.adapters.membership import OPTIONS, MemberKeywords
from assignor.config import check_kind, refused, unknown_setting
from assignor.errors import ConfigError
from assignor.option_fields import TRUE_OR_FALSE, Kind, optional
from encoding.primitives import has_half_pair

_INT: Final = 2**31 - 1
_FROM_ONE: Final = Kind(
    f"a whole number, 1 to {_INT}",
    lambda value: (
        isinstance(value, Integral) and type(value) is not bool and 1 <= int(value) <= _INT
    ),
)
_FUNCTION: Final = Kind(
    "a function, an instance of Deserializer or None",
    lambda value: value is None or callable(value) or hasattr(value, "deserialize"),
)
_FILE: Final = Kind(
    "the path of a file that exists",
    lambda value: not value or os.path.isfile(value),  # noqa: PTH113 no error
)
_TEXT: Final = optional(Kind("a text", lambda value: isinstance(value, str)), "{} or None")


def _choice(*choices: str) -> Kind:
    names = [repr(each) for each in choices]
    words = f"{', '.join(names[:-1])} or {names[-1]}"
    return Kind(words, lambda value: isinstance(value, str) and value in choices, choices)


class Checked(NamedTuple):
    """What a client's setting takes, and what breaks with another value."""

    kind: Kind
    why: str


_NO_TLS: Final = "the member has no connection, and nothing but time ends its attempts"
_UNPROCESSED: Final = "each record fails, and `on_bad_record` may drop it"
CHECKED_SETTINGS: Final[Mapping[str, Checked]] = {
    "allow_auto_create_topics": Checked(
        TRUE_OR_FALSE,
        'the text "false" counts as true: brokers then create repartition topics, with their own'
        " partition counts",
    ),
    "auto_offset_reset": Checked(
        _choice("earliest", "latest", "none"),
        "other texts count as none or latest: a task without a commit never begins, or skips"
        " records",
    ),
    "enable_auto_commit": Checked(
        TRUE_OR_FALSE,
        'the text "false" counts as true: offsets of records are committed that no task has'
        " processed",
    ),
    "group_instance_id": Checked(_TEXT, "the process id of a static member follows from it"),
    "heartbeat_interval_ms": Checked(
        _FROM_ONE, "the coordinator removes a member without heartbeats"
    ),
    "isolation_level": Checked(
        _choice("read_uncommitted", "read_committed"),
        "records of aborted transactions are processed",
    ),
    "key_deserializer": Checked(_FUNCTION, _UNPROCESSED),
    "max_poll_interval_ms": Checked(_FROM_ONE, "poll loops and `health` divide their time by it"),
    "max_poll_records": Checked(_FROM_ONE, "polls without records never end"),
    "rebalance_timeout_ms": Checked(
        _FROM_ONE, "the coordinator refuses the member in each rebalance"
    ),
    "request_timeout_ms": Checked(
        _FROM_ONE, "waits for commits and for the end of a consumer use it"
    ),
    "security_protocol": Checked(
        _choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        "other texts count as PLAINTEXT, for all connections of the member",
    ),
    "session_timeout_ms": Checked(
        _FROM_ONE, "heartbeats and the times of a silent broker follow from it"
    ),
    "ssl_cafile": Checked(_FILE, _NO_TLS),
    "ssl_certfile": Checked(_FILE, _NO_TLS),
    "ssl_context": Checked(
        optional(
            Kind("an instance of SSLContext", lambda value: isinstance(value, SSLContext)),
            "{} or None",
        ),
        _NO_TLS,
    ),
    "ssl_crlfile": Checked(_FILE, _NO_TLS),
    "ssl_keyfile": Checked(_FILE, _NO_TLS),
    "value_deserializer": Checked(_FUNCTION, _UNPROCESSED),
}


def split_keywords(
    keywords: Mapping[str, Any], *, client: Mapping[str, object], fixed: Mapping[str, str]
) -> tuple[MemberKeywords, dict[str, Any]]:
    """Return the options of an assignor among keywords, and the settings of its client.

    Without `heartbeat_interval_ms`, that is at most a third of a given `session_timeout_ms`.

    Args:
        keywords: as a user gave them.
        client: the client's settings, with their defaults.
        fixed: names that cannot be given -> why, or what to give.

    Raises:
        ConfigError: a name is neither, or cannot be given; a setting of `CHECKED_SETTINGS` has a
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
        if name in CHECKED_SETTINGS and value is not client[name]:
            check_kind(name, value, CHECKED_SETTINGS[name].kind)
        if isinstance(value, str) and has_half_pair(value):
            raise refused(name, value, "a text that UTF-8 can encode")
    session_ms, default_ms = settings.get("session_timeout_ms"), client["heartbeat_interval_ms"]
    if session_ms is not None and "heartbeat_interval_ms" not in settings:
        settings["heartbeat_interval_ms"] = max(1, min(cast("int", default_ms), session_ms // 3))
    _check_times({**client, **settings})
    return cast("MemberKeywords", options), settings


def _check_times(effective: Mapping[str, Any]) -> None:
    checks = (
        (heartbeat_problem, ("heartbeat_interval_ms", "session_timeout_ms")),
        (poll_interval_problem, ("max_poll_interval_ms", "heartbeat_interval_ms")),
    )
    for problem, names in checks:
        if why := problem(*((name, effective.get(name)) for name in names)):
            raise ConfigError(why)


def heartbeat_problem(interval: tuple[str, int | None], session: tuple[str, int | None]) -> str:
    """Return why a member with these two settings, (name, ms), cannot stay in a group, or "".

    >>> heartbeat_problem(("heartbeat_interval_ms", 9), ("session_timeout_ms", 9))
    'heartbeat_interval_ms=9 is not below session_timeout_ms=9; give at most a third of it'
    """
    (name, interval_ms), (limit, session_ms) = interval, session
    if interval_ms is None or session_ms is None or interval_ms < session_ms:
        return ""
    return f"{name}={interval_ms} is not below {limit}={session_ms}; give at most a third of it"


def poll_interval_problem(poll: tuple[str, int | None], beat: tuple[str, int | None]) -> str:
    """Return why a member with these two settings, (name, ms), may never join, or "".

    >>> poll_interval_problem(("max_poll_interval_ms", 8), ("heartbeat_interval_ms", 9))
    'max_poll_interval_ms=8 is below heartbeat_interval_ms=9; give the longest time between polls'
    """
    (name, poll_ms), (limit, beat_ms) = poll, beat
    if poll_ms is None or beat_ms is None or poll_ms >= beat_ms:
        return ""
    return f"{name}={poll_ms} is below {limit}={beat_ms}; give the longest time between polls"
