"""Keywords of a `StreamsAssignor` and of `streams_consumer`: their types, and who takes which.

The clients take most wrong values without a word: kafka-python reads `auto_offset_reset="earlyest"`
as "none", and `security_protocol="SSL "` as PLAINTEXT. So the declared types of their settings are
checked here.
"""

import difflib
import os.path
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Literal, TypedDict, Union, cast, get_args, get_origin
from uuid import UUID

from assignor.adapters.membership.options import option_fields
from assignor.config import refused, unknown_setting
from assignor.embedding import InternalTopicSettings
from assignor.errors import ConfigError
from assignor.levels import LevelSource
from assignor.observe import Observer, RebalanceHook
from assignor.placement import Strategy
from assignor.rebalance import TasksListener
from encoding.primitives import has_half_pair

_MOST: Final = 80  # characters of a value that are compared with choices
_INT: Final = 2**31 - 1
_FILES: Final = frozenset({"ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile"})
_HEARTBEAT: Final = ("heartbeat_interval_ms", "session_timeout_ms")
_POLL_INTERVAL: Final = ("max_poll_interval_ms", "heartbeat_interval_ms")

FromZero = Annotated[int, 0]
"""A whole number, 0 or more, that Kafka's `int` can be."""
FromOne = Annotated[int, 1]
"""A whole number, 1 or more, that Kafka's `int` can be."""
_NAMES: Final[Mapping[Any, str]] = MappingProxyType(
    {
        bool: "True or False",
        float: "a number",
        str: "a text",
        Callable: "a function",
        Sequence: "a list",
        tuple: "a tuple",
        type(None): "None",
    }
)


class ApplicationMemberKeywords(TypedDict, total=False):
    """Keyword options of a member whose listener is its state stores, as type checkers see them.

    Meanings and defaults are those of the groups in `MemberOptions` and, for the last eight, of
    `assignor.AssignmentConfig`; a test compares names and types.
    """

    process_id: UUID | None
    endpoint: str | None
    client_tags: Mapping[str, str] | None
    rack: str | None
    upgrade_from: str | None
    start_version: Literal["latest"] | None
    rebalance_protocol: Literal["eager", "cooperative"]
    release: str
    observer: Observer | None
    hooks: Sequence[RebalanceHook] | None
    strategy: Strategy | str | None
    internal_topics: InternalTopicSettings | None
    state_dir: str | Path | None
    persistent_metadata_version: int | None
    message_format_version: int
    level_source: LevelSource | None
    level_poll_s: float
    hold_back: bool

    num_standby_replicas: int
    acceptable_recovery_lag: int
    max_warmup_replicas: int
    probing_rebalance_interval_ms: int
    rack_aware_assignment_strategy: str
    rack_aware_assignment_traffic_cost: int | None
    rack_aware_assignment_non_overlap_cost: int | None
    rack_aware_assignment_tags: Sequence[str]


class MemberKeywords(ApplicationMemberKeywords, total=False):
    """Keyword options of a member, as type checkers see them."""

    listener: TasksListener | None


def split_keywords(
    keywords: Mapping[str, Any],
    *,
    client: Mapping[str, object],
    kinds: Mapping[str, Any],
    fixed: Mapping[str, str],
) -> tuple[MemberKeywords, dict[str, Any]]:
    """Return the options of an assignor among keywords, and the settings of its client.

    Without `heartbeat_interval_ms`, that is at most a third of a given `session_timeout_ms`.

    Args:
        keywords: as a user gave them.
        client: the client's settings, with their defaults.
        kinds: setting -> its declared type; settings of a later client may be missing.
        fixed: names that cannot be given -> why, or what to give.

    Raises:
        ConfigError: a name is neither, or cannot be given; a setting of the client has a value of
            another kind, or none of those that it can have: the message names the nearest one. A
            file is missing, heartbeats are as rare as the session timeout, or polls have to be more
            frequent.
    """
    own = {option.name for option in option_fields()}
    known = {*own, *client} - fixed.keys()
    for name in sorted(keywords.keys() - known):
        if name in fixed:
            raise ConfigError(f"{name} cannot be given: {fixed[name]}")
        raise unknown_setting(name, known, listed=own)
    options = {name: value for name, value in keywords.items() if name in own}
    settings = {name: value for name, value in keywords.items() if name not in own}
    for name, value in sorted(settings.items()):
        is_switch = isinstance(client[name], bool)
        if value is not client[name]:
            _check_value(name, value, kinds.get(name, bool if is_switch else Any))
        if isinstance(value, str) and name not in _FILES and has_half_pair(value):
            raise refused(name, value, "a text that UTF-8 can encode")
        if name in _FILES and value and not os.path.isfile(value):  # noqa: PTH113 no error
            raise refused(name, value, "the path of a file that exists")
    session_ms, default_ms = settings.get("session_timeout_ms"), client["heartbeat_interval_ms"]
    if session_ms is not None and "heartbeat_interval_ms" not in settings:
        settings["heartbeat_interval_ms"] = max(1, min(default_ms, session_ms // 3))
    effective = {**client, **settings}
    checks = ((heartbeat_problem, _HEARTBEAT), (poll_interval_problem, _POLL_INTERVAL))
    for problem, names in checks:
        if why := problem(*((name, effective.get(name)) for name in names)):
            raise ConfigError(why)
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


def poll_interval_problem(poll: tuple[str, int | None], beat: tuple[str, int | None]) -> str:
    """Return why a member with these two settings, (name, ms), may never join, or "".

    >>> poll_interval_problem(("max_poll_interval_ms", 8), ("heartbeat_interval_ms", 9))
    'max_poll_interval_ms=8 is below heartbeat_interval_ms=9; give the longest time between polls'
    """
    (name, poll_ms), (limit, beat_ms) = poll, beat
    if poll_ms is None or beat_ms is None or poll_ms >= beat_ms:
        return ""
    return f"{name}={poll_ms} is below {limit}={beat_ms}; give the longest time between polls"


def _check_value(name: str, value: object, kind: Any) -> None:
    """Check a setting against its declared type."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if any(_is_of(value, each) for each in kinds):
        return
    choices = [choice for each in kinds if get_origin(each) is Literal for choice in get_args(each)]
    # The case of Kafka's own names differs from setting to setting.
    by_text = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(value)[:_MOST].strip().lower(), by_text, n=1)
    names = [repr(choice) for choice in choices]
    names += [_name_of(each) for each in kinds if get_origin(each) is not Literal]
    wanted = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    hint = f"{by_text[near[0]]!r}, the nearest of {wanted}" if near else wanted
    raise refused(name, value, hint)


def _is_of(value: object, kind: Any) -> bool:
    """Return whether a value is of a declared type; `Any` is not checked."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        return is_whole and arguments[1] <= value <= _INT  # type: ignore[operator] # a number
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is float:
        return not isinstance(value, bool) and isinstance(value, Real) and not isnan(value)
    if origin is Callable:
        return callable(value)
    if origin is Sequence and isinstance(value, str):
        return False
    return origin is Any or isinstance(value, origin)


def _name_of(kind: Any) -> str:
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return f"a whole number, {arguments[1]} to {_INT}"
    return _NAMES.get(origin) or f"an instance of {origin.__name__}"
