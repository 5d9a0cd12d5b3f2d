"""The names of `assignor.rebalance`, one list; other packages import them from there."""

from assignor.rebalance.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    by_topic,
    read_consumer_assignment,
    read_consumer_subscription,
    safe_consumer_subscription,
)
from assignor.rebalance.endpoints import parse_endpoint
from assignor.rebalance.forms.asking import NO_TOPOLOGIES, TopologyMemory
from assignor.rebalance.forms.carried import carried_from
from assignor.rebalance.forms.numbering import NOT_HERE
from assignor.rebalance.forms.reports import reached_of
from assignor.rebalance.forms.translation import renumbered
from assignor.rebalance.held_tasks import (
    PartitionsByTask,
    TasksHeld,
    TasksListener,
    waiting_subtopologies,
)
from assignor.rebalance.leader.answer_bytes import MemberAnswer
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.knowledge import LeaderSettings
from assignor.rebalance.leader.members import UNKNOWN_GENERATION, GroupMember
from assignor.rebalance.leader.parts.knowledge import LeaderKnowledge
from assignor.rebalance.leader.record_budget import (
    GROUP_RECORD_LIMIT,
    RECORD_BYTES,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.whole import GroupAnswer, assign_group
from assignor.rebalance.level_reports import reported_levels
from assignor.rebalance.member import StreamsMember
from assignor.rebalance.member_facts import MemberIdentity, Received, answered_persistent_version
from assignor.rebalance.rejoin_backoff import (
    NEW_PACE,
    AskAgain,
    End,
    Rejoin,
    RejoinLater,
    RejoinPace,
    Step,
    steps_after,
)
from assignor.rebalance.routing_view import HostMap, Routing, ServedByHost

__all__ = [
    "GROUP_RECORD_LIMIT",
    "NEW_PACE",
    "NONE_STALLED",
    "NOT_HERE",
    "NO_CLAIMS",
    "NO_TOPOLOGIES",
    "RECORD_BYTES",
    "UNKNOWN_GENERATION",
    "AskAgain",
    "ClaimMemory",
    "ConsumerAssignment",
    "ConsumerSubscription",
    "End",
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
    "Rejoin",
    "RejoinLater",
    "RejoinPace",
    "Routing",
    "ServedByHost",
    "StalledCopies",
    "Step",
    "StreamsMember",
    "TasksHeld",
    "TasksListener",
    "TopologyMemory",
    "answered_persistent_version",
    "assign_group",
    "by_topic",
    "carried_from",
    "fit_group",
    "parse_endpoint",
    "protocol_bytes",
    "reached_of",
    "read_consumer_assignment",
    "read_consumer_subscription",
    "renumbered",
    "reported_levels",
    "safe_consumer_subscription",
    "steps_after",
    "waiting_subtopologies",
]
