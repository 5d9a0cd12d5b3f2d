"""Kafka Streams' rebalance for Python consumer groups: topology, strategies, leader and member.

This package exports everything that an application imports, except the adapters for Kafka clients:
`assignor.adapters.kafka_python`, `assignor.adapters.aiokafka`, `assignor.adapters.confluent`. It
imports none of the clients. Only `adapters`, `cli`, `embedding`, `levels`, `stores` and `observe`
do I/O.
"""

import importlib
from typing import TYPE_CHECKING, Any

from assignor.config import AssignmentConfig, config_from_mapping
from assignor.embedding import (
    BYTES,
    JSON,
    TEXT,
    ClusterUnavailable,
    DictStore,
    InternalTopicSettings,
    KeyHosts,
    MemberStopped,
    Partitioner,
    ProcessDirectory,
    RunningTasks,
    SqliteStore,
    StateDirectoryLocked,
    TaskState,
    TaskStores,
    UnreadableRecord,
    partition_for_key,
)
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
from assignor.levels import LevelSource
from assignor.observe import (
    LoggingHook,
    Observation,
    Observer,
    Outcome,
    RebalanceEnd,
    RebalanceHook,
    RebalanceStart,
)
from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
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
from assignor.rebalance import (
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    PartitionsByTask,
    Routing,
    StreamsMember,
    TasksHeld,
    TasksListener,
    assign_group,
)
from assignor.stores import OffloadedPlans, PlanStore, StoreError
from assignor.topology import (
    RepartitionTopic,
    Subtopology,
    TaskPlan,
    Topology,
    plan_tasks,
)
from encoding import HostInfo, RebalanceError, TaskId, TopicPartition
from probing import ReleaseError

if TYPE_CHECKING:  # loaded when first used
    from assignor.problems import read_problem

__all__ = [
    "BYTES",
    "JSON",
    "LAG_RUNNING",
    "LAG_UNKNOWN",
    "NOBODY",
    "TEXT",
    "AssignmentConfig",
    "AssignmentError",
    "ClientInput",
    "ClientTasks",
    "ClusterUnavailable",
    "ConfigError",
    "CopartitionMismatch",
    "DictStore",
    "GroupAnswer",
    "GroupMember",
    "GroupState",
    "HostInfo",
    "InternalTopicSettings",
    "InvalidAssignment",
    "KeyHosts",
    "LeaderKnowledge",
    "LeaderRefused",
    "LeaderSettings",
    "LevelSource",
    "LoggingHook",
    "MemberIdentity",
    "MemberRefused",
    "MemberStopped",
    "MissingSourceTopic",
    "Observation",
    "Observer",
    "OffloadedPlans",
    "Outcome",
    "PartitionCountUnknown",
    "Partitioner",
    "PartitionsByTask",
    "PlanStore",
    "ProcessDirectory",
    "RebalanceEnd",
    "RebalanceError",
    "RebalanceHook",
    "RebalanceStart",
    "ReleaseError",
    "RepartitionTopic",
    "Routing",
    "RunningTasks",
    "SqliteStore",
    "StateDirectoryLocked",
    "StoreError",
    "Strategy",
    "StreamsMember",
    "Subtopology",
    "TaskAssignment",
    "TaskAssignmentError",
    "TaskId",
    "TaskPlan",
    "TaskState",
    "TaskStores",
    "TasksHeld",
    "TasksListener",
    "TopicPartition",
    "Topology",
    "TopologyError",
    "UnreadableRecord",
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
    "partition_for_key",
    "plan_tasks",
    "quotas",
    "read_problem",
    "run_strategy",
    "sticky",
    "thread_bands",
    "traffic_of",
    "validate",
]

# Modules that no member needs: exported names are looked up there when they are first used.
_LATE = {"read_problem": "assignor.problems"}


def __getattr__(name: str) -> Any:
    """Load what `_LATE` names (PEP 562)."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)
