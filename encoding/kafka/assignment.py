"""Encode and decode assignment blobs of every version: the leader's answer to one member.

``schema`` defines Kafka's layouts; this module gives their fields a meaning. ``native`` reads and
writes bodies of version 101 and up, and trailers behind Kafka's fields. Of a trailer, only error
code and next rebalance time replace Kafka's fields, because low versions do not carry them.

The host maps are equal for all members and by far the largest part. Their bytes are written once
per layout and kept with the ``PartitionsByHost`` value: share these two values among the
assignments of all members, then each further member costs its own tasks only.

Decoding follows Kafka Streams 3.9, with two checks of 4.3: a negative number of hosts and a host
map with a topic number that the dictionary lacks are refused.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, cast

import numpy as np

from encoding import native
from encoding.kafka.compiled import reader, readers_of, writers_of
from encoding.kafka.schema import (
    ASSIGNMENT,
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    STRUCTURES,
    Field,
    rows_of,
)
from encoding.kafka.values import Assignment
from encoding.native import EARLIEST_NATIVE_VERSION
from encoding.primitives import (
    NO_REBALANCE,
    UNKNOWN_VERSION,
    DecodeError,
    EncodeError,
    HostInfo,
    PartitionsByHost,
    PartitionsByTask,
    TaskId,
    TopicPartition,
)

_NAME = "assignment"
_KIND = f"{_NAME} "
_VERSION = reader(Field("version", "int32"), 0, _KIND)
_COMMON = reader(Field("commonly_supported_version", "int32"), 0, _KIND)
ServedByHost = Mapping[HostInfo, tuple[TopicPartition, ...]]
_NO_TASKS = PartitionsByTask()


def encode_assignment(value: Assignment) -> bytes:
    """Bytes of an assignment in its own version, equal for equal values.

    Fields that the version does not carry are dropped, as Kafka does; a native part is appended
    as a trailer.

    Raises:
        EncodeError: unknown version, a topology name below version 10, or a value that does not
            fit its field.
    """
    if value.version >= EARLIEST_NATIVE_VERSION:
        common = value.commonly_supported_version
        return native.write_blob(_NAME, value.version, common, value, value.native)
    plan = _PLANS.get(value.version)
    if plan is None:
        known = ", ".join(str(version) for version in KNOWN_VERSIONS)
        raise EncodeError("version", value.version, None, f"known versions are {known}")
    parts: list[Any] = []
    for wire_value, write in plan.own:
        write(wire_value(value), parts)
    if plan.shared:
        parts.append(_shared_bytes(plan, value))
    for wire_value, write in plan.tail:
        write(wire_value(value), parts)
    extras = value.native
    if extras is not None:
        common = extras.commonly_supported_version
        parts.append(native.write_trailer(_NAME, value, extras, common))
    return b"".join(parts)


def host_map_bytes(value: Assignment) -> int:
    """Return how many bytes the host maps add to an assignment in a Kafka version."""
    return len(_shared_bytes(_PLANS[value.version], value)) - _empty_host_bytes(value.version)


@cache
def _empty_host_bytes(version: int) -> int:
    return len(_shared_bytes(_PLANS[version], Assignment(version=version)))


def decode_assignment(data: bytes, known_versions: Collection[int] = KNOWN_VERSIONS) -> Assignment:
    """Value of an assignment blob; bytes behind its last field are ignored, as in Kafka.

    Args:
        data: user data from the leader.
        known_versions: versions that this reader knows; pass others to emulate another reader. A
            later native version is still read if its body allows this reader. A reader without
            native versions ignores trailers.

    Raises:
        DecodeError: an unknown version or any other invalid input; nothing else is raised.
    """
    return read_assignment(data, known_versions)[0]


def read_assignment(
    data: bytes, known_versions: Collection[int] = KNOWN_VERSIONS
) -> tuple[Assignment, int]:
    """As ``decode_assignment``, with the offset at which Kafka's fields end."""
    data = bytes(data)
    version, offset = _VERSION(data, 0)
    if version >= EARLIEST_NATIVE_VERSION:
        return _native_as_read(version, data, known_versions), len(data)
    plan = _PLANS.get(version) if version in known_versions else None
    if plan is None:
        raise _unknown(version, data)
    fields: dict[str, Any] = {}
    for name, read in plan.readers:
        fields[name], offset = read(data, offset)
    topics = None if "topics" not in fields else dict(fields["topics"])
    extras, native_body = native.read_trailer(_NAME, data, offset, known_versions)
    native_body = fields if native_body is None else native_body
    try:
        assignment = Assignment(
            version=version,
            commonly_supported_version=fields.get("commonly_supported_version", UNKNOWN_VERSION),
            active_tasks=tuple(
                TaskId(task[0], task[1], _name(task)) for task in _rows(fields["active_tasks"])
            ),
            standby_tasks=_standby_as_read(fields["standby_tasks"]),
            partitions_by_host=_hosts_as_read(fields.get("partitions_by_host"), topics),
            standby_partitions_by_host=_hosts_as_read(
                fields.get("standby_partitions_by_host"), topics
            ),
            error_code=native_body.get("error_code", 0),
            next_rebalance_ms=native_body.get("next_rebalance_ms", NO_REBALANCE),
            native=extras,
        )
    except KeyError as missing:
        what = f"assignment names topic number {missing}, which its dictionary lacks"
        raise DecodeError(what, offset=offset, version=version, available=len(data)) from None
    return assignment, offset


def _unknown(version: int, data: bytes) -> DecodeError:
    what = f"assignment is in version {version}, which this reader does not know"
    return DecodeError(what, offset=0, version=version, available=len(data))


