"""Convert subscriptions and assignments to canonical JSON fields, and back.

This is the form of the golden vectors: a task is ``[subtopology, partition, name or null]``; lists
are sorted (strings by code point, null first) except the active tasks, whose order has a meaning; a
field that the version lacks has its default. ``native`` exists only if the value has a native part.
On reading, missing fields take their defaults and invalid ones are refused.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from encoding.inspection.native_fields import native_from_fields, native_to_fields
from encoding.inspection.rows import (
    is_integer,
    is_row,
    partitions_of_rows,
    sums_of_rows,
    task_of_row,
    wrong,
)
from encoding.kafka import (
    AS_READ,
    KAFKA_VERSIONS,
    SUBSCRIPTION,
    Assignment,
    FutureSubscription,
    Subscription,
)
from encoding.primitives import (
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    UNKNOWN_VERSION,
    ByName,
    HostInfo,
    Partitions,
    PartitionsByHost,
    PartitionsByTask,
    TaskOffsetSums,
)

# The first version that carries offset sums; lower versions carry two task lists.
_FIRST_WITH_SUMS = min(row.since for row in SUBSCRIPTION if row.name == "task_offset_sums")
_ALL_SHOWN = 11
"""The golden vectors show every field of versions up to this one, with its default where absent."""
_LATER_ROWS = tuple(row for row in SUBSCRIPTION if row.name in AS_READ and row.since > _ALL_SHOWN)


def subscription_to_fields(value: Subscription | FutureSubscription) -> dict[str, Any]:
    """Canonical fields of a subscription; of a future one ``version`` and ``latest_supported``."""
    numbers = {"version": value.version, "latest_supported": value.latest_supported_version}
    if isinstance(value, FutureSubscription):
        return numbers
    fields = numbers | {
        "process_id": str(value.process_id),
        "user_endpoint": value.user_endpoint,
        "prev_tasks": [list(task) for task in value.prev_tasks],
        "standby_tasks": [list(task) for task in value.standby_tasks],
        "task_offset_sums": [[*task, offset_sum] for task, offset_sum in value.task_offset_sums],
        "unique_field": value.unique_field,
        "error_code": value.error_code,
        "client_tags": dict(value.client_tags),
    }
    if value.version in KAFKA_VERSIONS:  # native bodies have keys of their own
        later = (row.name for row in _LATER_ROWS if row.is_in(value.version))
        fields |= {name: getattr(value, name) for name in later}
    return fields if value.native is None else fields | {"native": native_to_fields(value.native)}


def subscription_from_fields(fields: Mapping[str, Any]) -> Subscription:
    """Value of canonical fields; missing ones take their defaults, the process id is all zeros.

    Tasks may be given as ``task_offset_sums`` or as ``prev_tasks`` and ``standby_tasks``. If both
    are given, the sums are used from version 7 on or with a native part; otherwise the lists,
    unless both are empty.

    Raises:
        EncodeError: a field of the wrong shape or type.
    """
    version = _integer(fields, "version", None)
    lists = bool(fields.get("prev_tasks") or fields.get("standby_tasks"))
    carried = version >= _FIRST_WITH_SUMS or fields.get("native") is not None
    if "task_offset_sums" in fields and (carried or not lists):
        sums = sums_of_rows("task_offset_sums", _list(fields, "task_offset_sums"))
    else:
        sums = {task_of_row("prev_tasks", row): RUNNING for row in _list(fields, "prev_tasks")}
        for row in _list(fields, "standby_tasks"):
            sums[task_of_row("standby_tasks", row)] = UNKNOWN_OFFSET_SUM
    return Subscription(
        version=version,
        latest_supported_version=_integer(fields, "latest_supported", UNKNOWN_VERSION),
        process_id=_uuid(fields.get("process_id", "00000000-0000-0000-0000-000000000000")),
        user_endpoint=_text_or_null(fields, "user_endpoint"),
        task_offset_sums=TaskOffsetSums.from_mapping(sums),
        error_code=_integer(fields, "error_code", 0),
        client_tags=_tags(fields.get("client_tags", {})),
        native=native_from_fields("subscription", fields.get("native")),
        **{name: _integer(fields, name, 0) for name in AS_READ},
    )


def assignment_to_fields(value: Assignment) -> dict[str, Any]:
    """Canonical fields of an assignment."""
    fields = {
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
    return fields if value.native is None else fields | {"native": native_to_fields(value.native)}


def assignment_from_fields(fields: Mapping[str, Any]) -> Assignment:
    """Value of canonical fields; missing ones take their defaults.

    Raises:
        EncodeError: a field of the wrong shape or type.
    """
    standby = {}
    for row in _list(fields, "standby_tasks"):
        if not is_row(row, 4):
            expected = "a list of [subtopology, partition, name, [[topic, partition]]]"
            raise wrong("standby_tasks", row, expected)
        standby[task_of_row("standby_tasks", row[:3])] = partitions_of_rows("standby_tasks", row[3])
    return Assignment(
        version=_integer(fields, "version", None),
        commonly_supported_version=_integer(fields, "commonly_supported", UNKNOWN_VERSION),
        active_tasks=tuple(
            task_of_row("active_tasks", row) for row in _list(fields, "active_tasks")
        ),
        standby_tasks=PartitionsByTask(standby),
        partitions_by_host=_hosts(fields, "partitions_by_host"),
        standby_partitions_by_host=_hosts(fields, "standby_partitions_by_host"),
        error_code=_integer(fields, "error_code", 0),
        next_rebalance_ms=_integer(fields, "next_rebalance_ms", NO_REBALANCE),
        native=native_from_fields("assignment", fields.get("native")),
    )


def _hosts_to_fields(partitions: Mapping[HostInfo, Partitions]) -> list[Any]:
    return [
        [*host, [list(partition) for partition in served]] for host, served in partitions.items()
    ]


def _integer(fields: Mapping[str, Any], name: str, default: int | None) -> int:
    value = fields.get(name, default)
    if not is_integer(value):
        raise wrong(name, value, "an integer")
    return int(value)


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name, [])
    if not isinstance(value, list | tuple):
        raise wrong(name, value, "a list")
    return list(value)


def _text_or_null(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong(name, value, "text or null")
    return value


def _uuid(value: object) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        raise wrong("process_id", value, "a UUID, for example from uuid.uuid4()") from None


def _hosts(fields: Mapping[str, Any], name: str) -> PartitionsByHost:
    hosts = {}
    for row in _list(fields, name):
        match row:
            case [str() as host, port, partitions] if is_integer(port):
                hosts[host, port] = partitions_of_rows(name, partitions)
            case _:
                raise wrong(name, row, "a list of [host, port, [[topic, partition]]]")
    return PartitionsByHost(hosts)


def _tags(value: object) -> ByName[str]:
    if not isinstance(value, Mapping):
        raise wrong("client_tags", value, "an object of text by text")
    for key, tag in value.items():
        if not isinstance(key, str) or not isinstance(tag, str):
            raise wrong("client_tags", {key: tag}, "an object of text by text")
    return ByName(value)
