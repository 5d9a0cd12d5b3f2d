"""Administration of topics: CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs."""

import uuid
from collections.abc import Mapping
from typing import Any

from kafka.protocol import admin

from system_tests.broker.catalog import INVALID_PARTITIONS, UNKNOWN_TOPIC_OR_PARTITION
from system_tests.broker.handlers.table import Call, Handler

INVALID_REQUEST = 42
UNKNOWN_TOPIC_ID = 100

_NO_ID = uuid.UUID(int=0)
_BY_ID_SINCE = 6
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_FROM_TOPIC, _FROM_BROKER, _FROM_DEFAULT = 1, 4, 5
_TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
}


async def create_topics(call: Call) -> Any:
    """CreateTopics v2 to v7, with `validate_only`, on any node."""
    response = admin.CreateTopicsResponse
    cluster = call.cluster
    rows = []
    for wanted in call.request.topics:
        partitions, replicas = _shape(call, wanted)
        configs = {c.name: c.value for c in wanted.configs if c.value is not None}
        error, sentence = cluster.catalog.check(
            wanted.name, partitions, replicas, len(cluster.live), configs
        )
        topic_id = _NO_ID
        if error == 0 and not call.request.validate_only:
            topic_id = cluster.create_topic(wanted.name, partitions, configs, replicas).topic_id
        rows.append(
            response.CreatableTopicResult(
                name=wanted.name,
                topic_id=topic_id,
                error_code=error,
                error_message=sentence or None,
                num_partitions=partitions if error == 0 else -1,
                replication_factor=replicas if error == 0 else -1,
                configs=[
                    response.CreatableTopicResult.CreatableTopicConfigs(
                        name=name,
                        value=value,
                        read_only=False,
                        config_source=_FROM_TOPIC,
                        is_sensitive=False,
                    )
                    for name, value in sorted(configs.items())
                ],
            )
        )
    return response(topics=rows)


def _shape(call: Call, wanted: Any) -> tuple[int, int]:
    """(partitions, replicas) as requested, by an explicit assignment, or the defaults (-1)."""
    if wanted.assignments:
        return len(wanted.assignments), len(wanted.assignments[0].broker_ids)
    partitions = wanted.num_partitions
    if partitions == -1:
        partitions = call.cluster.config.default_partitions
    replicas = 1 if wanted.replication_factor == -1 else wanted.replication_factor
    return partitions, replicas


async def delete_topics(call: Call) -> Any:
    """DeleteTopics v1 to v6, by name or (v6) by id."""
    response = admin.DeleteTopicsResponse
    cluster = call.cluster
    rows = []
    if call.version < _BY_ID_SINCE:
        wanted = [(name, _NO_ID) for name in call.request.topic_names]
    else:
        wanted = [(topic.name, topic.topic_id or _NO_ID) for topic in call.request.topics]
    for name, topic_id in wanted:
        catalog = cluster.catalog
        topic = catalog.topic(name) if name is not None else catalog.topic_by_id(topic_id)
        error = UNKNOWN_TOPIC_OR_PARTITION if name is not None else UNKNOWN_TOPIC_ID
        if topic is not None:
            error = 0
            cluster.delete_topic(topic.name)
        rows.append(
            response.DeletableTopicResult(
                name=topic.name if topic else name,
                topic_id=topic.topic_id if topic else topic_id,
                error_code=error,
                error_message=None if topic else f"no topic {name or topic_id}",
            )
        )
    return response(responses=rows)


async def create_partitions(call: Call) -> Any:
    """CreatePartitions v0 to v3; the number of partitions can only grow."""
    response = admin.CreatePartitionsResponse
    cluster = call.cluster
    rows = []
    for wanted in call.request.topics:
        topic = cluster.catalog.topic(wanted.name)
        error, sentence = 0, None
        if topic is None:
            error, sentence = UNKNOWN_TOPIC_OR_PARTITION, f"no topic {wanted.name!r}"
        elif wanted.count <= len(topic.partitions):
            error = INVALID_PARTITIONS
            sentence = f"{wanted.count} partitions asked, {len(topic.partitions)} there; ask more"
        elif not call.request.validate_only:
            cluster.catalog.grow(topic, wanted.count, cluster.live)
        rows.append(
            response.CreatePartitionsTopicResult(
                name=wanted.name, error_code=error, error_message=sentence
            )
        )
    return response(results=rows)


async def describe_configs(call: Call) -> Any:
    """DescribeConfigs v1 to v4: the settings of topics and brokers that this broker uses."""
    response = admin.DescribeConfigsResponse
    results = []
    for resource in call.request.resources:
        error, sentence, values = _configs_of(call, resource)
        wanted = resource.configuration_keys
        results.append(
            response.DescribeConfigsResult(
                error_code=error,
                error_message=sentence,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[
                    _config_row(name, value, source)
                    for name, (value, source) in sorted(values.items())
                    if not wanted or name in wanted
                ],
            )
        )
    return response(results=results)


def _configs_of(call: Call, resource: Any) -> tuple[int, str | None, Mapping[str, tuple[str, int]]]:
    """(error code, sentence, value and source by name) of one resource."""
    if resource.resource_type == _TOPIC_RESOURCE:
        topic = call.cluster.catalog.topic(resource.resource_name)
        if topic is None:
            return UNKNOWN_TOPIC_OR_PARTITION, f"no topic {resource.resource_name!r}", {}
        limit = str(call.cluster.config.max_batch_bytes)
        defaults = {**_TOPIC_DEFAULTS, "max.message.bytes": limit}
        own = {name: (value, _FROM_TOPIC) for name, value in topic.configs.items()}
        return 0, None, {**{n: (v, _FROM_DEFAULT) for n, v in defaults.items()}, **own}
    if resource.resource_type == _BROKER_RESOURCE:
        settings = _broker_settings(call, resource.resource_name)
        return 0, None, {name: (value, _FROM_BROKER) for name, value in settings.items()}
    text = f"resource type {resource.resource_type}; topics are 2 and brokers are 4"
    return INVALID_REQUEST, text, {}


def _broker_settings(call: Call, name: str) -> dict[str, str]:
    config = call.cluster.config
    groups = config.coordinator
    return {
        "auto.create.topics.enable": str(config.auto_create_topics).lower(),
        "broker.id": name,
        "group.initial.rebalance.delay.ms": str(groups.initial_rebalance_delay_ms),
        "group.max.session.timeout.ms": str(groups.max_session_timeout_ms),
        "group.max.size": str(groups.group_max_size),
        "group.min.session.timeout.ms": str(groups.min_session_timeout_ms),
        "message.max.bytes": str(config.max_batch_bytes),
        "num.partitions": str(config.default_partitions),
        "offset.metadata.max.bytes": str(groups.offset_metadata_limit),
        "socket.request.max.bytes": str(config.max_frame_bytes),
    }


def _config_row(name: str, value: str, source: int) -> Any:
    result = admin.DescribeConfigsResponse.DescribeConfigsResult
    return result.DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=source == _FROM_BROKER,
        config_source=source,
        is_sensitive=False,
        synonyms=[],
        config_type=0,
        documentation=None,
    )


TOPIC_HANDLERS: dict[str, Handler] = {
    "CreatePartitions": create_partitions,
    "CreateTopics": create_topics,
    "DeleteTopics": delete_topics,
    "DescribeConfigs": describe_configs,
}
