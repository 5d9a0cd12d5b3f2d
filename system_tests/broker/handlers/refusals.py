"""Error responses for every API: an error code and nothing else. Injected faults send them.

If a response has no error field for the whole request, each of its rows gets the code. Metadata has
such a field from v13 on (KIP-1102); lower versions are answered without the error.
"""

from collections.abc import Callable
from typing import Any

from kafka.protocol import admin, consumer, metadata, producer

from system_tests.broker.wire import api_versions_response

_TOP_LEVEL_FETCH_SINCE = 7
_TOP_LEVEL_METADATA_SINCE = 13
_BATCH_COORDINATORS_SINCE = 4
_BATCH_OFFSETS_SINCE = 8
_DELETE_BY_ID_SINCE = 6


def refuse(api: str, version: int, request: Any, error: int) -> Any | None:
    """The response with that error; None if this version has no field for it.

    Raises:
        KeyError: the API is not served.
    """
    return _REFUSALS[api](version, request, error)


def _produce(_: int, request: Any, error: int) -> Any:
    row = producer.ProduceResponse.TopicProduceResponse
    return producer.ProduceResponse(
        responses=[
            row(
                name=t.name,
                partition_responses=[
                    row.PartitionProduceResponse(
                        index=p.index, error_code=error, base_offset=-1, record_errors=[]
                    )
                    for p in t.partition_data
                ],
            )
            for t in request.topic_data
        ]
    )


def _fetch(version: int, request: Any, error: int) -> Any:
    if version >= _TOP_LEVEL_FETCH_SINCE:
        return consumer.FetchResponse(error_code=error, session_id=0, responses=[])
    row = consumer.FetchResponse.FetchableTopicResponse
    return consumer.FetchResponse(
        responses=[
            row(
                topic=t.topic,
                partitions=[
                    row.PartitionData(
                        partition_index=p.partition,
                        error_code=error,
                        high_watermark=-1,
                        aborted_transactions=None,
                        records=b"",
                    )
                    for p in t.partitions
                ],
            )
            for t in request.topics
        ]
    )


def _list_offsets(_: int, request: Any, error: int) -> Any:
    row = consumer.ListOffsetsResponse.ListOffsetsTopicResponse
    return consumer.ListOffsetsResponse(
        topics=[
            row(
                name=t.name,
                partitions=[
                    row.ListOffsetsPartitionResponse(
                        partition_index=p.partition_index, error_code=error
                    )
                    for p in t.partitions
                ],
            )
            for t in request.topics
        ]
    )


def _metadata(version: int, _: Any, error: int) -> Any | None:
    if version < _TOP_LEVEL_METADATA_SINCE:
        return None
    return metadata.MetadataResponse(
        brokers=[], cluster_id=None, controller_id=-1, topics=[], error_code=error
    )


def _offset_commit(_: int, request: Any, error: int) -> Any:
    row = consumer.OffsetCommitResponse.OffsetCommitResponseTopic
    return consumer.OffsetCommitResponse(
        topics=[
            row(
                name=t.name,
                partitions=[
                    row.OffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=error
                    )
                    for p in t.partitions
                ],
            )
            for t in request.topics
        ]
    )


def _offset_fetch(version: int, request: Any, error: int) -> Any:
    response = consumer.OffsetFetchResponse
    if version < _BATCH_OFFSETS_SINCE:
        return response(error_code=error, topics=[])
    return response(
        groups=[
            response.OffsetFetchResponseGroup(group_id=g.group_id, topics=[], error_code=error)
            for g in request.groups
        ]
    )


def _find_coordinator(version: int, request: Any, error: int) -> Any:
    response = metadata.FindCoordinatorResponse
    nowhere = {"node_id": -1, "host": "", "port": -1}
    if version < _BATCH_COORDINATORS_SINCE:
        return response(error_code=error, error_message=None, **nowhere)
    rows = [
        response.Coordinator(key=key, error_code=error, error_message=None, **nowhere)
        for key in request.coordinator_keys
    ]
    return response(coordinators=rows)


def _join_group(version: int, request: Any, error: int) -> Any:
    name = None if version >= 7 else ""  # noqa: PLR2004 - the version that allows null
    return consumer.JoinGroupResponse(
        error_code=error, protocol_name=name, leader="", member_id=request.member_id, members=[]
    )


