"""One rebalance: the member's subscription, the leader's placement and answers, adoption."""

from assignor.rebalance.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    by_topic,
    read_consumer_assignment,
    read_consumer_subscription,
    safe_consumer_subscription,
)
from assignor.rebalance.endpoints import checked_endpoint, parse_endpoint
from assignor.rebalance.held_tasks import PartitionsByTask, TasksHeld, TasksListener
from assignor.rebalance.leader import (
    GROUP_RECORD_LIMIT,
    NO_CLAIMS,
    NO_FAILURES,
    NONE_STALLED,
    RECORD_BYTES,
    ClaimMemory,
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberAnswer,
    MemberBytes,
    assign_group,
    assign_threads,
    fit_group,
    levels_said,
    protocol_bytes,
)
from assignor.rebalance.member import StreamsMember
from assignor.rebalance.member_facts import MemberIdentity, Received
from assignor.rebalance.routing_view import HostMap, Routing, ServedByHost

__all__ = [
    "GROUP_RECORD_LIMIT",
    "NONE_STALLED",
    "NO_CLAIMS",
    "NO_FAILURES",
    "RECORD_BYTES",
    "ClaimMemory",
    "ConsumerAssignment",
    "ConsumerSubscription",
    "GroupAnswer",
    "GroupMember",
    "HostMap",
    "LeaderKnowledge",
    "LeaderSettings",
    "MemberAnswer",
    "MemberBytes",
    "MemberIdentity",
    "PartitionsByTask",
    "Received",
    "Routing",
    "ServedByHost",
    "StreamsMember",
    "TasksHeld",
    "TasksListener",
    "assign_group",
    "assign_threads",
    "by_topic",
    "checked_endpoint",
    "fit_group",
    "levels_said",
    "parse_endpoint",
    "protocol_bytes",
    "read_consumer_assignment",
    "read_consumer_subscription",
    "safe_consumer_subscription",
]
