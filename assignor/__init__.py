"""Who runs which task: topology, group state, strategies, leader and member.

Sans-IO apart from `adapters` (which connect a client library) and `cli`.
"""

import logging

from assignor.config import AssignmentConfig, config_from_mapping, setting_texts, setting_value
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
from assignor.fallback import fallback_prior
from assignor.held import TasksHeld
from assignor.high_availability import high_availability
from assignor.leader import GroupAnswer, LeaderSettings, assign_group
from assignor.listener import PartitionsByTask, TasksListener
from assignor.member import MemberIdentity, Received, StreamsMember
from assignor.observer import (
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    Observation,
    Observer,
    RejoinRequested,
    SubscriptionWritten,
)
from assignor.partitions import TaskPlan, plan_tasks
from assignor.placing import LeaderKnowledge
from assignor.problem import (
    LagMemory,
    Problem,
    ProblemError,
    parse_problem,
    read_problem,
    result_of,
)
from assignor.simulate import Moves, Round, clients_after, moves_of, play, regroup, totals
from assignor.state import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    ClientInput,
    GroupState,
    Strategy,
    TaskAssignment,
    group_state,
    lag_warnings,
    validate,
)
from assignor.sticky import sticky
from assignor.strategies import (
    STRATEGIES,
    default_standbys,
    find_strategy,
    identity,
    named_strategy,
    run_strategy,
)
from assignor.subscriptions import GroupMember
from assignor.threads import assign_threads
from assignor.topology import RepartitionTopic, Subtopology, Topology

__all__ = [
    "LAG_RUNNING",
    "LAG_UNKNOWN",
    "NOBODY",
    "STRATEGIES",
    "AnswersDecided",
    "AssignmentConfig",
    "AssignmentTaken",
    "ClientInput",
    "ConfigError",
    "CopartitionMismatch",
    "GroupAnswer",
    "GroupMember",
    "GroupState",
    "LagMemory",
    "LeaderKnowledge",
    "LeaderRefused",
    "LeaderSettings",
    "MemberFailed",
    "MemberIdentity",
    "MemberRefused",
    "MissingSourceTopic",
    "Moves",
    "Observation",
    "Observer",
    "PartitionCountUnknown",
    "PartitionsByTask",
    "Problem",
    "ProblemError",
    "Received",
    "RejoinRequested",
    "RepartitionTopic",
    "Round",
    "Strategy",
    "StreamsMember",
    "SubscriptionWritten",
    "Subtopology",
    "TaskAssignment",
    "TaskAssignmentError",
    "TaskPlan",
    "TasksHeld",
    "TasksListener",
    "Topology",
    "TopologyError",
    "assign_group",
    "assign_threads",
    "clients_after",
    "config_from_mapping",
    "default_standbys",
    "fallback_prior",
    "find_strategy",
    "group_state",
    "high_availability",
    "identity",
    "lag_warnings",
    "moves_of",
    "named_strategy",
    "parse_problem",
    "plan_tasks",
    "play",
    "read_problem",
    "regroup",
    "result_of",
    "run_strategy",
    "setting_texts",
    "setting_value",
    "sticky",
    "totals",
    "validate",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
