"""Read the usual problem into columns at once, without an object for each task and client.

A problem with anything that `read_problem` rejects, warns about or reads in another way is left to
it: every message comes from there. For all others the state is the same, column by column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from assignor import AssignmentConfig, GroupState
from assignor.config import config_from_mapping
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY, lag_warnings
from encoding import RebalanceError, TaskId

_KEYS: Final = frozenset(
    {"name", "config", "topics", "subtopologies", "end_offset_sums", "clients", "note"}
)
_TOPIC_KEYS: Final = frozenset({"partitions"})
_PART_KEYS: Final = frozenset({"sources", "changelogs"})
_CLIENT_KEYS: Final = frozenset({"threads", "rack", "tags", "active", "standby", "lags"}) | {
    *("consumers", "endpoint", "client", "versions")
}
_LAG_BY_WORD: Final = {"running": LAG_RUNNING, "unknown": LAG_UNKNOWN}
_DIGITS_MAX, _THREADS_MAX, _TASKS_MAX = 9, 10**6, 20_000
# Groups of one shape share their task ids; an entry takes some megabytes at most.
_SHAPES = 16
_Ints = npt.NDArray[np.int64]
_Json = Mapping[str, Any]
_Frozen = tuple[tuple[str, type, object], ...]


class _Unusual(Exception):
    """The problem is one for `read_problem`."""


def quick_state(data: _Json, settings: _Json) -> GroupState | None:
    """The state that `read_problem` reads from a usual problem; None for any other.

    Args:
        data: the JSON object.
        settings: override the settings of the problem.
    """
    try:
        return _state(data, settings)
    # Values of other types than usual; `read_problem` names them.
    except (_Unusual, KeyError, TypeError, AttributeError, ValueError, OverflowError):
        return None
    except RebalanceError:
        return None


def _state(data: _Json, settings: _Json) -> GroupState:
    _need(data.keys() <= _KEYS and type(data.get("name", "")) is str)
    config = _config(_frozen(_object(data, "config")), _frozen(settings))
    shape = _shape(_widths(data["topics"], data["subtopologies"]))
    index, count = shape.index, len(shape.tasks)
    given = sorted(data["clients"].items())
    _need(len(given) > 0)
    clients = _clients([client for _, client in given], index, count)
    ends = np.full(count, LAG_UNKNOWN, dtype=np.int64)
    sums = _object(data, "end_offset_sums")
    values = list(sums.values())
    _need(all(type(value) is int and 0 <= value < LAG_UNKNOWN for value in values))
    ends[[index[name] for name in sums]] = values
    state = GroupState(
        tasks=shape.tasks,
        stateful=shape.stateful.copy(),
        subtopology=shape.subtopology.copy(),
        clients=tuple([name for name, _ in given]),
        end_offset_sums=ends,
        config=config,
        **clients,
    )
    warnings = lag_warnings(state)
    return replace(state, warnings=warnings) if warnings else state


def _need(usual: bool) -> None:  # noqa: FBT001 a condition
    if not usual:
        raise _Unusual


def _object(data: _Json, key: str) -> dict[str, Any]:
    value = data.get(key)
    _need(value is None or type(value) is dict)
    return value or {}


def _list(data: _Json, key: str) -> list[Any]:
    value = data.get(key)
    _need(value is None or type(value) is list)
    return value or []


def _frozen(settings: _Json) -> _Frozen:
    """Settings as a key of a cache; with the types, because 1, 1.0 and true are equal."""
    return tuple(
        (key, type(value), tuple(value) if type(value) is list else value)
        for key, value in sorted(settings.items())
    )


@lru_cache(maxsize=256)
def _config(own: _Frozen, settings: _Frozen) -> AssignmentConfig:
    merged = {key: value for key, _, value in own if value is not None}
    for key, kind, _ in (*own, *settings):
        _need(key != "rack.aware.assignment.tags" or kind in (list, tuple))
    return config_from_mapping(merged | {key: value for key, _, value in settings})


def _widths(topics: _Json, parts: _Json) -> tuple[tuple[int, int, int], ...]:
    """Each subtopology's number, tasks, and how many of these have a changelog partition."""
    counts = {}
    for name, topic in topics.items():
        count = topic["partitions"]
        _need(topic.keys() <= _TOPIC_KEYS and type(count) is int and 0 <= count <= _TASKS_MAX)
        counts[name] = count
    widths = []
    for number, part in parts.items():
        _need(part.keys() <= _PART_KEYS and number.isascii() and number.isdigit())
        _need(len(number) <= _DIGITS_MAX and (number == "0" or number[0] != "0"))
        sources, logs = _list(part, "sources"), _list(part, "changelogs")
        _need(all(type(name) is str for name in logs))
        width = max((counts[name] for name in sources), default=0)
        # A changelog topic with an unknown number of partitions has one for every task.
        logged = max((counts.get(log, width) for log in logs), default=0)
        widths.append((int(number), width, logged))
    _need(sum(width for _, width, _ in widths) <= _TASKS_MAX)
    return tuple(sorted(widths))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """The tasks of groups with equal widths, and the number of each by its name."""

    tasks: tuple[TaskId, ...]
    index: dict[str, int]
    stateful: npt.NDArray[np.bool_]
    subtopology: _Ints


