"""Settings of the assignor, with Kafka's names, defaults and ranges.

Files and Kafka-style dictionaries use Kafka's dotted names, Python code uses keyword names. For an
unknown name the error message suggests the nearest known one.
"""

import difflib
import inspect
import json
from collections.abc import AsyncGenerator, Collection, Coroutine, Generator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from assignor.errors import ConfigError
from assignor.option_fields import Kind, described, option, option_text, optional, whole
from encoding import shown

_NAME_MOST = 80  # characters of an unknown name in an error
_STRATEGIES = ("none", "min_traffic", "balance_subtopology")


_INT, _LONG = 2**31 - 1, 2**63 - 1  # the largest values of Java's int and long
_COST = optional(whole(0), "null or {}")


def _are_tags(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) <= 5  # noqa: PLR2004 KIP-708's limit
        and all(isinstance(key, str) and 0 < len(key) <= 20 for key in value)  # noqa: PLR2004 too
    )


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentConfig:
    """Settings of an assignment strategy (Kafka Streams' settings with the same names)."""

    num_standby_replicas: int = option(
        0,
        "standby replicas of each stateful task.",
        whole(0, _INT),
        # More processes than a group has: a larger number is a mistake.
        of_member=whole(0, 10_000),
    )
    acceptable_recovery_lag: int = option(
        10_000,
        "largest lag of a copy that counts as caught up, in offsets.",
        whole(0, _LONG, of="a whole number of offsets"),
    )
    max_warmup_replicas: int = option(
        2, "most warm-up replicas in the whole group.", whole(1, _INT)
    )
    probing_rebalance_interval_ms: int = option(
        600_000, "time until the next probing rebalance.", whole(60_000, _LONG, of="milliseconds")
    )
    rack_aware_assignment_strategy: str = option(
        "none",
        "how tasks are placed by racks (KIP-925).",
        Kind(f"one of {', '.join(_STRATEGIES)}", _STRATEGIES.__contains__),
    )
    rack_aware_assignment_traffic_cost: int | None = option(
        None, "cost of cross-rack traffic; None: the strategy's default.", _COST
    )
    rack_aware_assignment_non_overlap_cost: int | None = option(
        None, "cost of moving a task; None: the strategy's default.", _COST
    )
    rack_aware_assignment_tags: tuple[str, ...] = option(
        (),
        "tag keys by which standbys are spread (KIP-708).",
        Kind("at most 5 keys of 1 to 20 characters", _are_tags),
    )

    def __post_init__(self) -> None:
        """Check all values.

        Raises:
            ConfigError: a value is out of range; the message names setting, value and range.
        """
        for setting in fields(self):
            value, kind = getattr(self, setting.name), option_text(setting).kind
            if kind is not None and not kind.accepts(value):
                name = dotted(setting.name)
                raise ConfigError(f"{name} = {_given(value)} is not allowed: {kind.words}")

    def with_rack_costs(self, *, traffic: int, non_overlap: int) -> "AssignmentConfig":
        """Return the settings with these rack costs in place of None (KIP-925)."""
        given = self.rack_aware_assignment_traffic_cost
        other = self.rack_aware_assignment_non_overlap_cost
        return replace(
            self,
            rack_aware_assignment_traffic_cost=traffic if given is None else given,
            rack_aware_assignment_non_overlap_cost=non_overlap if other is None else other,
        )


def _given(value: object) -> str:
    """Return a value for a message, on one line and cut."""
    try:
        return shown(repr(value))
    except ValueError:  # the number has more than sys.get_int_max_str_digits() digits
        return "a number with thousands of digits"


# Parts of Kafka's names that have underscores.
_KEPT = {"traffic_cost", "non_overlap_cost"}


def dotted(name: str) -> str:
    """Return Kafka's name of a setting.

    >>> dotted("rack_aware_assignment_traffic_cost")
    'rack.aware.assignment.traffic_cost'
    """
    for kept in _KEPT:
        if name.endswith(kept):
            return name[: -len(kept)].replace("_", ".") + kept
    return name.replace("_", ".")


def takes(value: object, count: int) -> bool:
    """Return whether a call with so many positional arguments runs a value's body.

    The body of an async function or a generator does not run when it is called.

    >>> takes(len, 1), takes(lambda: 0, 1), takes("len", 1), takes(lambda each: (yield each), 1)
    (True, False, False, False)
    """
    if not callable(value) or is_deferred(value):
        return False
    try:
        signature = inspect.signature(value, follow_wrapped=False)
    except (TypeError, ValueError):  # a function of C, or a mock, that does not tell its parameters
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def is_deferred(value: object) -> bool:
    """Return whether a call of a value returns a coroutine or a generator, and runs nothing yet."""
    while type(value) is partial:  # subclasses may run what they are given
        value = value.func
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    # `inspect` asks objects that look like functions, as those of `unittest.mock` do, for flags.
    bodies = [b for b in (value, type(value).__call__) if type(b) in {FunctionType, MethodType}]
    return any(is_kind(body) for body in bodies for is_kind in kinds)