def _offset_for_leader_epoch(_: int, request: Any, error: int) -> Any:
    row = consumer.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    return consumer.OffsetForLeaderEpochResponse(
        topics=[
            row(
                topic=t.topic,
                partitions=[
                    row.EpochEndOffset(error_code=error, partition=p.partition)
                    for p in t.partitions
                ],
            )
            for t in request.topics
        ]
    )


def _describe_groups(_: int, request: Any, error: int) -> Any:
    row = admin.DescribeGroupsResponse.DescribedGroup
    rows = [row(error_code=error, group_id=group_id, members=[]) for group_id in request.groups]
    return admin.DescribeGroupsResponse(groups=rows)


def _create_topics(_: int, request: Any, error: int) -> Any:
    row = admin.CreateTopicsResponse.CreatableTopicResult
    rows = [row(name=t.name, error_code=error, error_message=None) for t in request.topics]
    return admin.CreateTopicsResponse(topics=rows)


def _delete_topics(version: int, request: Any, error: int) -> Any:
    row = admin.DeleteTopicsResponse.DeletableTopicResult
    if version < _DELETE_BY_ID_SINCE:
        rows = [row(name=name, error_code=error) for name in request.topic_names]
    else:
        rows = [row(name=t.name, topic_id=t.topic_id, error_code=error) for t in request.topics]
    return admin.DeleteTopicsResponse(responses=rows)


def _create_partitions(_: int, request: Any, error: int) -> Any:
    row = admin.CreatePartitionsResponse.CreatePartitionsTopicResult
    rows = [row(name=t.name, error_code=error, error_message=None) for t in request.topics]
    return admin.CreatePartitionsResponse(results=rows)


def _describe_configs(_: int, request: Any, error: int) -> Any:
    row = admin.DescribeConfigsResponse.DescribeConfigsResult
    rows = [
        row(
            error_code=error,
            error_message=None,
            resource_type=r.resource_type,
            resource_name=r.resource_name,
            configs=[],
        )
        for r in request.resources
    ]
    return admin.DescribeConfigsResponse(results=rows)


def _delete_groups(_: int, request: Any, error: int) -> Any:
    row = admin.DeleteGroupsResponse.DeletableGroupResult
    rows = [row(group_id=group_id, error_code=error) for group_id in request.groups_names]
    return admin.DeleteGroupsResponse(results=rows)


def _describe_cluster(_: int, _request: Any, error: int) -> Any:
    return admin.DescribeClusterResponse(error_code=error, cluster_id="", brokers=[])


def _update_features(_: int, _request: Any, error: int) -> Any:
    return admin.UpdateFeaturesResponse(error_code=error, error_message=None, results=[])


_REFUSALS: dict[str, Callable[[int, Any, int], Any | None]] = {
    "ApiVersions": lambda _v, _r, error: api_versions_response(error),
    "CreatePartitions": _create_partitions,
    "CreateTopics": _create_topics,
    "DeleteGroups": _delete_groups,
    "DeleteTopics": _delete_topics,
    "DescribeCluster": _describe_cluster,
    "DescribeConfigs": _describe_configs,
    "DescribeGroups": _describe_groups,
    "Fetch": _fetch,
    "FindCoordinator": _find_coordinator,
    "Heartbeat": lambda _v, _r, error: consumer.HeartbeatResponse(error_code=error),
    "InitProducerId": lambda _v, _r, error: producer.InitProducerIdResponse(
        error_code=error, producer_id=-1, producer_epoch=-1
    ),
    "JoinGroup": _join_group,
    "LeaveGroup": lambda _v, _r, error: consumer.LeaveGroupResponse(error_code=error, members=[]),
    "ListGroups": lambda _v, _r, error: admin.ListGroupsResponse(error_code=error, groups=[]),
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "OffsetCommit": _offset_commit,
    "OffsetDelete": lambda _v, _r, error: consumer.OffsetDeleteResponse(
        error_code=error, topics=[]
    ),
    "OffsetFetch": _offset_fetch,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "Produce": _produce,
    "SyncGroup": lambda _v, _r, error: consumer.SyncGroupResponse(error_code=error, assignment=b""),
    "UpdateFeatures": _update_features,
}
