"""Metadata, FindCoordinator and DescribeCluster."""

import uuid
from typing import Any

from kafka.protocol import admin, metadata

from probing.rebootstrap import REBOOTSTRAP_REQUIRED
from system_tests.broker.catalog import UNKNOWN_TOPIC_OR_PARTITION, Topic
from system_tests.broker.cluster import replica_nodes
from system_tests.broker.handlers.refusals import refuse
from system_tests.broker.handlers.table import Call, Handler
from system_tests.coordinator import ErrorCode

LEADER_NOT_AVAILABLE = 5
INVALID_REQUEST = 42
UNKNOWN_TOPIC_ID = 100

_GROUP_KEY = 0
_NULL_MEANS_ALL_SINCE = 1
_BATCH_SINCE = 4
_NO_ID = uuid.UUID(int=0)


async def metadata_of(call: Call) -> Any:
    """Metadata v0 to v13; creates missing topics if broker and client allow it."""
    cluster = call.cluster
    response = metadata.MetadataResponse
    request = call.request
    if call.node_id in cluster.rebootstrap_demanded:
        # KIP-1102: the error as a proxy sends it; versions below 13 have no field for it.
        demand = refuse("Metadata", call.version, request, REBOOTSTRAP_REQUIRED)
        if demand is not None:
            return demand
    wants_all = request.topics is None or (
        call.version < _NULL_MEANS_ALL_SINCE and not request.topics
    )
    if wants_all:
        rows = [_topic_row(call, name, _NO_ID) for name in cluster.catalog.names()]
    else:
        for topic in request.topics:
            _create_if_allowed(call, topic.name)
        rows = [_topic_row(call, t.name, t.topic_id or _NO_ID) for t in request.topics]
    return response(
        brokers=[
            response.MetadataResponseBroker(
                node_id=node_id, host=host, port=port, rack=cluster.config.rack_of(node_id)
            )
            for node_id, (host, port) in sorted(cluster.address_by_node.items())
        ],
        cluster_id=cluster.config.cluster_id,
        controller_id=cluster.controller_id,
        topics=rows,
        error_code=ErrorCode.NONE,
    )


def _create_if_allowed(call: Call, name: str | None) -> None:
    cluster = call.cluster
    if not (cluster.config.auto_create_topics and call.request.allow_auto_topic_creation and name):
        return
    error, _ = cluster.catalog.check(name, cluster.config.default_partitions, 1, 1)
    if error == 0:
        cluster.create_topic(name)


def _topic_row(call: Call, name: str | None, topic_id: uuid.UUID) -> Any:
    row = metadata.MetadataResponse.MetadataResponseTopic
    catalog = call.cluster.catalog
    topic = catalog.topic(name) if name is not None else catalog.topic_by_id(topic_id)
    if topic is None:
        error = UNKNOWN_TOPIC_OR_PARTITION if name is not None else UNKNOWN_TOPIC_ID
        return row(error_code=error, name=name, topic_id=topic_id, partitions=[])
    return row(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=False,
        partitions=[_partition_row(call, topic, number) for number in range(len(topic.partitions))],
    )


def _partition_row(call: Call, topic: Topic, number: int) -> Any:
    nodes = replica_nodes(topic, number, call.cluster.live)
    leader = topic.leaders[number]
    return metadata.MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=LEADER_NOT_AVAILABLE if leader < 0 else ErrorCode.NONE,
        partition_index=number,
        leader_id=leader,
        leader_epoch=topic.partitions[number].leader_epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
        offline_replicas=[],
    )


async def find_coordinator(call: Call) -> Any:
    """FindCoordinator v0 to v4, for groups; transactions have no coordinator here."""
    request = call.request
    response = metadata.FindCoordinatorResponse
    if call.version >= _BATCH_SINCE:
        rows = [
            response.Coordinator(key=key, **_coordinator(call, key))
            for key in request.coordinator_keys
        ]
        return response(coordinators=rows)
    return response(**_coordinator(call, request.key))


def _coordinator(call: Call, key: str) -> dict[str, Any]:
    nowhere = {"node_id": -1, "host": "", "port": -1}
    if call.request.key_type != _GROUP_KEY:
        text = "this broker coordinates groups only; use key_type 0"
        return {"error_code": INVALID_REQUEST, "error_message": text, **nowhere}
    if not key:
        text = "the group id is empty; give one"
        return {"error_code": ErrorCode.INVALID_GROUP_ID, "error_message": text, **nowhere}
    node_id = call.cluster.coordinator_of(key)
    if node_id < 0:
        text = "no node runs"
        return {
            "error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "error_message": text,
            **nowhere,
        }
    host, port = call.cluster.address_by_node[node_id]
    return {
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "node_id": node_id,
        "host": host,
        "port": port,
    }


async def describe_cluster(call: Call) -> Any:
    """DescribeCluster v0 and v1 (KIP-700)."""
    cluster = call.cluster
    response = admin.DescribeClusterResponse
    return response(
        error_code=ErrorCode.NONE,
        error_message=None,
        endpoint_type=1,
        cluster_id=cluster.config.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[
            response.DescribeClusterBroker(
                broker_id=node_id, host=host, port=port, rack=cluster.config.rack_of(node_id)
            )
            for node_id, (host, port) in sorted(cluster.address_by_node.items())
        ],
    )


CLUSTER_HANDLERS: dict[str, Handler] = {
    "DescribeCluster": describe_cluster,
    "FindCoordinator": find_coordinator,
    "Metadata": metadata_of,
}
