"""Schema of the native layouts: every key of the native bodies, with its versions.

A native blob is ``int32 used | int32 latest supported | msgpack map {key: value}``. The header is
Kafka's, so a JVM leader handles a native blob by version probing (KIP-268). A trailer is ``MAGIC |
int32 length | native blob``. It stands behind the Kafka fields of a blob in version 11 or lower,
where Kafka's decoders do not read.

Permanent rules of the body:

- A key is never reused and never changes its type. A field that changes its type gets another key;
  the old row ends with ``until``.
- A value equal to its default is not written; a reader uses the default for a missing key.
- Values do not nest: nil, bool, integer, text or bytes. A value with parts is bytes with a layout
  of its own (the types below), so no count can allocate more than the bytes account for.
- Key 0 names the lowest version whose readers understand the rest. Readers skip unknown keys.

Types:

================ ==============================================================================
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
subtopology_rows block of texts, then lists of varints: see ``topology_rows``
reached_rows     8 bytes, varint epoch, varint version, repeated; the bytes ascend
fingerprints     8 bytes, repeated
================ ==============================================================================

A *varint* is LEB128, a *block* is a varint length and so many bytes. The number of a task is its
position in (subtopology, partition) order; ``sizes`` has the number of tasks of each subtopology.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from encoding.primitives import NO_REBALANCE

EARLIEST_NATIVE_VERSION = 101
"""The first native version; 12 to 100 stay free for Kafka. Every native program reads it, so a
leader answers in it if it does not know which versions a member reads."""

NATIVE_VERSIONS: tuple[int, ...] = (101,)
"""The released native versions; this codec knows them by default."""

EMULATED_VERSIONS: tuple[int, ...] = (102, 103)
"""A *next* and an *incompatible* version, to test how 101 handles later versions."""

READABLE_SINCE: dict[int, int] = {101: 101, 102: 101, 103: 103}
"""Version -> its key 0: readers whose latest version is at least this understand it."""

MAGIC = b"\xf5SRA"
"""First bytes of a trailer. As a Kafka length or count they are negative, hence unambiguous."""

MAX_SUBTOPOLOGIES = 2**14
MAX_TASKS = 2**24
MAX_OWN_TASKS = 2**18
"""Most tasks of one kind in one answer. The limit bounds the objects that a few bytes can create;
the default record size of a broker allows fewer active tasks anyway."""
MAX_TEXT_BYTES = 65_535


@dataclass(frozen=True, slots=True)
class NativeField:
    """One row: versions ``since`` to ``until`` (``None``: the latest) carry ``name`` as ``key``.

    ``default`` is the value that is not written; for ``readable_since``, ``None`` means the used
    version.
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
       meaning="subtopologies that the member can run; missing: all"),
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
       meaning="levels of each feature that the member has adopted"),
    _F(18, "adopted_epoch",    "int64",          -1,
       meaning="epoch of those levels; -1 none"),
    _F(19, "view_epoch",       "int64",          -1,
       meaning="epoch of the routing view that the member has; -1 none"),
    _F(20, "view_checksum",    "uint32",         0,
       meaning="checksum of that view, 32 bits"),
    _F(21, "pinned_version",   "count",          None,
       meaning="version that upgrade.from pins the member to; missing: no pin"),
    _F(22, "nonce",            "int64_bytes",    0, 102,
       meaning="changes at every rejoin"),
    _F(23, "free_disk_bytes",  "int64",          None, 102,
       meaning="free space for state on the process's disk"),
    _F(24, "task_offset_sums", "offset_rows",    (), 103,
       meaning="how far the state of each task is"),
    _F(25, "rack",             "texts",          None, 103,
       meaning="client.rack of the process, as a list of one"),
    _F(26, "topology_version", "count",          1,
       meaning="highest version of the topology that the member can run"),
    _F(27, "carried",          "subtopology_rows", (),
       meaning="subtopologies that the member can run, in its numbering; missing: not described"),
    _F(28, "reached_versions", "reached_rows",   (),
       meaning="versions of the topology that forms of subtopologies have reached"),
)

_ASSIGNMENT: tuple[NativeField, ...] = (
    _F(0,  "readable_since",    "count",          None,
       meaning="readers whose latest version is at least this understand the body"),
    _F(1,  "sizes",             "sizes",          (),
       meaning="tasks of each subtopology: the task numbering of this body"),
    _F(2,  "active_tasks",      "tasks",          (), 101, 102,
       meaning="tasks that the member runs"),
    _F(3,  "standby_tasks",     "tasks",          (), 101, 102,
       meaning="tasks whose state the member replicates"),
    _F(4,  "warmup_tasks",      "tasks",          (), 101, 102,
       meaning="standby tasks that the member takes over once they are caught up"),
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
       meaning="version that the member writes at the next rebalance; 0 none"),
    _F(11, "subscription_read", "bool",           True,  # noqa: FBT003 a default
       meaning="false: the leader could not read the member's body, rejoin once"),
    _F(12, "view_full",         "bytes",          None,
       meaning="routing view: which host runs which task"),
    _F(13, "view_delta",        "bytes",          None,
       meaning="changes of the routing view since the epoch that the member has"),
    _F(14, "view_reference",    "bytes",          None, 101, 101,
       meaning="epoch and checksum of a routing view that is stored elsewhere"),
    _F(15, "followup_reason",   "text",           None, 102,
       meaning="reason of the followup rebalance"),
    _F(16, "feature_epoch",     "int64_bytes",    -1, 102,
       meaning="epoch of the feature levels"),
    _F(17, "active_tasks",      "task_rows",      (), 103,
       meaning="tasks that the member runs"),
    _F(18, "standby_tasks",     "task_rows",      (), 103,
       meaning="tasks whose state the member replicates"),
    _F(19, "warmup_tasks",      "task_rows",      (), 103,
       meaning="standby tasks that the member takes over once they are caught up"),
    _F(20, "numbered_by",       "fingerprints",   (),
       meaning="content of each subtopology, in the numbering of the tasks; missing: not told"),
    _F(21, "reached_versions",  "reached_rows",   (),
       meaning="versions of the topology that forms of subtopologies have reached"),
    _F(22, "describe_topology", "bool",           False,  # noqa: FBT003 a default
       meaning="true: the member describes its subtopologies in its subscriptions"),
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
