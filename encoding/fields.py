"""The blobs as plain JSON fields, in one canonical form, and back.

The form is that of the golden vectors: a task is ``[subtopology, partition, name or null]``, lists
are sorted (strings by code point, null first) except the active tasks, whose order has a meaning,
and a field that the version lacks shows its default. Reading is lenient about missing fields and
strict about wrong ones.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from encoding.errors import EncodeError
from encoding.mappings import ClientTags, Partitions, PartitionsByHost, PartitionsByTask
from encoding.model import (
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    UNKNOWN_VERSION,
    HostInfo,
    TaskId,
)
from encoding.schema import SUBSCRIPTION
from encoding.sums import TaskOffsetSums
from encoding.values import Assignment, FutureSubscription, Subscription

__all__ = [
    "assignment_from_fields",
    "assignment_to_fields",
    "subscription_from_fields",
    "subscription_to_fields",
]

# The first version that carries offset sums; below it the two task lists are what counts.
_FIRST_WITH_SUMS = min(row.since for row in SUBSCRIPTION if row.name == "task_offset_sums")


def subscription_to_fields(value: Subscription | FutureSubscription) -> dict[str, Any]:
    """Canonical fields; of a future subscription only ``version`` and ``latest_supported``."""
    numbers = {"version": value.version, "latest_supported": value.latest_supported_version}
    if isinstance(value, FutureSubscription):
        return numbers
    return numbers | {
        "process_id": str(value.process_id),
        "user_endpoint": value.user_endpoint,
        "prev_tasks": [list(task) for task in value.prev_tasks],
        "standby_tasks": [list(task) for task in value.standby_tasks],
        "task_offset_sums": [[*task, offset_sum] for task, offset_sum in value.task_offset_sums],
        "unique_field": value.unique_field,
        "error_code": value.error_code,
        "client_tags": dict(value.client_tags),
    }


def subscription_from_fields(fields: Mapping[str, Any]) -> Subscription:
    """Value of canonical fields; missing ones take their defaults, the process id is all zeros.

    Tasks may be given as ``task_offset_sums`` or as ``prev_tasks`` and ``standby_tasks``. If both
    are given, the sums count from version 7 on, below it the lists, unless both lists are empty.

    Raises:
        EncodeError: a field of the wrong shape or type.
    """
    version = _integer(fields, "version", None)
    lists = bool(fields.get("prev_tasks") or fields.get("standby_tasks"))
    if "task_offset_sums" in fields and (version >= _FIRST_WITH_SUMS or not lists):
        sums = _sums(_list(fields, "task_offset_sums"))
    else:
        sums = {_task("prev_tasks", row): RUNNING for row in _list(fields, "prev_tasks")}
        for row in _list(fields, "standby_tasks"):
            sums[_task("standby_tasks", row)] = UNKNOWN_OFFSET_SUM
    return Subscription(
        version=version,
        latest_supported_version=_integer(fields, "latest_supported", UNKNOWN_VERSION),
        process_id=_uuid(fields.get("process_id", "00000000-0000-0000-0000-000000000000")),
        user_endpoint=_text_or_null(fields, "user_endpoint"),
        task_offset_sums=TaskOffsetSums.from_mapping(sums),
        unique_field=_integer(fields, "unique_field", 0),
        error_code=_integer(fields, "error_code", 0),
        client_tags=_tags(fields.get("client_tags", {})),
    )


def assignment_to_fields(value: Assignment) -> dict[str, Any]:
    """Canonical fields of an assignment."""
    return {
        "version": value.version,
        "commonly_supported": value.commonly_supported_version,
        "active_tasks": [list(task) for task in value.active_tasks],
        "standby_tasks": [
            [*task, [list(partition) for partition in partitions]]
            for task, partitions in value.standby_tasks.items()
        ],
        "partitions_by_host": _hosts_to_fields(value.partitions_by_host),
        "standby_partitions_by_host": _hosts_to_fields(value.standby_partitions_by_host),
        "error_code": value.error_code,
        "next_rebalance_ms": value.next_rebalance_ms,
    }


def assignment_from_fields(fields: Mapping[str, Any]) -> Assignment:
    """Value of canonical fields; missing ones take their defaults.

    Raises:
        EncodeError: a field of the wrong shape or type.
    """
    standby = {}
    for row in _list(fields, "standby_tasks"):
        if not _is_row(row, 4):
            expected = "a list of [subtopology, partition, name, [[topic, partition]]]"
            raise _wrong("standby_tasks", row, expected)
        standby[_task("standby_tasks", row[:3])] = _partitions("standby_tasks", row[3])
    return Assignment(
        version=_integer(fields, "version", None),
        commonly_supported_version=_integer(fields, "commonly_supported", UNKNOWN_VERSION),
        active_tasks=tuple(_task("active_tasks", row) for row in _list(fields, "active_tasks")),
        standby_tasks=PartitionsByTask(standby),
        partitions_by_host=_hosts(fields, "partitions_by_host"),
        standby_partitions_by_host=_hosts(fields, "standby_partitions_by_host"),
        error_code=_integer(fields, "error_code", 0),
        next_rebalance_ms=_integer(fields, "next_rebalance_ms", NO_REBALANCE),
    )


def _hosts_to_fields(partitions: Mapping[HostInfo, Partitions]) -> list[Any]:
    return [[*host, [list(one) for one in served]] for host, served in partitions.items()]


def _wrong(field: str, value: object, expected: str) -> EncodeError:
    return EncodeError(field, value, None, f"give {expected}")


def _is_row(row: object, width: int) -> bool:
    return isinstance(row, list | tuple) and len(row) == width


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(fields: Mapping[str, Any], name: str, default: int | None) -> int:
    value = fields.get(name, default)
    if not _is_integer(value):
        raise _wrong(name, value, "an integer")
    return int(value)


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name, [])
    if not isinstance(value, list | tuple):
        raise _wrong(name, value, "a list")
    return list(value)


def _text_or_null(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong(name, value, "text or null")
    return value


def _uuid(value: object) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        raise _wrong("process_id", value, "a UUID, for example from uuid.uuid4()") from None


def _task(field: str, row: Any) -> TaskId:
    match row:
        case [a, b] if _is_integer(a) and _is_integer(b):
            return TaskId(a, b)
        case [a, b, str() | None as name] if _is_integer(a) and _is_integer(b):
            return TaskId(a, b, name or None)
    raise _wrong(field, row, "a task as [subtopology, partition, name or null]")


def _sums(rows: list[Any]) -> dict[TaskId, int]:
    for row in rows:
        if not _is_row(row, 4) or not _is_integer(row[3]):
            expected = "a list of [subtopology, partition, name, offset sum]"
            raise _wrong("task_offset_sums", row, expected)
    return {_task("task_offset_sums", row[:3]): row[3] for row in rows}


def _partitions(field: str, rows: Any) -> list[tuple[str, int]]:
    pairs: list[Any] = list(rows) if isinstance(rows, list | tuple) else [rows]
    for pair in pairs:
        match pair:
            case [str(), number] if _is_integer(number):
                continue
        raise _wrong(field, pair, "partitions as [[topic, partition]]")
    return [(topic, number) for topic, number in pairs]


def _hosts(fields: Mapping[str, Any], name: str) -> PartitionsByHost:
    hosts = {}
    for row in _list(fields, name):
        match row:
            case [str() as host, port, partitions] if _is_integer(port):
                hosts[host, port] = _partitions(name, partitions)
            case _:
                raise _wrong(name, row, "a list of [host, port, [[topic, partition]]]")
    return PartitionsByHost(hosts)


def _tags(value: object) -> ClientTags:
    if not isinstance(value, Mapping):
        raise _wrong("client_tags", value, "an object of text by text")
    for key, tag in value.items():
        if not isinstance(key, str) or not isinstance(tag, str):
            raise _wrong("client_tags", {key: tag}, "an object of text by text")
    return ClientTags(value)
