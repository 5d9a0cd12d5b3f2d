"""kafka-python in virtual time: its consumer, fetcher and event loop, without a network.

Only what a broker would do is scripted: answers, and the group. kafka-python drives its event loop
on the caller's thread while its I/O thread is not started.
"""

from types import SimpleNamespace

from kafka.coordinator.base import Generation, MemberState
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.consumer import (
    FetchResponse,
    ListOffsetsResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse
from kafka.structs import TopicPartition

from tests.assignor.adapters.contract.cluster import TOPIC, UNKNOWN_TOPIC, Selector

_NODE = 0
_RELEASE = (2, 8)
_EARLIEST = -2


class _Net(NetworkSelector):
    def start(self):
        """Start no thread."""


class _Manager(KafkaConnectionManager):
    """Connections to a scripted cluster."""

    def __init__(self, net, cluster, note, **configs):
        super().__init__(net, **configs)
        # Its own, as `consumer_loop` and others look for attributes of the client.
        self._scripted, self._note = cluster, note
        self._bootstrap_future = Future().success(value=True)

    def connection_delay(self, node_id):
        return 0

    def get_connection(self, node_id, **options):
        raise NodeNotReadyError(node_id)

    def least_loaded_node(self):
        return _NODE

    def send(self, request, node_id=None, request_timeout_ms=None):
        future = Future()
        answer = getattr(self, f"_{type(request).__name__}")
        limit_s = self.config["request_timeout_ms"] / 1000
        end_s = self._scripted.clock.monotonic() + limit_s
        name = type(request).__name__
        is_groups = name in {"OffsetCommitRequest", "OffsetFetchRequest", "FindCoordinatorRequest"}

        def reply():
            if future.is_done or self.closed:
                return
            if self._scripted.clock.monotonic() >= end_s:
                future.failure(KafkaTimeoutError("no answer"))
                return
            if is_groups and self._scripted.is_silent:
                self._scripted.clock.later(limit_s, reply)
                return
            response = answer(request)
            if response is None:
                self._scripted.clock.later(limit_s, reply)
            elif isinstance(response, Exception):
                future.failure(response)
            elif response is not ...:
                future.success(response)
            else:
                self._scripted.waiters.append(reply)
                wait_s = request.max_wait_ms / 1000
                self._scripted.clock.later(wait_s, lambda: finish(request))

        def finish(request):
            if not future.is_done and not self.closed:
                future.success(self._fetched(request))

        self._scripted.clock.later(0.001, reply)
        return future

    def _MetadataRequest(self, request):  # noqa: N802 named as the request
        row = MetadataResponse.MetadataResponseTopic
        numbers = self._scripted.partitions()
        return MetadataResponse(
            version=10,
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    version=10, node_id=_NODE, host="memory", port=1, rack=None
                )
            ],
            cluster_id="memory",
            controller_id=_NODE,
            topics=[
                row(
                    version=10,
                    error_code=0 if numbers else UNKNOWN_TOPIC,
                    name=TOPIC,
                    topic_id=self._scripted.topic_id if numbers else None,
                    is_internal=False,
                    partitions=[
                        row.MetadataResponsePartition(
                            version=10, partition_index=n, leader_id=_NODE, leader_epoch=0
                        )
                        for n in numbers
                    ],
                )
            ],
        )

    def _fetched(self, request):
        row = FetchResponse.FetchableTopicResponse
        found = []
        for part in (part for topic in request.topics for part in topic.partitions):
            error, end, data = self._scripted.fetch(part.partition, part.fetch_offset)
            found.append(
                row.PartitionData(
                    partition_index=part.partition,
                    error_code=error,
                    high_watermark=end,
                    last_stable_offset=end,
                    log_start_offset=0,
                    aborted_transactions=None,
                    records=data,
                )
            )
        return FetchResponse(
            version=4, error_code=0, session_id=0, responses=[row(topic=TOPIC, partitions=found)]
        )

    def _FetchRequest(self, request):  # noqa: N802 named as the request
        failure = self._scripted.fetch_failures
        if failure:
            return KafkaConnectionError(failure.pop(0))
        parts = [part for topic in request.topics for part in topic.partitions]
        faults = self._scripted.fetch_errors
        is_waiting = all(
            p.partition not in faults
            and self._scripted.range_of(p.partition)[::2] == (0, p.fetch_offset)
            for p in parts
        )
        return ... if is_waiting else self._fetched(request)

    def _ListOffsetsRequest(self, request):  # noqa: N802 named as the request
        row = ListOffsetsResponse.ListOffsetsTopicResponse
        found = []
        for part in (part for _, parts in request.topics for part in parts):
            error, start, end = self._scripted.range_of(part.partition_index)
            found.append(
                row.ListOffsetsPartitionResponse(
                    partition_index=part.partition_index,
                    error_code=error,
                    timestamp=-1,
                    offset=start if part.timestamp == _EARLIEST else end,
                    leader_epoch=0,
                )
            )
        return ListOffsetsResponse(version=4, topics=[row(name=TOPIC, partitions=found)])

    def _OffsetFetchRequest(self, request):  # noqa: N802 named as the request
        row = OffsetFetchResponse.OffsetFetchResponseTopic
        found = [
            row.OffsetFetchResponsePartition(
                partition_index=n,
                committed_offset=self._scripted.committed.get((topic.name, n), -1),
                committed_leader_epoch=-1,
                metadata="",
                error_code=0,
            )
            for topic in request.topics
            for n in topic.partition_indexes
        ]
        topics = [row(name=TOPIC, partitions=found)]
        return OffsetFetchResponse(version=5, error_code=0, topics=topics)

    def _OffsetCommitRequest(self, request):  # noqa: N802 named as the request
        wanted = {
            (topic.name, part.partition_index): part.committed_offset
            for topic in request.topics
            for part in topic.partitions
        }
        codes = self._scripted.commit(wanted, self._note)
        if codes is None:
            return None
        row = OffsetCommitResponse.OffsetCommitResponseTopic
        parts = [
            row.OffsetCommitResponsePartition(version=5, partition_index=n, error_code=code)
            for (_, n), code in codes.items()
        ]
        return OffsetCommitResponse(
            version=5, topics=[row(version=5, name=TOPIC, partitions=parts)]
        )

    def _FindCoordinatorRequest(self, request):  # noqa: N802 named as the request
        return FindCoordinatorResponse(
            version=2, error_code=0, node_id=_NODE, host="memory", port=1
        )

    def _LeaveGroupRequest(self, request):  # noqa: N802 named as the request
        return SimpleNamespace(error_code=0, API_VERSION=1, members=[])


