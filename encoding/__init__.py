"""Encode and decode subscription and assignment blobs in every version, and routing views.

Names of `encoding.view` and `encoding.inspection` are loaded with the first of them.
"""

import importlib
from typing import TYPE_CHECKING

from encoding.kafka import (
    EARLIEST_PROBEABLE_VERSION,
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    Assignment,
    FutureSubscription,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    read_assignment,
    read_subscription,
)
from encoding.native import (
    EARLIEST_NATIVE_VERSION,
    EMULATED_VERSIONS,
    NATIVE_VERSIONS,
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    partition_ranges,
)
from encoding.primitives import (
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    UNKNOWN_VERSION,
    AssignorError,
    DecodeError,
    EncodeError,
    HostInfo,
    PartitionsByHost,
    PartitionsByTask,
    RebalanceError,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    ViewForm,
    shown,
    task_order,
)

if TYPE_CHECKING:
    from encoding.inspection import *  # noqa: F403 those of its names that are in `__all__`
    from encoding.view import *  # noqa: F403 those of its names that are in `__all__`

__all__ = [
    "EARLIEST_NATIVE_VERSION",
    "EARLIEST_PROBEABLE_VERSION",
    "EMULATED_VERSIONS",
    "KAFKA_VERSIONS",
    "KNOWN_VERSIONS",
    "NATIVE_VERSIONS",
    "NO_REBALANCE",
    "RUNNING",
    "UNKNOWN_OFFSET_SUM",
    "UNKNOWN_VERSION",
    "Assignment",
    "AssignorError",
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
    "partition_ranges",
    "partitions_by_host",
    "read_assignment",
    "read_subscription",
    "shown",
    "subscription_from_fields",
    "subscription_to_fields",
    "task_order",
    "view_checksum",
    "view_reference",
]

if not TYPE_CHECKING:  # otherwise a type checker accepts every name

    def __getattr__(name: str) -> object:
        """Load a name of `encoding.view` or `encoding.inspection`."""
        for package in ("encoding.view", "encoding.inspection") if name in __all__ else ():
            module = importlib.import_module(package)
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
