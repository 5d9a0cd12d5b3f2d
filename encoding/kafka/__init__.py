"""Subscription and assignment in Kafka Streams' layouts, versions 1 to 11, from one schema."""

from encoding.kafka.assignment import (
    decode_assignment,
    encode_assignment,
    host_map_bytes,
    read_assignment,
)
from encoding.kafka.compiled import array_of, minimal_size, reader
from encoding.kafka.schema import (
    EARLIEST_PROBEABLE_VERSION,
    KAFKA_VERSIONS,
    KINDS,
    KNOWN_VERSIONS,
    STRUCTURES,
    SUBSCRIPTION,
    Field,
    rows_of,
)
from encoding.kafka.subscription import (
    AS_READ,
    decode_subscription,
    encode_subscription,
    read_subscription,
)
from encoding.kafka.values import Assignment, FutureSubscription, Subscription

__all__ = [
    "AS_READ",
    "EARLIEST_PROBEABLE_VERSION",
    "KAFKA_VERSIONS",
    "KINDS",
    "KNOWN_VERSIONS",
    "STRUCTURES",
    "SUBSCRIPTION",
    "Assignment",
    "Field",
    "FutureSubscription",
    "Subscription",
    "array_of",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "host_map_bytes",
    "minimal_size",
    "read_assignment",
    "read_subscription",
    "reader",
    "rows_of",
]
