"""Metadata request version 13 for aiokafka, which itself supports versions up to 5.

A server can demand a rebootstrap only since version 13 (KIP-1102), so the supervisor sends its own
request. The request has no topics, because only the top-level error is needed.
"""

from typing import Any, ClassVar

from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

API_KEY = 3
VERSION = 13

# aiokafka has no type for the 16 bytes of a UUID.
_UUID = Schema(("most_significant", Int64), ("least_significant", Int64))


class DemandResponse(Response):  # type: ignore[misc] # aiokafka is untyped
    """A Metadata response of version 13."""

    API_KEY = API_KEY
    API_VERSION = VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString("utf-8")),
                ("topic_id", _UUID),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition_index", Int32),
                        ("leader_id", Int32),
                        ("leader_epoch", Int32),
                        ("replica_nodes", CompactArray(Int32)),
                        ("isr_nodes", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("topic_authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class _DemandStruct(RequestStruct):  # type: ignore[misc] # aiokafka is untyped
    FLEXIBLE_VERSION: ClassVar[bool] = True
    API_KEY = API_KEY
    API_VERSION = VERSION
    RESPONSE_TYPE = DemandResponse
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic_id", _UUID), ("name", CompactString("utf-8")), ("tags", TaggedFields)
            ),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class DemandRequest:
    """A request that asks a broker only whether it demands a rebootstrap."""

    @staticmethod
    def is_served(versions: dict[int, tuple[int, int]]) -> bool:
        """Return whether a broker with these API versions supports the request."""
        lowest, highest = versions.get(API_KEY, (0, -1))
        return lowest <= VERSION <= highest

    @staticmethod
    def prepare(_: dict[int, tuple[int, int]]) -> Any:
        """Return the request for `AIOKafkaConnection.send`."""
        return _DemandStruct([], False, False, {})  # noqa: FBT003 in the order of the wire
