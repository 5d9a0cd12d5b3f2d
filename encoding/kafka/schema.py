"""Schema of Kafka's layouts: every field of both blobs, in wire order, with its versions.

The codec (``compiled.py``), the explainer, ``docs/wire.md`` and the tests use these rows; no other
module contains a Kafka layout. Native layouts are in ``encoding.native.schema``. All numbers are
big-endian; there is no framing and no checksum. Sources: ``SubscriptionInfoData.json`` and
``AssignmentInfo`` of Kafka Streams 0.10.0 to 4.3, checked against bytes that those releases wrote.

Types:

============  ================================================================================
int8/32/64    signed integer
uuid          16 bytes, most significant half first
bytes         int32 length, then UTF-8; not nullable
string        int16 length, then UTF-8; a negative length is null
java_utf      unsigned int16 length, then *modified* UTF-8 (NUL is c0 80, surrogates one by one)
utf16         int32 count of UTF-16 units, then two bytes each; 0 is null
[]name        int32 count, then that many structures of ``STRUCTURES[name]``
============  ================================================================================
"""

from collections.abc import Iterator
from dataclasses import dataclass

from encoding.native import NATIVE_VERSIONS

KAFKA_VERSIONS: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
"""The versions with Kafka's layouts, defined below."""

KNOWN_VERSIONS: tuple[int, ...] = (*KAFKA_VERSIONS, *NATIVE_VERSIONS)
"""The versions that this codec reads and writes. They have gaps: compute none from another."""

EARLIEST_PROBEABLE_VERSION = 3
"""The first version whose blobs carry the second number that version probing needs (KIP-268)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One row: versions ``since`` to ``until`` (``None``: the latest) carry the field ``name``.

    ``shared`` marks fields that are equal for all members of a group: a leader writes them once and
    copies the bytes into each answer.
    """

    name: str
    type: str
    since: int = 1
    until: int | None = None
    meaning: str = ""
    shared: bool = False

    def is_in(self, version: int) -> bool:
        """Whether ``version`` carries this field."""
        return self.since <= version and (self.until is None or version <= self.until)


# fmt: off
SUBSCRIPTION: tuple[Field, ...] = (
    Field("version",                  "int32",                 1,  None,
          meaning="used version: the layout of this blob"),
    Field("latest_supported_version", "int32",                 3,  None,
          meaning="the highest version that the member reads and writes"),
    Field("process_id",               "uuid",                  1,  None,
          meaning="the process; all members of one process send the same"),
    Field("prev_tasks",               "[]task_id",             1,  6,
          meaning="active tasks that the member runs"),
    Field("standby_tasks",            "[]task_id",             1,  6,
          meaning="other tasks whose state is on the member's disk"),
    Field("user_endpoint",            "bytes",                 2,  None,
          meaning="host:port for interactive queries; empty is none"),
    Field("task_offset_sums",         "[]subtopology_offsets", 7,  9,
          meaning="how far the state of each task is, by subtopology"),
    Field("task_offset_sums",         "[]task_offset_sum",     10, None,
          meaning="how far the state of each task is"),
    Field("unique_field",             "int8",                  8,  None,
          meaning="changes at every rejoin, so that the broker sees a change"),
    Field("error_code",               "int32",                 9,  None,
          meaning="0, or 4: the member asks the group to shut down"),
    Field("client_tags",              "[]client_tag",          11, None,
          meaning="the process's tags for standby placement, by key"),
)
"""Rows of the subscription, which a member sends to the group leader."""

