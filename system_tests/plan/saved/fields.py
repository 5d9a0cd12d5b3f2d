"""The fields of a saved group that a plan reads, each checked once.

`read_problem` checks those of every problem file; the others are checked here. `assignor inspect
--save` writes all of them, and an operator may have edited them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assignor.problems import (
    INSTANCES_KEY,
    PROTOCOL_KEY,
    TOPOLOGY_VERSION_KEY,
    UNATTRIBUTED_KEY,
    Problem,
    ProblemError,
    object_at,
    quoted,
    read_problem,
    texts_at,
)
from assignor.topology import HIGHEST_VERSION
from encoding import shown
from encoding.primitives import has_half_pair
from system_tests.plan.saved.member_releases import client_releases

MOST_RECORDS: Final = 10**13
"""Records of the changelogs of one task: years of restoring. A larger number is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedClient:
    """A process of a saved group.

    Attributes:
        name: of the client, with its process id if another client has the same name.
        releases: names of the releases that match what all its threads wrote; empty if unknown.
        is_static: its threads have a group.instance.id.
    """

    name: str
    releases: frozenset[str]
    is_static: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFields:
    """The checked fields of a saved group.

    Attributes:
        problem: name, state of the group, settings.
        clients: sorted by process id.
        records: task -> records of its changelogs, as far as known.
        sources, changelogs: number of a subtopology -> topics.
        loose: changelog of an unknown task -> its records, or None.
        topology_version: the highest one that a member runs.
        is_streams_group: its brokers assign the tasks (KIP-1071).
    """

    problem: Problem
    clients: tuple[SavedClient, ...]
    records: Mapping[str, int]
    sources: Mapping[int, tuple[str, ...]]
    changelogs: Mapping[int, tuple[str, ...]]
    loose: Mapping[str, int | None]
    topology_version: int
    is_streams_group: bool


def checked_fields(data: Mapping[str, Any]) -> SavedFields:
    """Return the fields of a saved group.

    Raises:
        RebalanceError: a field has a wrong type or an impossible value, or a text of it is none
            that Kafka can have; the message names the field.
    """
    _check_texts(data)
    problem = read_problem(data)
    records = dict(object_at(data, "end_offset_sums"))
    for task, size in records.items():
        _check_records(f"end_offset_sums of task {task}", size, "for each task")
    parts = object_at(data, "subtopologies").items()
    return SavedFields(
        problem=problem,
        clients=tuple(_clients(object_at(data, "clients"))),
        records=records,
        sources={int(n): _topics(part, "sources", n) for n, part in parts},
        changelogs={int(n): _topics(part, "changelogs", n) for n, part in parts},
        loose=_loose_changelogs(data.get(UNATTRIBUTED_KEY)),
        topology_version=_topology_version(data.get(TOPOLOGY_VERSION_KEY, 1)),
        is_streams_group=data.get(PROTOCOL_KEY) == "streams",
    )


def _check_texts(data: Mapping[str, Any]) -> None:
    """Check that no text has half a surrogate pair: Kafka's texts are UTF-8, which has none.

    Raises:
        ProblemError: a key or a value has; names the key of the file.
    """
    for key, values in data.items():
        left: list[object] = [key, values]
        while left:
            value = left.pop()
            if isinstance(value, dict):
                left += [*value, *value.values()]
            elif isinstance(value, list):
                left += value
            elif isinstance(value, str) and has_half_pair(value):
                raise ProblemError(
                    f"{shown(key)} has {quoted(value)}: half a surrogate pair, which UTF-8 cannot"
                    " encode; give a valid text"
                )


def _clients(rows: Mapping[str, Any]) -> Iterator[SavedClient]:
    """Yield the clients of a group, each with another name."""
    names = {process: _client_name(process, row) for process, row in rows.items()}
    counts = Counter(names.values())
    for process, row in sorted(rows.items()):
        name = names[process]
        where = f"client {shown(name)}"
        yield SavedClient(
            name=f"{name} ({process})" if counts[name] > 1 else name,
            releases=client_releases(name, row),
            is_static=bool(texts_at(row, INSTANCES_KEY, where)),
        )


def _client_name(process: str, row: Mapping[str, Any]) -> str:
    name = row.get("client")
    if name is not None and not isinstance(name, str):
        raise ProblemError(
            f"client {shown(process)} has client {quoted(name)}; give its name, or leave it out"
        )
    return name or process


def _topics(part: Mapping[str, Any], key: str, number: str) -> tuple[str, ...]:
    return tuple(sorted({*texts_at(part, key, f"subtopology {number}")}))


def _loose_changelogs(found: object) -> dict[str, int | None]:
    """Return the changelogs whose tasks a file does not know, and their records if known."""
    if found is None:
        return {}
    values = found.values() if isinstance(found, dict) else (found,)
    is_valid = all(value is None or (type(value) is int and value >= 0) for value in values)
    if not isinstance(found, dict) or not is_valid:
        raise ProblemError(
            f"{UNATTRIBUTED_KEY} is {quoted(found)}; give an object of topics and their records"
        )
    for topic, size in found.items():
        _check_records(f"{UNATTRIBUTED_KEY}: {shown(topic)}", size or 0, "for each changelog")
    return found


def _check_records(where: str, size: int, each: str) -> None:
    """Check that state can be restored within years."""
    if size > MOST_RECORDS:
        raise ProblemError(
            f"{where} is {size:,} records; plan takes up to {MOST_RECORDS:,} {each}: correct the"
            " file"
        )


def _topology_version(value: object) -> int:
    if type(value) is int and 1 <= value <= HIGHEST_VERSION:
        return value
    what = f"{TOPOLOGY_VERSION_KEY} is {quoted(value)}"
    raise ProblemError(f"{what}; give a number from 1 to {HIGHEST_VERSION}")
