"""Layout of the native versions (101 and later) and of the trailer behind Kafka's fields."""

from encoding.native.body import (
    KAFKAS,
    LIMITS,
    extras_of,
    latest_native_version,
    numbering_in,
    pairs_of,
    read_body,
    read_trailer,
    trailer_in,
    write_blob,
    write_trailer,
)
from encoding.native.schema import (
    EARLIEST_NATIVE_VERSION,
    EMULATED_VERSIONS,
    MAX_SUBTOPOLOGIES,
    NATIVE_KINDS,
    NATIVE_VERSIONS,
    READABLE_SINCE,
    NativeField,
)
from encoding.native.task_numbers import Numbering, read_numbering
from encoding.native.topology_rows import ReachedRow, SubtopologyRow
from encoding.native.value_types import TYPES
from encoding.native.values import (
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    partition_ranges,
)

__all__ = [
    "EARLIEST_NATIVE_VERSION",
    "EMULATED_VERSIONS",
    "KAFKAS",
    "LIMITS",
    "MAX_SUBTOPOLOGIES",
    "NATIVE_KINDS",
    "NATIVE_VERSIONS",
    "READABLE_SINCE",
    "TYPES",
    "NativeAssignment",
    "NativeField",
    "NativeSubscription",
    "Numbering",
    "PartitionRange",
    "ReachedRow",
    "SubtopologyRow",
    "extras_of",
    "latest_native_version",
    "numbering_in",
    "pairs_of",
    "partition_ranges",
    "read_body",
    "read_numbering",
    "read_trailer",
    "trailer_in",
    "write_blob",
    "write_trailer",
]
