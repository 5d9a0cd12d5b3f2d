"""Subscription and assignment in Kafka Streams' layouts, versions 1 to 11, from one schema."""

from encoding.kafka.assignment import decode_assignment, encode_assignment, read_assignment
from encoding.kafka.explanation import Piece, explain
from encoding.kafka.json_fields import (
    assignment_from_fields,
    assignment_to_fields,
    subscription_from_fields,
    subscription_to_fields,
)
from encoding.kafka.schema import EARLIEST_PROBEABLE_VERSION, KAFKA_VERSIONS, KNOWN_VERSIONS
from encoding.kafka.subscription import decode_subscription, encode_subscription, read_subscription
from encoding.kafka.values import Assignment, FutureSubscription, Subscription

__all__ = [
    "EARLIEST_PROBEABLE_VERSION",
    "KAFKA_VERSIONS",
    "KNOWN_VERSIONS",
    "Assignment",
    "FutureSubscription",
    "Piece",
    "Subscription",
    "assignment_from_fields",
    "assignment_to_fields",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "explain",
    "read_assignment",
    "read_subscription",
    "subscription_from_fields",
    "subscription_to_fields",
]
