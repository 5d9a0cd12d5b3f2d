"""Layout of the native versions (101 and later) and of the trailer behind Kafka's fields."""

from encoding.native.body import (
    KAFKAS,
    extras_of,
    latest_native_version,
    read_body,
    read_trailer,
    trailer_in,
    write_blob,
    write_trailer,
)
from encoding.native.explanation import body_pieces
from encoding.native.json_fields import native_from_fields, native_to_fields
from encoding.native.schema import (
    EARLIEST_NATIVE_VERSION,
    EMULATED_VERSIONS,
    MAX_SUBTOPOLOGIES,
    NATIVE_VERSIONS,
    READABLE_SINCE,
)
from encoding.native.topology_rows import ReachedRow, SubtopologyRow
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
    "MAX_SUBTOPOLOGIES",
    "NATIVE_VERSIONS",
    "READABLE_SINCE",
    "NativeAssignment",
    "NativeSubscription",
    "PartitionRange",
    "ReachedRow",
    "SubtopologyRow",
    "body_pieces",
    "extras_of",
    "latest_native_version",
    "native_from_fields",
    "native_to_fields",
    "partition_ranges",
    "read_body",
    "read_trailer",
    "trailer_in",
    "write_blob",
    "write_trailer",
]
