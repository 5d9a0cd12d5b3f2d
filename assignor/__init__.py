"""Kafka Streams' rebalance for Python consumer groups: topology, strategies, leader and member.

This package exports everything that an application imports, except the adapters for Kafka clients,
which are in `assignor.adapters`. Only `adapters`, `cli`, `embedding`, `levels`, `stores` and
`observe` do I/O.
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
    Outcome,
    RebalanceEnd,
    RebalanceHook,
    RebalanceStart,
)
from assignor.placement import (
    AssignmentError,
    ClientInput,
    ClientTasks,
    GroupState,
    InvalidAssignment,
    Strategy,
    TaskAssignment,
    assignment_from,
    by_client,
    by_task,
    client_inputs,
    default_standbys,
    fallback_prior,
    find_strategy,
    group_state,
    high_availability,
    identity,
    named_strategy,
    nearest_caught_up_client,
    quotas,
    run_strategy,
    sticky,
    thread_bands,
    validate,
)
from assignor.placement.racks import (
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
    traffic_of,
)
from assignor.problems import read_problem
from assignor.rebalance import (
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    PartitionsByTask,
    StreamsMember,
    TasksHeld,
    TasksListener,
    assign_group,
)
from assignor.topology import (
    RepartitionTopic,
    Subtopology,
    TaskPlan,
    Topology,
    plan_tasks,
)
from encoding import TaskId, TopicPartition

__all__ = [
    "AssignmentConfig",
    "AssignmentError",
    "ClientInput",
    "ClientTasks",
    "ConfigError",
    "CopartitionMismatch",
    "GroupAnswer",
    "GroupMember",
    "GroupState",
    "InvalidAssignment",
    "LeaderKnowledge",
    "LeaderRefused",
    "LeaderSettings",
    "MemberIdentity",
    "MemberRefused",
    "MissingSourceTopic",
    "Outcome",
    "PartitionCountUnknown",
    "PartitionsByTask",
    "RebalanceEnd",
    "RebalanceHook",
    "RebalanceStart",
    "RepartitionTopic",
    "RunningTasks",
    "Strategy",
    "StreamsMember",
    "Subtopology",
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
    "assignment_from",
    "by_client",
    "by_task",
    "client_inputs",
    "config_from_mapping",
    "default_standbys",
    "fallback_prior",
    "find_strategy",
    "group_state",
    "high_availability",
    "identity",
    "named_strategy",
    "nearest_caught_up_client",
    "optimize_rack_aware_active_tasks",
    "optimize_rack_aware_standby_tasks",
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
