"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol import consumer

from system_tests.broker.catalog import UNKNOWN_TOPIC_OR_PARTITION
from system_tests.broker.handlers.groups import is_coordinator, subscribed_topics
from system_tests.broker.handlers.table import Call, Handler
from system_tests.coordinator import CommitOffsets, CommittedOffset, ErrorCode, OffsetKey

_GROUPS_SINCE = 8


async def offset_commit(call: Call) -> Any:
    """OffsetCommit v2 to v9; unknown partitions get an error, the others are committed."""
    request = call.request
    wanted = {
        OffsetKey(topic.name, p.partition_index): CommittedOffset(
            p.committed_offset, p.committed_leader_epoch, p.committed_metadata or ""
        )
        for topic in request.topics
        for p in topic.partitions
    }
    errors: dict[OffsetKey, int] = dict.fromkeys(wanted, ErrorCode.NOT_COORDINATOR)
    if is_coordinator(call, request.group_id):
        known = {key: value for key, value in wanted.items() if call.cluster.catalog.log(*key)}
        errors = dict.fromkeys(wanted, UNKNOWN_TOPIC_OR_PARTITION)
        answer: Any = await call.cluster.ask(
            CommitOffsets(
                group_id=request.group_id,
                offsets=known,
                member_id=request.member_id,
                generation=request.generation_id_or_member_epoch,
                instance_id=request.group_instance_id,
            )
        )
        errors.update(answer.errors)
    response = consumer.OffsetCommitResponse
    row = response.OffsetCommitResponseTopic
    return response(
        topics=[
            row(
                name=topic,
                partitions=[
                    row.OffsetCommitResponsePartition(
                        partition_index=partition, error_code=errors[OffsetKey(topic, partition)]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in _by_topic(wanted).items()
        ]
    )


async def offset_fetch(call: Call) -> Any:
    """OffsetFetch v1 to v8: one group up to v7, several from v8 on."""
    request = call.request
    response = consumer.OffsetFetchResponse
    if call.version < _GROUPS_SINCE:
        if not is_coordinator(call, request.group_id):
            return response(error_code=ErrorCode.NOT_COORDINATOR, topics=[])
        found = _fetch(call, request.group_id, request.topics)
        return response(
            error_code=ErrorCode.NONE,
            topics=_offset_rows(found, response.OffsetFetchResponseTopic),
        )
    rows = []
    row = response.OffsetFetchResponseGroup
    for group in request.groups:
        if is_coordinator(call, group.group_id):
            found = _fetch(call, group.group_id, group.topics)
            topics = _offset_rows(found, row.OffsetFetchResponseTopics)
            rows.append(row(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE))
        else:
            error = ErrorCode.NOT_COORDINATOR
            rows.append(row(group_id=group.group_id, topics=[], error_code=error))
    return response(groups=rows)


async def offset_delete(call: Call) -> Any:
    """OffsetDelete v0 (KIP-496)."""
    request = call.request
    response = consumer.OffsetDeleteResponse
    if not is_coordinator(call, request.group_id):
        return response(error_code=ErrorCode.NOT_COORDINATOR, topics=[])
    keys = [
        OffsetKey(topic.name, p.partition_index)
        for topic in request.topics
        for p in topic.partitions
    ]
    subscribed = subscribed_topics(call, request.group_id)
    error, errors = call.cluster.coordinator.delete_offsets(request.group_id, keys, subscribed)
    row = response.OffsetDeleteResponseTopic
    return response(
        error_code=error,
        topics=[
            row(
                name=topic,
                partitions=[
                    row.OffsetDeleteResponsePartition(
                        partition_index=partition, error_code=errors[OffsetKey(topic, partition)]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in _by_topic(errors).items()
        ],
    )


def _fetch(call: Call, group_id: str, topics: Any) -> Mapping[OffsetKey, CommittedOffset]:
    keys = None
    if topics is not None:
        keys = [OffsetKey(topic.name, p) for topic in topics for p in topic.partition_indexes]
    return call.cluster.coordinator.fetch_offsets(group_id, keys)


def _by_topic(keys: Iterable[OffsetKey]) -> dict[str, list[int]]:
    """Partitions by topic, both in the order of the request."""
    partitions_by_topic: dict[str, list[int]] = defaultdict(list)
    for key in keys:
        partitions_by_topic[key.topic].append(key.partition)
    return partitions_by_topic


def _offset_rows(found: Mapping[OffsetKey, CommittedOffset], row: Any) -> list[Any]:
    # v8 renamed the inner struct along with the outer one; there is exactly one in either.
    name = "OffsetFetchResponsePartition"
    partition_row = getattr(row, name, None) or getattr(row, f"{name}s")
    rows = []
    for topic, partitions in _by_topic(found).items():
        inner = []
        for partition in partitions:
            committed = found[OffsetKey(topic, partition)]
            inner.append(
                partition_row(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=ErrorCode.NONE,
                )
            )
        rows.append(row(name=topic, partitions=inner))
    return rows


OFFSET_HANDLERS: dict[str, Handler] = {
    "OffsetCommit": offset_commit,
    "OffsetDelete": offset_delete,
    "OffsetFetch": offset_fetch,
}