def _native_as_read(version: int, data: bytes, known_versions: Collection[int]) -> Assignment:
    latest = native.latest_native_version(known_versions)
    if latest is None:
        raise _unknown(version, data)
    common, offset = _COMMON(data, 4)
    body = native.read_body(_NAME, data, offset, version, latest)
    if body is None:
        raise _unknown(version, data)
    standby = body.outer.pop("standby_tasks", ())
    return Assignment(
        version=version,
        commonly_supported_version=common,
        standby_tasks=PartitionsByTask.without_partitions(standby),
        native=native.extras_of(_NAME, version, common, body.extras),
        **body.outer,
    )


def _shared_bytes(plan: "_Plan", value: Assignment) -> bytes:
    # Assignment turns every other mapping into these.
    hosts = cast("PartitionsByHost", value.partitions_by_host)
    standby = cast("PartitionsByHost", value.standby_partitions_by_host)
    data = hosts.written(plan.layout, standby)
    if data is None:
        parts: list[Any] = []
        for wire_value, write in plan.shared:
            write(wire_value(value), parts)
        data = b"".join(parts)
        hosts.keep(plan.layout, standby, data)
    return data


# Meaning of each row for writing.


def _named(task: TaskId, path: str, version: int) -> TaskId:
    if task.topology_name is not None and not _HAS_NAMES[version]:
        reason = "topology names exist from version 10 on; write at least that version"
        raise EncodeError(f"{path}.topology_name", task.topology_name, version, reason)
    return task


def _active_for_writing(value: Assignment) -> Any:
    tasks, version = value.active_tasks, value.version
    if _HAS_NAMES[version]:
        return tasks
    return [_named(task, "active_tasks", version)[:2] for task in tasks]


def _standby_for_writing(value: Assignment) -> Any:
    version = value.version
    width = 3 if _HAS_NAMES[version] else 2
    return [
        (*_named(task, "standby_tasks", version)[:width], partitions)
        for task, partitions in value.standby_tasks.items()
    ]


def _plain(partitions: ServedByHost) -> Any:
    return [(host, port, served) for (host, port), served in partitions.items()]


def _topics_of(value: Assignment) -> list[str]:
    """Topics of the dictionary in order: of the active map, and of the standby map if carried."""
    maps: Iterable[ServedByHost] = (value.partitions_by_host,)
    if _HAS_STANDBY_HOSTS[value.version]:
        maps = (value.partitions_by_host, value.standby_partitions_by_host)
    return sorted({served.topic for hosts in maps for all_ in hosts.values() for served in all_})


def _indexed(value: Assignment, partitions: ServedByHost) -> Any:
    index = {topic: number for number, topic in enumerate(_topics_of(value))}
    return [
        (host, port, [(index[topic], number) for topic, number in served])
        for (host, port), served in partitions.items()
    ]


_FOR_WRITING: dict[tuple[str, str], Callable[[Assignment], Any]] = {
    ("active_tasks", "[]assigned_task"): _active_for_writing,
    ("standby_tasks", "[]standby_task"): _standby_for_writing,
    ("partitions_by_host", "[]host_partitions"): lambda value: _plain(value.partitions_by_host),
    ("topics", "[]topic_entry"): lambda value: list(enumerate(_topics_of(value))),
    ("partitions_by_host", "[]host_indexes"): lambda value: _indexed(
        value, value.partitions_by_host
    ),
    ("standby_partitions_by_host", "[]host_indexes"): lambda value: _indexed(
        value, value.standby_partitions_by_host
    ),
}


# Meaning of each row as read.


def _rows(rows: Any) -> Any:
    return rows.tolist() if isinstance(rows, np.ndarray) else rows


def _name(task: Any) -> str | None:
    """Topology name of a row; a number in its place is the length of an absent name."""
    name = task[2] if len(task) > 2 else None  # noqa: PLR2004 a third column
    return name if isinstance(name, str) else None


def _standby_as_read(rows: Any) -> PartitionsByTask:
    if not len(rows):
        return _NO_TASKS
    return PartitionsByTask((task, partitions) for *task, partitions in rows)


def _hosts_as_read(rows: Any, topics: dict[int, str] | None) -> PartitionsByHost:
    if not rows:
        return PartitionsByHost()
    if topics is None:
        return PartitionsByHost(((host, port), served) for host, port, served in rows)
    return PartitionsByHost(
        (
            HostInfo(host, port),
            [TopicPartition(topics[index], number) for index, number in served.tolist()],
        )
        for host, port, served in rows
    )


class _Plan:
    """Readers and writers of one version; writers split into own part, shared part, tail."""

    __slots__ = ("layout", "own", "readers", "shared", "tail")

    def __init__(self, version: int) -> None:
        rows = tuple(rows_of(ASSIGNMENT, version))
        self.readers = readers_of(ASSIGNMENT, version, _KIND)
        pairs = writers_of(ASSIGNMENT, version, _FOR_WRITING)
        marks = [row.shared for row in rows]
        start = marks.index(True) if any(marks) else len(rows)
        stop = start + sum(marks)
        self.own, self.shared, self.tail = pairs[:start], pairs[start:stop], pairs[stop:]
        # Versions whose shared rows are the same share the kept bytes.
        self.layout = rows[start:stop]


_PLANS = {version: _Plan(version) for version in KAFKA_VERSIONS}
_HAS_NAMES = {
    version: any(
        row.name == "topology_name" for row in rows_of(STRUCTURES["assigned_task"], version)
    )
    for version in KAFKA_VERSIONS
}
_HAS_STANDBY_HOSTS = {
    version: any(row.name == "standby_partitions_by_host" for row in rows_of(ASSIGNMENT, version))
    for version in KAFKA_VERSIONS
}
