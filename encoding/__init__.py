"""What the bytes mean: subscription and assignment blobs, every version, one table."""

from encoding.assignment import decode_assignment, encode_assignment, read_assignment
from encoding.errors import DecodeError, EncodeError, RebalanceError
from encoding.explain import Piece, explain
from encoding.fields import (
    assignment_from_fields,
    assignment_to_fields,
    subscription_from_fields,
    subscription_to_fields,
)
from encoding.mappings import ClientTags, PartitionsByHost, PartitionsByTask
from encoding.model import (
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    UNKNOWN_VERSION,
    AssignorError,
    HostInfo,
    TaskId,
    TopicPartition,
    task_order,
)
from encoding.schema import EARLIEST_PROBEABLE_VERSION, KNOWN_VERSIONS
from encoding.subscription import decode_subscription, encode_subscription, read_subscription
from encoding.sums import TaskOffsetSums
from encoding.values import Assignment, FutureSubscription, Subscription

__all__ = [
    "EARLIEST_PROBEABLE_VERSION",
    "KNOWN_VERSIONS",
    "NO_REBALANCE",
    "RUNNING",
    "UNKNOWN_OFFSET_SUM",
    "UNKNOWN_VERSION",
    "Assignment",
    "AssignorError",
    "ClientTags",
    "DecodeError",
    "EncodeError",
    "FutureSubscription",
    "HostInfo",
    "PartitionsByHost",
    "PartitionsByTask",
    "Piece",
    "RebalanceError",
    "Subscription",
    "TaskId",
    "TaskOffsetSums",
    "TopicPartition",
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
    "task_order",
]