@lru_cache(maxsize=_SHAPES)
def _shape(widths: tuple[tuple[int, int, int], ...]) -> _Shape:
    tasks = tuple(TaskId(number, part) for number, width, _ in widths for part in range(width))
    stateful = [part < logged for _, width, logged in widths for part in range(width)]
    return _Shape(
        tasks=tasks,
        index={str(task): place for place, task in enumerate(tasks)},
        stateful=np.array(stateful, dtype=np.bool_),
        subtopology=np.array([task.subtopology for task in tasks], dtype=np.int64),
    )


def _clients(given: Sequence[_Json], index: Mapping[str, int], tasks: int) -> dict[str, Any]:
    """The columns of clients, owners and copies."""
    threads: list[int] = []
    racks: list[str | None] = []
    tags: list[tuple[tuple[str, str], ...]] = []
    active: list[int] = []
    held: list[int] = []
    lags: list[Any] = []
    actives: list[int] = []
    copies: list[int] = []
    left_over: list[tuple[int, int]] = []
    for number, client in enumerate(given):
        _need(client.keys() <= _CLIENT_KEYS)
        threads.append(client.get("threads", 1))
        rack = client.get("rack")
        _need(rack is None or type(rack) is str)
        racks.append(rack or None)
        tags.append(tuple(sorted(_object(client, "tags").items())))
        own_tasks = [index[name] for name in _list(client, "active")]
        standby = {index[name] for name in _list(client, "standby")}
        _need(standby.isdisjoint(own_tasks))
        reported = _object(client, "lags")
        copies_here = [index[name] for name in reported]
        left = set(copies_here).difference(own_tasks, standby)
        left_over += [(task, number) for task in left]
        active += own_tasks
        actives.append(len(own_tasks))
        held += copies_here
        lags += reported.values()
        copies.append(len(reported))
    _need(all(type(count) is int and 0 <= count <= _THREADS_MAX for count in threads))
    _need(all(type(value) is str for pairs in tags for _, value in pairs))
    numbers = np.arange(len(given))
    owner = _owners(active, np.repeat(numbers, actives), tasks)
    return {
        "threads": np.array(threads, dtype=np.int64),
        "racks": tuple(racks),
        "tags": tuple(tags),
        "owner": owner,
        "left_over": tuple(sorted(left_over)),
        **_copies(held, np.repeat(numbers, copies), lags, owner),
    }


def _owners(active: list[int], clients: _Ints, tasks: int) -> _Ints:
    owner = np.full(tasks, NOBODY, dtype=np.int64)
    owner[active] = clients
    # A task that is active twice is an error.
    _need(int((owner != NOBODY).sum()) == len(active))
    return owner


def _copies(
    held: list[int], clients: _Ints, lags: list[Any], owner: _Ints
) -> dict[str, npt.NDArray[Any]]:
    """The columns of copies, by task and client."""
    coded = [lag if type(lag) is int else _LAG_BY_WORD[lag] for lag in lags]
    lag = np.array(coded, dtype=np.int64)
    _need(int((lag < 0).sum()) == lags.count("running"))
    _need(int((lag == LAG_UNKNOWN).sum()) == lags.count("unknown"))
    task, tasks = np.array(held, dtype=np.int64), len(owner)
    is_running = lag == LAG_RUNNING
    # A task that runs on two clients by their lags is an error, too.
    owners = owner.copy()
    owners[task[is_running]] = clients[is_running]
    _need(bool((owners[task[is_running]] == clients[is_running]).all()))
    _need(bool(((owner == NOBODY) | (owner == owners)).all()))
    order = np.argsort(task, kind="stable")
    starts = np.zeros(tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(task, minlength=tasks), out=starts[1:])
    return {
        "copy_start": starts,
        "copy_client": clients[order].astype(np.int64),
        "copy_lag": lag[order],
        "copy_stalled": np.zeros(len(lag), dtype=np.bool_),
    }