ASSIGNMENT: tuple[Field, ...] = (
    Field("version",                    "int32",             1,  None,
          meaning="used version: the layout of this blob"),
    Field("commonly_supported_version", "int32",             3,  None,
          meaning="the lowest latest supported version in the group"),
    Field("active_tasks",               "[]assigned_task",   1,  None,
          meaning="the task of each assigned partition, in partition order"),
    Field("standby_tasks",              "[]standby_task",    1,  None,
          meaning="standby tasks and their changelog partitions"),
    Field("partitions_by_host",         "[]host_partitions", 2,  4, shared=True,
          meaning="who hosts which partition actively"),
    Field("topics",                     "[]topic_entry",     5,  None, shared=True,
          meaning="dictionary of the topics in the host maps"),
    Field("partitions_by_host",         "[]host_indexes",    5,  None, shared=True,
          meaning="who hosts which partition actively"),
    Field("standby_partitions_by_host", "[]host_indexes",    6,  None, shared=True,
          meaning="who hosts which partition as a standby"),
    Field("error_code",                 "int32",             4,  None,
          meaning="0, or why the group cannot be assigned"),
    Field("next_rebalance_ms",          "int64",             7,  None,
          meaning="leader's clock; 0 now, 9223372036854775807 never"),
)
"""Rows of the assignment, which the group leader sends to one member."""

STRUCTURES: dict[str, tuple[Field, ...]] = {
    "task_id": (
        Field("subtopology",   "int32", meaning="wire name: topic group id"),
        Field("partition",     "int32", meaning="partition of the task"),
    ),
    "assigned_task": (
        Field("subtopology",   "int32", meaning="wire name: topic group id"),
        Field("partition",     "int32", meaning="partition of the task"),
        Field("topology_name", "utf16", 10, meaning="named topology; 0 units is none"),
    ),
    "standby_task": (
        Field("subtopology",   "int32", meaning="wire name: topic group id"),
        Field("partition",     "int32", meaning="partition of the task"),
        Field("topology_name", "utf16", 10, meaning="named topology; 0 units is none"),
        Field("partitions",    "[]topic_partition", meaning="changelog partitions of the task"),
    ),
    "task_offset_sum": (
        Field("subtopology",   "int32", meaning="wire name: topic group id"),
        Field("partition",     "int32", meaning="partition of the task"),
        Field("offset_sum",    "int64", meaning="-2 running, -3 unknown, else sum of offsets"),
        Field("topology_name", "string", meaning="named topology; -1 is none"),
    ),
    "subtopology_offsets": (
        Field("subtopology",   "int32", meaning="wire name: topic group id"),
        Field("partitions",    "[]partition_offset", meaning="its tasks, by partition"),
    ),
    "partition_offset": (
        Field("partition",     "int32", meaning="partition of the task"),
        Field("offset_sum",    "int64", meaning="-2 running, -3 unknown, else sum of offsets"),
    ),
    "client_tag": (
        Field("key",           "bytes", meaning="tag key"),
        Field("value",         "bytes", meaning="tag value"),
    ),
    "topic_partition": (
        Field("topic",         "java_utf", meaning="topic name"),
        Field("partition",     "int32", meaning="partition of the topic"),
    ),
    "host_partitions": (
        Field("host",          "java_utf", meaning="host name"),
        Field("port",          "int32", meaning="port"),
        Field("partitions",    "[]topic_partition", meaning="partitions there"),
    ),
    "topic_entry": (
        Field("index",         "int32", meaning="number used by the host maps"),
        Field("topic",         "java_utf", meaning="topic name"),
    ),
    "host_indexes": (
        Field("host",          "java_utf", meaning="host name"),
        Field("port",          "int32", meaning="port"),
        Field("partitions",    "[]topic_index", meaning="partitions there"),
    ),
    "topic_index": (
        Field("index",         "int32", meaning="number of the topic in the dictionary"),
        Field("partition",     "int32", meaning="partition of the topic"),
    ),
}
"""Rows of each structure that arrays repeat. Structures nest at most two levels deep."""
# fmt: on

KINDS: dict[str, tuple[Field, ...]] = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT}
"""The two blobs by name."""


def rows_of(rows: tuple[Field, ...], version: int) -> Iterator[Field]:
    """The rows that ``version`` carries, in wire order."""
    return (row for row in rows if row.is_in(version))
