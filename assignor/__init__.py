"""Kafka Streams' rebalance for Python consumer groups: topology, strategies, leader and member.

Everything that an embedding application imports is here; adapters of Kafka clients are in
`assignor.adapters`. Only `adapters`, `cli`, `embedding`, `levels`, `stores` and `observe` do I/O.
"""

import logging

from assignor.config import AssignmentConfig, config_from_mapping
from assignor.embedding import RunningTasks
from assignor.errors import (
    ConfigError,
    CopartitionMismatch,
    LeaderRefused,
    MemberRefused,
    MissingSourceTopic,
    PartitionCountUnknown,
    TaskAssignmentError,
    TopologyError,
)
from assignor.observe import (
    Observation,
    Observer,
    Outcome,
    RebalanceEnd,
    RebalanceHook,
    RebalanceStart,
    RebalanceWatch,
)
from assignor.placement import (
    STRATEGIES,
    ClientInput,
    GroupState,
    Strategy,
    TaskAssignment,
    default_standbys,
    fallback_prior,
    find_strategy,
    group_state,
    high_availability,
    identity,
    named_strategy,
    quotas,
    run_strategy,
    sticky,
    thread_bands,
    validate,
)
from assignor.placement.racks import traffic_of
from assignor.problems import read_problem
from assignor.rebalance import (
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    PartitionsByTask,
    Received,
    StreamsMember,
    TasksHeld,
    TasksListener,
    assign_group,
)
from assignor.topology import (
    RepartitionTopic,
    Subtopology,
    SubtopologyWaits,
    TaskPlan,
    Topology,
    plan_tasks,
)
from encoding import TaskId, TopicPartition

__all__ = [
    "STRATEGIES",
    "AssignmentConfig",
    "ClientInput",
    "ConfigError",
    "CopartitionMismatch",
    "GroupAnswer",
    "GroupMember",
    "GroupState",
    "LeaderKnowledge",
    "LeaderRefused",
    "LeaderSettings",
    "MemberIdentity",
    "MemberRefused",
    "MissingSourceTopic",
    "Observation",
    "Observer",
    "Outcome",
    "PartitionCountUnknown",
    "PartitionsByTask",
    "RebalanceEnd",
    "RebalanceHook",
    "RebalanceStart",
    "RebalanceWatch",
    "Received",
    "RepartitionTopic",
    "RunningTasks",
    "Strategy",
    "StreamsMember",
    "Subtopology",
    "SubtopologyWaits",
    "TaskAssignment",
    "TaskAssignmentError",
    "TaskId",
    "TaskPlan",
    "TasksHeld",
    "TasksListener",
    "TopicPartition",
    "Topology",
    "TopologyError",
    "assign_group",
    "config_from_mapping",
    "default_standbys",
    "fallback_prior",
    "find_strategy",
    "group_state",
    "high_availability",
    "identity",
    "named_strategy",
    "plan_tasks",
    "quotas",
    "read_problem",
    "run_strategy",
    "sticky",
    "thread_bands",
    "traffic_of",
    "validate",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