def settings(cluster, note=lambda _: None):
    """Return the settings of a consumer of a scripted cluster; `note` is told of commits."""

    def client(**configs):
        net = _Net(**configs | {"selector": lambda: Selector(cluster.clock)})
        return KafkaNetClient(net=net, manager=_Manager(net, cluster, note, **configs))

    return {"kafka_client": client, "api_version": _RELEASE}


def join(consumer, before_poll):
    """Make a consumer a member of a scripted group: each poll begins with `before_poll()`."""
    coordinator = consumer._coordinator
    consumer._cluster.start_refresh_loop()
    consumer._net.run(consumer._cluster.refresh_metadata)
    consumer._net.run(coordinator.ensure_coordinator_ready_async, 30_000)
    coordinator.state = MemberState.STABLE
    coordinator._generation = Generation(1, "member", "streams")
    coordinator._heartbeat_enabled = True
    coordinator.time_to_next_poll = lambda: 3.0

    def poll(timeout_ms=None):
        before_poll()
        coordinator.state = MemberState.STABLE
        coordinator._generation = Generation(1, "member", "streams")
        return coordinator.ensure_coordinator_ready(timeout_ms=timeout_ms)

    coordinator.poll = poll
    paused = consumer._subscription.is_paused

    def is_paused(partition):
        """Count steps of the fetcher, whose loop takes no time."""
        consumer._scripted_clock.turn()
        return paused(partition)

    consumer._subscription.is_paused = is_paused


def assign(consumer, partitions):
    """Assign partitions, as the answer of a leader does: those that stay keep their positions."""
    consumer._subscription.assign_from_subscribed([TopicPartition(*p) for p in sorted(partitions)])
