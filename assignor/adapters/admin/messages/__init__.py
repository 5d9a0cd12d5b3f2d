"""Messages of Kafka that kafka-python has no schema for, read by its own schema loader.

The JSON files are those of Apache Kafka 4.4.0 (`clients/src/main/resources/common/message`),
unchanged.
"""

from kafka.protocol.api_message import ApiMessage


class StreamsGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[call-arg,misc] # the client is untyped
    """Describe streams groups (KIP-1071), api key 89."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[call-arg,misc] # the client is untyped
    """The groups' states, topologies, members and tasks."""


__all__ = ["StreamsGroupDescribeRequest", "StreamsGroupDescribeResponse"]
