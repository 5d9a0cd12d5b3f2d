"""Records: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId."""

from dataclasses import dataclass
from typing import Any

from kafka.protocol import consumer, producer

from system_tests.broker.catalog import UNKNOWN_TOPIC_OR_PARTITION
from system_tests.broker.handlers.table import Call, DropConnectionError, Handler
from system_tests.broker.partition_log import (
    INVALID_RECORD,
    OFFSET_OUT_OF_RANGE,
    Appended,
    PartitionLog,
    TimestampOffset,
)
from system_tests.broker.transactions import CONTROL, TRANSACTIONAL, attributes_of

NOT_LEADER_OR_FOLLOWER = 6
INVALID_REQUIRED_ACKS = 21
INVALID_REQUEST = 42
FETCH_SESSION_ID_NOT_FOUND = 70
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75

_EARLIEST, _LATEST, _MAX_TIMESTAMP = -2, -1, -3
_READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class _Found:
    """A partition's log, or the error code if this node does not serve it."""

    error: int
    log: PartitionLog | None = None


def _find(call: Call, topic: str, partition: int, leader_epoch: int = -1) -> _Found:
    log = call.cluster.catalog.log(topic, partition)
    known = call.cluster.catalog.topic(topic)
    if log is None or known is None:
        return _Found(UNKNOWN_TOPIC_OR_PARTITION)
    if known.leaders[partition] != call.node_id:
        return _Found(NOT_LEADER_OR_FOLLOWER)
    if 0 <= leader_epoch < log.leader_epoch:
        return _Found(FENCED_LEADER_EPOCH)
    if leader_epoch > log.leader_epoch:
        return _Found(UNKNOWN_LEADER_EPOCH)
    return _Found(0, log)


async def produce(call: Call) -> Any:
    """Produce v3 to v9. With acks=0 there is no response, and an error closes the connection."""
    request = call.request
    response = producer.ProduceResponse
    row = response.TopicProduceResponse
    topics = []
    failed = False
    for topic in request.topic_data:
        partitions = []
        for part in topic.partition_data:
            appended = _append(call, topic.name, part)
            failed = failed or appended.error != 0
            partitions.append(
                row.PartitionProduceResponse(
                    index=part.index,
                    error_code=appended.error,
                    base_offset=appended.base_offset,
                    log_start_offset=appended.start_offset,
                    error_message=appended.message,
                    record_errors=[],
                )
            )
        topics.append(row(name=topic.name, partition_responses=partitions))
    call.cluster.announce_append()
    if request.acks != 0:
        return response(responses=topics)
    if failed:
        raise DropConnectionError("a produce request with acks=0 failed")
    return None


def _append(call: Call, topic: str, part: Any) -> Appended:
    request = call.request
    if request.acks not in (-1, 0, 1):
        return Appended(INVALID_REQUIRED_ACKS, message=f"acks={request.acks}; use -1, 0 or 1")
    if request.transactional_id is not None:
        return Appended(INVALID_REQUEST, message="transactions are not served by this broker")
    found = _find(call, topic, part.index)
    if found.log is None:
        return Appended(found.error)
    data = bytes(part.records or b"")
    if attributes_of(data) & (CONTROL | TRANSACTIONAL):
        why = "transactional and control batches are not accepted from clients"
        return Appended(INVALID_RECORD, message=why)
    return found.log.append(data)


async def fetch(call: Call) -> Any:
    """Fetch v4 to v12; waits until `min_bytes` are available or the lower `max_wait_ms` is over.

    Fetch sessions (KIP-227) are declined with session id 0, as a broker with a full session cache
    does, so every request names all its partitions.
    """
    request = call.request
    response = consumer.FetchResponse
    if request.session_id != 0:
        return response(error_code=FETCH_SESSION_ID_NOT_FOUND, session_id=0, responses=[])
    wait_ms = min(request.max_wait_ms, call.cluster.config.max_fetch_wait_ms)
    deadline_ms = call.cluster.now_ms() + wait_ms
    while True:
        topics, size, has_error = _read(call)
        left_ms = deadline_ms - call.cluster.now_ms()
        if size >= request.min_bytes or has_error or left_ms <= 0:
            return response(error_code=0, session_id=0, responses=topics)
        await call.cluster.wait_for_append(left_ms / 1_000)


def _read(call: Call) -> tuple[list[Any], int, bool]:
    """(rows, bytes of records, whether a partition failed) of one read of the logs."""
    request = call.request
    row = consumer.FetchResponse.FetchableTopicResponse
    left = request.max_bytes
    size = 0
    has_error = False
    topics = []
    for topic in request.topics:
        partitions = []
        for part in topic.partitions:
            found = _find(call, topic.topic, part.partition, part.current_leader_epoch)
            limit = min(left, part.partition_max_bytes)
            read = _read_partition(request, part, found, limit, is_first=size == 0)
            left -= len(read.records)
            size += len(read.records)
            has_error = has_error or read.error_code != 0
            partitions.append(read)
        topics.append(row(topic=topic.topic, partitions=partitions))
    return topics, size, has_error


