"""One rebalance: the member's subscription, the leader's placement and answers, adoption."""

from assignor.rebalance.answer_bytes import MemberAnswer
from assignor.rebalance.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    by_topic,
    read_consumer_assignment,
    read_consumer_subscription,
)
from assignor.rebalance.finalized_levels import levels_said
from assignor.rebalance.held_tasks import PartitionsByTask, TasksHeld, TasksListener
from assignor.rebalance.leader import GroupAnswer, LeaderSettings, assign_group
from assignor.rebalance.member import StreamsMember
from assignor.rebalance.member_facts import MemberIdentity, Received
from assignor.rebalance.placing import LeaderKnowledge
from assignor.rebalance.record_budget import (
    GROUP_RECORD_LIMIT,
    RECORD_BYTES,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from assignor.rebalance.routing_view import HostMap, Routing, parse_endpoint
from assignor.rebalance.strategy_attempts import NO_FAILURES
from assignor.rebalance.subscriptions import GroupMember
from assignor.rebalance.threads import assign_threads

__all__ = [
    "GROUP_RECORD_LIMIT",
    "NO_FAILURES",
    "RECORD_BYTES",
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
    "StreamsMember",
    "TasksHeld",
    "TasksListener",
    "assign_group",
    "assign_threads",
    "by_topic",
    "fit_group",
    "levels_said",
    "parse_endpoint",
    "protocol_bytes",
    "read_consumer_assignment",
    "read_consumer_subscription",
]