def check_handler(handle: object) -> None:
    """Check the function that processes records.

    Raises:
        ConfigError: it cannot be called with two arguments, or its body does not run then.
    """
    if not takes(handle, 2):
        raise refused("handle", handle, "a function of a record and the stores of its task")


def check_has_run(result: object) -> None:
    """Check what a call of the function that processes records returned.

    Raises:
        ConfigError: it is a coroutine or a generator, which was closed: its body has not run.
    """
    if result is None:
        return
    if isinstance(result, Coroutine | Generator):
        result.close()
    elif not isinstance(result, AsyncGenerator):
        return
    raise ConfigError(
        f"the function that processes records returned a {type(result).__name__}, whose body has "
        "not run, so the record is not processed; run it before returning, such as with asyncio.run"
    )


STATE_DIR_KIND = Kind(
    "a path that is not empty, or None",
    lambda value: (
        value is None
        or (isinstance(value, str | Path) and str(value) != "" and "\0" not in str(value))
    ),
)
"""What `state_dir` has to be, in words, and its check."""


def refused(name: str, value: object, wanted: str) -> ConfigError:
    """Return the error of an option or setting that has a wrong value, with what to give."""
    hint = ", written with def and without yield: its body has to run when it is called"
    hint = hint if callable(value) and is_deferred(value) else ""
    return ConfigError(f"{name}={shown(repr(value), limit=80)} is refused; give {wanted}{hint}")


def check_kind(name: str, value: object, kind: Kind | None) -> None:
    """Check that a value is of a kind; None: anything is.

    Raises:
        ConfigError: it is not; the message says what to give, the nearest choice first.
    """
    if kind is None or kind.accepts(value):
        return
    # The case of Kafka's own names differs from setting to setting.
    by_text = {choice.lower(): choice for choice in kind.choices}
    near = difflib.get_close_matches(str(value)[:_NAME_MOST].strip().lower(), by_text, n=1)
    hint = f"{by_text[near[0]]!r}, the nearest of {kind.words}" if near else kind.words
    raise refused(name, value, hint)


def config_from_mapping(settings: Mapping[str, Any]) -> AssignmentConfig:
    """Return the settings in a mapping with Kafka's names (dots) or Python's (underscores).

    Raises:
        ConfigError: a name is unknown, a setting is given in both spellings, or a value is out of
            range.
    """
    known = {f.name for f in fields(AssignmentConfig)}
    by_any_name = {n: n for n in known} | {dotted(n): n for n in known}
    values: dict[str, Any] = {}
    for given in sorted(settings):
        name = by_any_name.get(given)
        if name is None:
            raise unknown_setting(given, by_any_name, listed=known)
        if name in values:
            raise ConfigError(f"{dotted(name)} is also given as {name}; remove one")
        value = settings[given]
        values[name] = tuple(value) if isinstance(value, list) else value
    return AssignmentConfig(**values)


def unknown_setting(
    given: str, known: Collection[str], *, listed: Collection[str] | None = None
) -> ConfigError:
    """Return the error for a name that no setting has; it suggests a near known name, if any.

    Args:
        given: the unknown name.
        known: all known names.
        listed: names to list where none is near; default: `known`.

    >>> str(unknown_setting("listner", {"listener", "hooks"}))
    'unknown setting listner; did you mean listener?'
    """
    name = given[:_NAME_MOST]
    alike = sorted(each for each in known if each[:1] == name[:1])
    near = difflib.get_close_matches(name, alike, n=1, cutoff=0.6)
    near = near or difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    names = ", ".join(sorted(known if listed is None else listed))
    hint = f"; did you mean {near[0]}?" if near else f"; known: {names}"
    return ConfigError(f"unknown setting {shown(given, limit=_NAME_MOST)}{hint}")


def setting_value(name: str, text: str) -> Any:
    """Return a setting's value from text: JSON, else the text itself; tags are comma separated.

    >>> setting_value("num.standby.replicas", "1")
    1
    >>> setting_value("rack.aware.assignment.tags", "zone,cluster")
    ['zone', 'cluster']
    """
    if name.replace("_", ".") == "rack.aware.assignment.tags":
        return [tag for tag in text.split(",") if tag]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def setting_texts(config: AssignmentConfig) -> dict[str, str]:
    """Return Kafka's name -> text of settings that differ from the default, for `setting_value`.

    >>> setting_texts(AssignmentConfig(num_standby_replicas=1))
    {'num.standby.replicas': '1'}
    """
    texts = {}
    for setting in fields(AssignmentConfig):
        value = getattr(config, setting.name)
        if value != setting.default:
            is_list = isinstance(value, tuple)
            texts[dotted(setting.name)] = ",".join(value) if is_list else json.dumps(value)
    return texts
