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
from encoding.native_schema import (
    EARLIEST_NATIVE_VERSION,
    EMULATED_VERSIONS,
    NATIVE_VERSIONS,
    READABLE_SINCE,
)
from encoding.native_values import (
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    partition_ranges,
)
from encoding.schema import EARLIEST_PROBEABLE_VERSION, KAFKA_VERSIONS, KNOWN_VERSIONS
from encoding.subscription import decode_subscription, encode_subscription, read_subscription
from encoding.sums import TaskOffsetSums
from encoding.values import Assignment, FutureSubscription, Subscription
from encoding.view import (
    View,
    ViewReference,
    build_view,
    is_viewable,
    partitions_by_host,
    view_checksum,
    view_reference,
)
from encoding.view_codec import decode_reference, decode_view, encode_reference, encode_view
from encoding.view_delta import (
    ViewForm,
    ViewForms,
    ViewMismatch,
    apply_delta,
    choose_view_form,
    encode_delta,
    encode_view_forms,
)

__all__ = [
    "EARLIEST_NATIVE_VERSION",
    "EARLIEST_PROBEABLE_VERSION",
    "EMULATED_VERSIONS",
    "KAFKA_VERSIONS",
    "KNOWN_VERSIONS",
    "NATIVE_VERSIONS",
    "NO_REBALANCE",
    "READABLE_SINCE",
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
    "NativeAssignment",
    "NativeSubscription",
    "PartitionRange",
    "PartitionsByHost",
    "PartitionsByTask",
    "Piece",
    "RebalanceError",
    "Subscription",
    "TaskId",
    "TaskOffsetSums",
    "TopicPartition",
    "View",
    "ViewForm",
    "ViewForms",
    "ViewMismatch",
    "ViewReference",
    "apply_delta",
    "assignment_from_fields",
    "assignment_to_fields",
    "build_view",
    "choose_view_form",
    "decode_assignment",
    "decode_reference",
    "decode_subscription",
    "decode_view",
    "encode_assignment",
    "encode_delta",
    "encode_reference",
    "encode_subscription",
    "encode_view",
    "encode_view_forms",
    "explain",
    "is_viewable",
    "partition_ranges",
    "partitions_by_host",
    "read_assignment",
    "read_subscription",
    "subscription_from_fields",
    "subscription_to_fields",
    "task_order",
    "view_checksum",
    "view_reference",
]
