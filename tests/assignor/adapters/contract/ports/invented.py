"""An invented client library with its port, its assignor and its loop: how a new one takes part.

Its leader reads no lags and creates no topics: that needs `watch_cluster`. It names one assignor,
so that the group can choose no other: `assignor_chosen` is for those that name several.
"""

import socket
import struct
import weakref

from kafka.protocol import consumer as api
from kafka.protocol.consumer import metadata
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from assignor.adapters import membership
from assignor.adapters.poll_arguments import check_member
from assignor.errors import TaskAssignmentError
from assignor.rebalance import GroupMember, by_topic
from system_tests.support.client_members import GROUP, TOPOLOGY

_SESSION_MS, _BEAT_S, _REBALANCES = 30_000, 0.1, 27
Metadata = metadata.ConsumerProtocolSubscription
Answer = metadata.ConsumerProtocolAssignment


class Consumer:
    """The library: one connection; `poll` joins if it has to, else it sends a heartbeat."""

    def __init__(self, servers, group_id, assignor):
        self._socket = socket.create_connection(servers[0].split(":"))
        self._stream = self._socket.makefile("rwb")
        self.group_id, self.assignor, self.topics = group_id, assignor, ()
        self.member_id, self.generation, self.assigned = "", -1, ()
        self.wants_join, self.is_joining = True, False

    def ask(self, request, response, version=3):
        request.API_VERSION = version
        request.with_header(correlation_id=1, client_id="invented")
        self._stream.write(request.encode(header=True, framed=True))
        self._stream.flush()
        [size] = struct.unpack(">i", self._stream.read(4))
        return response.decode(self._stream.read(size), version=version, header=True)

    def _ids(self):
        ids = {"generation_id": self.generation, "member_id": self.member_id}
        return ids | {"group_id": self.group_id, "group_instance_id": None}

    def partitions_for_topic(self, topic):
        row = MetadataRequest.MetadataRequestTopic(name=topic)
        found = self.ask(MetadataRequest(topics=[row]), MetadataResponse, 1)
        return [each.partition_index for each in found.topics[0].partitions]

    def poll(self):
        if self.wants_join:
            self.wants_join, self.is_joining = False, True
            self._join()
            self.is_joining = False
            return
        code = self.ask(api.HeartbeatRequest(**self._ids()), api.HeartbeatResponse).error_code
        self.wants_join = self.wants_join or code != 0
        if code not in {0, _REBALANCES}:
            self.member_id, self.generation = "", -1

    def _join(self):
        row = api.JoinGroupRequest.JoinGroupRequestProtocol
        request = api.JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_SESSION_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[row(name="stream", metadata=self.assignor.metadata(self.topics))],
        )
        joined, answers = self.ask(request, api.JoinGroupResponse), {}
        self.member_id, self.generation = joined.member_id, joined.generation_id
        if joined.leader == joined.member_id:
            members = {each.member_id: bytes(each.metadata) for each in joined.members}
            try:
                answers = self.assignor.assign(self, members)
            except TaskAssignmentError:
                self.wants_join = True
                return
        row = api.SyncGroupRequest.SyncGroupRequestAssignment
        rows = [row(member_id=name, assignment=each) for name, each in answers.items()]
        request = api.SyncGroupRequest(assignments=rows, **self._ids())
        synced = self.ask(request, api.SyncGroupResponse)
        if synced.error_code:
            self.wants_join = True
        else:
            self.assigned = self.assignor.on_assignment(bytes(synced.assignment))

    def subscription(self):
        return self.topics

    def close(self):
        leaves = api.LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        self.ask(leaves, api.LeaveGroupResponse, 1)
        self._stream.close()
        self._socket.close()


class Port:
    """`ClientPort` of a `Consumer`, which is a static member never, and whose broker answers."""

    start_timer = staticmethod(membership.in_a_thread)

    def __init__(self, consumer):
        self._consumer = weakref.proxy(consumer)
        self.group_instance_id, self.unheard_s = lambda: None, lambda: 0.0
        self.is_rebalancing = lambda: self._consumer.is_joining
        self.generation = lambda: self._consumer.generation
        self.member_id = lambda: self._consumer.member_id
        self.owned_partitions = lambda: self._consumer.assigned

    def request_rejoin(self):
        self._consumer.wants_join = True


class StreamsAssignor(membership.EmbeddedMember):
    """The member in a `Consumer`."""

    def attach(self, consumer):
        self._attach_to(consumer, group_id=consumer.group_id, listed=[self])
        self.driver.connect(Port(consumer))

    def metadata(self, topics):
        data, row = self.driver.join(), Metadata.TopicPartition
        owned = by_topic(self.driver.member.owned)
        rows = [row(topic=topic, partitions=numbers) for topic, numbers in owned]
        fields = {"topics": sorted(topics), "owned_partitions": rows}
        return Metadata(version=1, user_data=data, **fields).encode()

    def assign(self, consumer, members):
        group = []
        for name, data in members.items():
            value = Metadata.decode(membership.readable_metadata(data, Metadata.decode))
            group.append(GroupMember(member_id=name, user_data=bytes(value.user_data or b"")))
        answers = {}
        for name, each in self.driver.decide(consumer, group).items():
            fields = {"assigned_partitions": by_topic(each.partitions)}
            answers[name] = Answer(version=1, user_data=each.user_data, **fields).encode()
        return answers

    def on_assignment(self, answer):
        why = membership.unusable_answer(answer, Answer.decode, self.source_topics)
        self.driver.answer_replaced(why)
        value = Answer(version=1) if why else Answer.decode(answer)
        self.driver.take(value.partitions(), value.user_data, self.driver.port.generation())
        return value.partitions()


def run(member):
    """Poll until a `ClientMember` is to stop."""
    assignor = StreamsAssignor(TOPOLOGY, application_id=GROUP, **member._options)
    consumer = Consumer(member._servers, GROUP, assignor)
    assignor.attach(consumer)
    consumer.topics, member.assignor = assignor.source_topics, assignor
    try:
        while not member._stop.wait(_BEAT_S):
            consumer.poll()
            check_member(consumer, assignor)
    finally:
        consumer.close()
        assignor.close()