def _read_partition(request: Any, part: Any, found: _Found, limit: int, *, is_first: bool) -> Any:
    """Return the row of one partition; with committed transactions only, if that is asked for."""
    row = consumer.FetchResponse.FetchableTopicResponse.PartitionData
    log = found.log
    if log is None or not log.start_offset <= part.fetch_offset <= log.end_offset:
        return row(
            partition_index=part.partition,
            error_code=found.error or OFFSET_OUT_OF_RANGE,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=b"",
        )
    is_committed = request.isolation_level == _READ_COMMITTED
    end_offset = log.stable_end_offset if is_committed else log.end_offset
    aborted = log.transactions.aborted(part.fetch_offset, end_offset) if is_committed else None
    return row(
        partition_index=part.partition,
        error_code=0,
        high_watermark=log.end_offset,
        last_stable_offset=log.stable_end_offset,
        log_start_offset=log.start_offset,
        aborted_transactions=aborted
        and [
            row.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in aborted
        ],
        records=log.read(part.fetch_offset, limit, at_least_one=is_first, end_offset=end_offset),
    )


async def list_offsets(call: Call) -> Any:
    """ListOffsets v1 to v7: earliest, latest, first at a timestamp, greatest timestamp."""
    response = consumer.ListOffsetsResponse
    row = response.ListOffsetsTopicResponse
    topics = []
    for topic in call.request.topics:
        partitions = []
        for part in topic.partitions:
            found = _find(call, topic.name, part.partition_index, part.current_leader_epoch)
            offset, timestamp_ms, epoch = -1, -1, -1
            if found.log is not None:
                is_committed = call.request.isolation_level == _READ_COMMITTED
                end_offset = found.log.stable_end_offset if is_committed else found.log.end_offset
                offset, timestamp_ms = _offset_at(found.log, part.timestamp, end_offset)
                epoch = found.log.leader_epoch if offset >= 0 else -1
            partitions.append(
                row.ListOffsetsPartitionResponse(
                    partition_index=part.partition_index,
                    error_code=found.error,
                    timestamp=timestamp_ms,
                    offset=offset,
                    leader_epoch=epoch,
                )
            )
        topics.append(row(name=topic.name, partitions=partitions))
    return response(topics=topics)


def _offset_at(log: PartitionLog, timestamp: int, end_offset: int) -> tuple[int, int]:
    if timestamp == _EARLIEST:
        return log.start_offset, -1
    if timestamp == _LATEST:
        return end_offset, -1
    is_max = timestamp == _MAX_TIMESTAMP
    found = log.max_timestamp() if is_max else log.find_timestamp(timestamp)
    return found if found.offset < end_offset else TimestampOffset(-1, -1)


async def offset_for_leader_epoch(call: Call) -> Any:
    """OffsetForLeaderEpoch v2 to v4: the end offset of an epoch (KIP-320)."""
    response = consumer.OffsetForLeaderEpochResponse
    row = response.OffsetForLeaderTopicResult
    topics = []
    for topic in call.request.topics:
        partitions = []
        for part in topic.partitions:
            found = _find(call, topic.topic, part.partition, part.current_leader_epoch)
            epoch, end_offset = -1, -1
            if found.log is not None:
                epoch, end_offset = found.log.epoch_end(part.leader_epoch)
            partitions.append(
                row.EpochEndOffset(
                    error_code=found.error,
                    partition=part.partition,
                    leader_epoch=epoch,
                    end_offset=end_offset,
                )
            )
        topics.append(row(topic=topic.topic, partitions=partitions))
    return response(topics=topics)


async def init_producer_id(call: Call) -> Any:
    """InitProducerId v0 to v4 for idempotent producers; transactions are refused."""
    request = call.request
    response = producer.InitProducerIdResponse
    if request.transactional_id is not None:
        return response(error_code=INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    if request.producer_id >= 0 and request.producer_epoch >= 0:
        # KIP-360: the producer keeps its id and gets the next epoch.
        epoch = request.producer_epoch + 1
        return response(error_code=0, producer_id=request.producer_id, producer_epoch=epoch)
    new_id = call.cluster.next_producer_id()
    return response(error_code=0, producer_id=new_id, producer_epoch=0)


RECORD_HANDLERS: dict[str, Handler] = {
    "Fetch": fetch,
    "InitProducerId": init_producer_id,
    "ListOffsets": list_offsets,
    "OffsetForLeaderEpoch": offset_for_leader_epoch,
    "Produce": produce,
}
