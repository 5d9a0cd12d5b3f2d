"""Encode and decode subscription blobs of every version: a member's message to the group leader.

``schema`` defines Kafka's layouts; this module gives their fields a meaning. ``native`` reads and
writes bodies of version 101 and up, and trailers behind Kafka's fields. A trailer repeats Kafka's
fields and takes precedence: it carries offset sums and tags that low versions do not.

Versions 1 to 6 carry two task lists instead of offset sums. They are written from the sums (-2 to
the previous tasks, the rest to the standby tasks) and read as -2 and -3; a task in both lists is
read as -3, as in Kafka Streams since 2.6. Decoding accepts and refuses what Kafka Streams 3.9 does.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from encoding import native
from encoding.kafka.compiled import reader, readers_of, record_dtype, writers_of
from encoding.kafka.schema import (
    EARLIEST_PROBEABLE_VERSION,
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    SUBSCRIPTION,
    Field,
)
from encoding.kafka.values import FutureSubscription, Subscription
from encoding.native import EARLIEST_NATIVE_VERSION
from encoding.primitives import (
    EMPTY,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    UNKNOWN_VERSION,
    ByName,
    DecodeError,
    EncodeError,
    TaskOffsetSums,
)

_NAME = "subscription"
_KIND = f"{_NAME} "
_NO_PROCESS = UUID(int=0)
_NO_TAGS: ByName[str] = ByName()
_WITH_MEANING = {
    *("version", "latest_supported_version", "process_id", "user_endpoint"),
    *("prev_tasks", "standby_tasks", "task_offset_sums", "error_code", "client_tags"),
}
AS_READ = tuple(sorted({row.name for row in SUBSCRIPTION} - _WITH_MEANING))
"""Fields whose value is the number that is read: each is an attribute of ``Subscription``."""
_VERSION = reader(Field("version", "int32"), 0, _KIND)
_SUPPORTED = reader(Field("latest_supported_version", "int32"), 0, _KIND)
_TASK = record_dtype("task_id", 1)
_PARTITION_SUM = record_dtype("partition_offset", KAFKA_VERSIONS[-1])
_TASK_SUM = record_dtype("task_offset_sum", KAFKA_VERSIONS[-1])


def encode_subscription(
    value: Subscription, *, kafka_offset_sums: TaskOffsetSums | None = None
) -> bytes:
    """Bytes of a subscription in its own version, equal for equal values.

    Fields that the version does not carry are dropped, as Kafka does; a native part is appended
    as a trailer, which carries all fields.

    Args:
        value: the subscription.
        kafka_offset_sums: offset sums for Kafka's own fields, if JVM leaders must see fewer tasks
            than native leaders; by default those of ``value``.

    Raises:
        EncodeError: unknown version, latest supported version below the used one (from version 3
            on), a topology name below version 10, a value that does not fit its field, or a native
            part together with a used version up to 11 and a supported one above 11: a JVM leader
            would answer in that version.
    """
    if value.version >= EARLIEST_NATIVE_VERSION:
        supported = value.latest_supported_version
        return native.write_blob(_NAME, value.version, supported, value, value.native)
    plan = _WRITERS.get(value.version)
    if plan is None:
        known = f"known versions are {_spelled(KNOWN_VERSIONS)}"
        raise EncodeError("version", value.version, None, known)
    _check_supported_for_writing(value)
    parts: list[Any] = []
    seen = value
    if kafka_offset_sums is not None:
        seen = replace(value, task_offset_sums=kafka_offset_sums)
    for wire_value, write in plan:
        write(wire_value(seen), parts)
    extras = value.native
    if extras is not None:
        _check_advertised(value)
        supported = extras.latest_supported_version
        parts.append(native.write_trailer(_NAME, value, extras, supported))
    return b"".join(parts)


def decode_subscription(
    data: bytes, known_versions: Collection[int] = KNOWN_VERSIONS
) -> Subscription | FutureSubscription:
    """Value of a subscription blob; bytes behind its last field are ignored, as in Kafka.

    Args:
        data: user data of the member.
        known_versions: versions that this reader knows; pass others to emulate another reader. A
            later native version is still read if its body allows this reader. Any other unknown
            version from 3 on gives a ``FutureSubscription``. A reader without native versions
            ignores trailers.

    Raises:
        DecodeError: any other invalid input; nothing else is raised.
    """
    return read_subscription(data, known_versions)[0]


def read_subscription(
    data: bytes, known_versions: Collection[int] = KNOWN_VERSIONS
) -> tuple[Subscription | FutureSubscription, int]:
    """As ``decode_subscription``, with the offset at which Kafka's fields end.

    A future version is read up to its two version numbers (8 bytes), a native one to its end.
    """
    data = bytes(data)
    version, offset = _VERSION(data, 0)
    if version < 1:
        what = f"subscription claims version {version}; versions start at 1"
        raise DecodeError(what, offset=0, version=version, available=len(data))
    if version >= EARLIEST_NATIVE_VERSION:
        return _native_as_read(version, data, known_versions)
    plan = _READERS.get(version) if version in known_versions else None
    if plan is None:
        return _future_as_read(version, data)
    fields: dict[str, Any] = {}
    for name, read in plan:
        fields[name], offset = read(data, offset)
    supported = fields.get("latest_supported_version", UNKNOWN_VERSION)
    if version >= EARLIEST_PROBEABLE_VERSION:
        _check_supported_as_read(version, supported, data)
    tags = _tags_as_read(fields.get("client_tags", ()), version, data)
    extras, native_body = native.read_trailer(_NAME, data, offset, known_versions)
    if native_body is None:
        native_body = fields
        sums = _sums_as_read(fields)
    else:
        sums, tags = (
            native_body.get("task_offset_sums", EMPTY),
            native_body.get("client_tags", _NO_TAGS),
        )
    subscription = Subscription(
        version=version,
        latest_supported_version=supported,
        process_id=fields["process_id"],
        user_endpoint=native_body.get("user_endpoint"),
        task_offset_sums=sums,
        error_code=native_body.get("error_code", 0),
        client_tags=tags,
        native=extras,
        **{name: fields[name] for name in AS_READ if name in fields},
    )
    return subscription, offset


def _native_as_read(
    version: int, data: bytes, known_versions: Collection[int]
) -> tuple[Subscription | FutureSubscription, int]:
    supported, offset = _SUPPORTED(data, 4)
    _check_supported_as_read(version, supported, data)
    latest = native.latest_native_version(known_versions)
    body = None if latest is None else native.read_body(_NAME, data, offset, version, latest)
    if body is None:
        return FutureSubscription(version, supported), offset
    outer = {"process_id": _NO_PROCESS} | body.outer
    subscription = Subscription(
        version=version,
        latest_supported_version=supported,
        native=native.extras_of(_NAME, version, supported, body.extras),
        **outer,
    )
    return subscription, len(data)


def _future_as_read(version: int, data: bytes) -> tuple[FutureSubscription, int]:
    if version < EARLIEST_PROBEABLE_VERSION:
        what = f"subscription is in version {version}, which this reader does not know"
        raise DecodeError(what, offset=0, version=version, available=len(data))
    supported, end = _SUPPORTED(data, 4)
    _check_supported_as_read(version, supported, data)
    return FutureSubscription(version, supported), end


def _check_supported_for_writing(value: Subscription) -> None:
    supported = value.latest_supported_version
    if supported == UNKNOWN_VERSION and value.version < EARLIEST_PROBEABLE_VERSION:
        return
    if supported < value.version:
        reason = f"it must be at least the used version {value.version}"
        raise EncodeError("latest_supported_version", supported, value.version, reason)


def _check_advertised(value: Subscription) -> None:
    supported = value.latest_supported_version
    if supported > KAFKA_VERSIONS[-1]:
        reason = f"beside a trailer it is at most {KAFKA_VERSIONS[-1]}; the trailer has its own"
        raise EncodeError("latest_supported_version", supported, value.version, reason)


def _check_supported_as_read(version: int, supported: int, data: bytes) -> None:
    if supported < version:
        what = f"subscription claims version {version}, but to support {supported} at most"
        raise DecodeError(what, offset=4, version=version, available=len(data))


def _spelled(versions: Collection[int]) -> str:
    return ", ".join(str(version) for version in versions)


# Meaning of each row for writing.


def _without_names(value: Subscription) -> TaskOffsetSums:
    sums = value.task_offset_sums
    if sums.names is not None:
        named = next(name for name in sums.names if name is not None)
        reason = "topology names exist from version 10 on; write at least that version"
        raise EncodeError("task_offset_sums.topology_name", named, value.version, reason)
    return sums


def _prev_for_writing(value: Subscription) -> Any:
    sums = _without_names(value)
    return _tasks_for_writing(sums, sums.sums == RUNNING)


def _standby_for_writing(value: Subscription) -> Any:
    sums = _without_names(value)
    return _tasks_for_writing(sums, sums.sums != RUNNING)


def _tasks_for_writing(sums: TaskOffsetSums, chosen: npt.NDArray[np.bool_]) -> Any:
    subtopologies = sums.subtopologies[chosen]
    records = np.empty(len(subtopologies), _TASK)
    records["subtopology"] = subtopologies
    records["partition"] = sums.partitions[chosen]
    return records


def _groups_for_writing(value: Subscription) -> Any:
    sums = _without_names(value)
    records = np.empty(len(sums), _PARTITION_SUM)
    records["partition"] = sums.partitions
    records["offset_sum"] = sums.sums
    if not len(sums):
        return []
    edges = np.flatnonzero(np.diff(sums.subtopologies)) + 1
    starts = [0, *edges.tolist()]
    stops = [*edges.tolist(), len(sums)]
    groups = sums.subtopologies[starts].tolist()
    return [
        (group, records[start:stop])
        for group, start, stop in zip(groups, starts, stops, strict=True)
    ]


def _sums_for_writing(value: Subscription) -> Any:
    sums = value.task_offset_sums
    if sums.names is not None:
        columns = (sums.subtopologies.tolist(), sums.partitions.tolist(), sums.sums.tolist())
        return list(zip(*columns, sums.names, strict=True))
    records = np.empty(len(sums), _TASK_SUM)
    records["subtopology"] = sums.subtopologies
    records["partition"] = sums.partitions
    records["offset_sum"] = sums.sums
    records["topology_name"] = -1
    return records


_FOR_WRITING: dict[tuple[str, str], Callable[[Subscription], Any]] = {
    ("prev_tasks", "[]task_id"): _prev_for_writing,
    ("standby_tasks", "[]task_id"): _standby_for_writing,
    ("user_endpoint", "bytes"): lambda value: value.user_endpoint or "",
    ("task_offset_sums", "[]subtopology_offsets"): _groups_for_writing,
    ("task_offset_sums", "[]task_offset_sum"): _sums_for_writing,
    ("client_tags", "[]client_tag"): lambda value: list(value.client_tags.items()),
}


# Meaning of each row as read.


def _sums_as_read(fields: dict[str, Any]) -> TaskOffsetSums:
    sums = fields.get("task_offset_sums")
    if sums is None:
        return _sums_of_lists(fields["prev_tasks"], fields["standby_tasks"])
    if not len(sums):
        return EMPTY
    if isinstance(sums, np.ndarray):
        return TaskOffsetSums.from_columns(
            sums["subtopology"].astype(np.int32),
            sums["partition"].astype(np.int32),
            sums["offset_sum"].astype(np.int64),
        )
    if isinstance(sums[0][1], np.ndarray):
        subtopologies = np.array([group for group, _ in sums], np.int32)
        counts = [len(records) for _, records in sums]
        records = np.concatenate([records for _, records in sums])
        return TaskOffsetSums.from_columns(
            np.repeat(subtopologies, counts),
            records["partition"].astype(np.int32),
            records["offset_sum"].astype(np.int64),
        )
    subtopology, partition, offset_sum, names = zip(*sums, strict=True)
    return TaskOffsetSums.from_columns(subtopology, partition, offset_sum, names)


def _sums_of_lists(prev_tasks: Any, standby_tasks: Any) -> TaskOffsetSums:
    if not len(prev_tasks) and not len(standby_tasks):
        return EMPTY
    tasks = np.concatenate((prev_tasks, standby_tasks))
    sums = np.full(len(tasks), UNKNOWN_OFFSET_SUM, np.int64)
    sums[: len(prev_tasks)] = RUNNING
    return TaskOffsetSums.from_columns(
        tasks["subtopology"].astype(np.int32), tasks["partition"].astype(np.int32), sums
    )


def _tags_as_read(pairs: Any, version: int, data: bytes) -> ByName[str]:
    tags = dict(pairs)
    if len(tags) != len(pairs):
        what = f"subscription client_tags has {len(pairs)} entries, but {len(tags)} different keys"
        raise DecodeError(what, offset=0, version=version, available=len(data))
    return ByName(tags)


_WRITERS = {v: writers_of(SUBSCRIPTION, v, _FOR_WRITING) for v in KAFKA_VERSIONS}
_READERS = {v: readers_of(SUBSCRIPTION, v, _KIND) for v in KAFKA_VERSIONS}
