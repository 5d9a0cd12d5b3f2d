"""The other table: every key of the native bodies, with the versions that carry it.

A native blob is ``int32 used | int32 latest supported | msgpack map {key: value}``: the header is
Kafka's, so that a JVM leader probes as usual when it meets one (KIP-268). A trailer is ``MAGIC |
int32 length | native blob``, right behind the Kafka fields of a blob in version 11 or lower, where
no decoder of Kafka looks.

Rules of the body, for all time:

- A key is never used again for something else and never changes its type. A field that changes its
  type gets another key; the old row ends with ``until``.
- A value equal to its default is not written; a reader that misses a key takes the default.
- Values do not nest: nil, bool, integer, text or bytes. What has parts is bytes, with a layout of
  its own (the types below), so that no count can ask for memory that the bytes do not pay for.
- Key 0 names the lowest version whose readers understand the rest. They skip keys they do not know.

Types:

===============  ==============================================================================
int32, int64     integer that fits
count            integer, 0 to 2**31 - 1
uint32           integer, 0 to 2**32 - 1
bool             true or false
text             UTF-8, at most 65,535 bytes, never empty
bytes, bytes8    bytes; exactly 8 of them
int64_bytes      signed integer as 8 bytes, big-endian
uuid             16 bytes, most significant half first
sizes            varints (size, repeats - 1) for runs of equal sizes
words            0 then varints, or a width from 1 to 8 then so many bytes each, big-endian
numbers          ``words`` of gaps, or 9 then a bitmap (lowest bit first): ascending numbers
tasks            block of ``numbers`` in the numbering of ``sizes``, then the tasks outside it
offset_sums      block of ``tasks``, block with a bitmap of those that run, ``words`` of the other
                 sums, zig-zag
task_rows        zig-zag varints (subtopology, partition) per task, then names
offset_rows      block of ``task_rows``, then zig-zag varints, one per task
texts            varint length and UTF-8, repeated
texts_by_name    text, text, repeated; names ascend
counts_by_name   text, varint, repeated
ranges_by_name   text, varint lowest, varint highest, repeated
partitions       text, block of varints (gap, length) per range of partitions, repeated
===============  ==============================================================================

A *varint* is LEB128, a *block* is a varint length and so many bytes. Tasks are numbered by position
in (subtopology, partition) order; ``sizes`` says how many each subtopology has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from encoding.primitives import NO_REBALANCE

__all__ = [
    "EARLIEST_NATIVE_VERSION",
    "EMULATED_VERSIONS",
    "MAGIC",
    "MAX_OWN_TASKS",
    "MAX_SUBTOPOLOGIES",
    "MAX_TASKS",
    "MAX_TEXT_BYTES",
    "NATIVE_KINDS",
    "NATIVE_VERSIONS",
    "READABLE_SINCE",
    "NativeField",
    "native_rows_of",
]

EARLIEST_NATIVE_VERSION = 101
"""Versions from here on are ours; 12 to 100 stay free for Kafka. Every program of ours reads this
one, so a leader falls back to it where it does not know what a member reads."""

NATIVE_VERSIONS: tuple[int, ...] = (101,)
"""Native versions that are released: this codec knows them unless told otherwise."""

EMULATED_VERSIONS: tuple[int, ...] = (102, 103)
"""A *next* and an *incompatible* version. They exist to test what 101 does when they come."""

READABLE_SINCE: dict[int, int] = {101: 101, 102: 101, 103: 103}
"""What key 0 says in each version: the lowest latest version of a reader that understands it."""

MAGIC = b"\xf5SRA"
"""Start of a trailer. As a Kafka length or count it would be negative, so nothing collides."""

MAX_SUBTOPOLOGIES = 2**14
MAX_TASKS = 2**24
MAX_OWN_TASKS = 2**18
"""Tasks of one kind in one answer. Each active one costs the group's record a partition of 4 bytes,
so that a broker's default leaves room for fewer; each becomes an object, which a bit must not ask
for without bound."""
MAX_TEXT_BYTES = 65_535


@dataclass(frozen=True, slots=True)
class NativeField:
    """One row: versions ``since`` to ``until`` (``None``: still) carry ``name`` under ``key``.

    ``default`` is the value that is not written. A default of ``None`` on ``readable_since`` stands
    for the used version itself.
    """

    key: int
    name: str
    type: str
    default: Any
    since: int = EARLIEST_NATIVE_VERSION
    until: int | None = None
    meaning: str = ""

    def is_in(self, version: int) -> bool:
        """Whether ``version`` carries this field."""
        return self.since <= version and (self.until is None or version <= self.until)


_F = NativeField
# fmt: off
_SUBSCRIPTION: tuple[NativeField, ...] = (
    _F(0,  "readable_since",   "count",          None,
       meaning="readers whose latest version is at least this understand the body"),
    _F(1,  "process_id",       "uuid",           UUID(int=0),
       meaning="the process; all members of one process send the same"),
    _F(2,  "instance_id",      "text",           None, 101, 101,
       meaning="static member: group.instance.id"),
    _F(3,  "user_endpoint",    "text",           None,
       meaning="host:port for interactive queries"),
    _F(4,  "threads",          "count",          1,
       meaning="stream threads of the process"),
    _F(5,  "rack",             "text",           None, 101, 102,
       meaning="client.rack of the process (KIP-925)"),
    _F(6,  "client_tags",      "texts_by_name",  {},
       meaning="the process's tags for standby placement (KIP-708)"),
    _F(7,  "sizes",            "sizes",          (),
       meaning="tasks of each subtopology: the task numbering of this body"),
    _F(8,  "fingerprint",      "bytes8",         b"",
       meaning="of the topology, 8 bytes; members of one application send the same"),
    _F(9,  "subtopologies",    "numbers",        None,
       meaning="subtopologies that the member can run; not there: all"),
    _F(10, "task_offset_sums", "offset_sums",    (), 101, 102,
       meaning="how far the state of each task is"),
    _F(11, "end_offset_sums",  "offset_sums",    (),
       meaning="ends of the changelogs that the member itself writes"),
    _F(12, "owned_partitions", "partitions",     (),
       meaning="partitions that the member owns"),
    _F(13, "owned_generation", "int32",          -1,
       meaning="generation in which it got them; -1 unknown"),
    _F(14, "nonce",            "int64",          0, 101, 101,
       meaning="changes at every rejoin, so that the broker sees a change (KAFKA-10455)"),
    _F(15, "error_code",       "int32",          0,
       meaning="0, or 4: the member asks the group to shut down"),
    _F(16, "feature_ranges",   "ranges_by_name", {},
       meaning="levels of each feature that the member supports (KIP-584)"),
    _F(17, "adopted_levels",   "counts_by_name", {},
       meaning="levels of each feature that the member goes by"),
    _F(18, "adopted_epoch",    "int64",          -1,
       meaning="epoch of those levels; -1 none"),
    _F(19, "view_epoch",       "int64",          -1,
       meaning="epoch of the routing view that the member has; -1 none"),
    _F(20, "view_checksum",    "uint32",         0,
       meaning="checksum of that view, 32 bits"),
    _F(21, "pinned_version",   "count",          None,
       meaning="version that upgrade.from pins the member to; not there: no pin"),
    _F(22, "nonce",            "int64_bytes",    0, 102,
       meaning="changes at every rejoin"),
    _F(23, "free_disk_bytes",  "int64",          None, 102,
       meaning="room for state on the process's disk"),
    _F(24, "task_offset_sums", "offset_rows",    (), 103,
       meaning="how far the state of each task is"),
    _F(25, "rack",             "texts",          None, 103,
       meaning="client.rack of the process, as a list of one"),
)

_ASSIGNMENT: tuple[NativeField, ...] = (
    _F(0,  "readable_since",    "count",          None,
       meaning="readers whose latest version is at least this understand the body"),
    _F(1,  "sizes",             "sizes",          (),
       meaning="tasks of each subtopology: the task numbering of this body"),
    _F(2,  "active_tasks",      "tasks",          (), 101, 102,
       meaning="tasks that the member runs"),
    _F(3,  "standby_tasks",     "tasks",          (), 101, 102,
       meaning="tasks whose state the member keeps up"),
    _F(4,  "warmup_tasks",      "tasks",          (), 101, 102,
       meaning="those of them that it is to take over when their state is there"),
    _F(5,  "partition_counts",  "counts_by_name", {},
       meaning="partitions of each source topic"),
    _F(6,  "next_rebalance_ms", "int64",          NO_REBALANCE,
       meaning="leader's clock; 0 now, 9223372036854775807 never"),
    _F(7,  "error_code",        "int32",          0,
       meaning="0, or why the group cannot be assigned"),
    _F(8,  "feature_levels",    "counts_by_name", {},
       meaning="finalized level of each feature (KIP-584)"),
    _F(9,  "feature_epoch",     "int64",          -1, 101, 101,
       meaning="epoch of those levels; -1 none"),
    _F(10, "next_version",      "count",          0,
       meaning="version that the member is to write next time; 0 not said"),
    _F(11, "subscription_read", "bool",           True,  # noqa: FBT003 a default
       meaning="false: the leader could not read the member's body, rejoin once"),
    _F(12, "view_full",         "bytes",          None,
       meaning="routing view: who hosts what"),
    _F(13, "view_delta",        "bytes",          None,
       meaning="changes of the routing view since the epoch that the member has"),
    _F(14, "view_reference",    "bytes",          None, 101, 101,
       meaning="epoch and checksum of a routing view that is stored elsewhere"),
    _F(15, "followup_reason",   "text",           None, 102,
       meaning="why the followup rebalance is asked for"),
    _F(16, "feature_epoch",     "int64_bytes",    -1, 102,
       meaning="epoch of the feature levels"),
    _F(17, "active_tasks",      "task_rows",      (), 103,
       meaning="tasks that the member runs"),
    _F(18, "standby_tasks",     "task_rows",      (), 103,
       meaning="tasks whose state the member keeps up"),
    _F(19, "warmup_tasks",      "task_rows",      (), 103,
       meaning="those of them that it is to take over when their state is there"),
)
# fmt: on

NATIVE_KINDS: dict[str, tuple[NativeField, ...]] = {
    "subscription": _SUBSCRIPTION,
    "assignment": _ASSIGNMENT,
}
"""Rows of the two bodies, in the order of their keys."""


def native_rows_of(kind: str, version: int) -> Iterator[NativeField]:
    """The rows that ``version`` writes, in the order of their keys."""
    return (row for row in NATIVE_KINDS[kind] if row.is_in(version))
