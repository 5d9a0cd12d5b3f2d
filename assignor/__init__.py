"""Who runs which task: topology, group state, strategies, leader and member.

Sans-IO apart from `adapters` (which connect a client library) and `cli`.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from assignor.bands import Bands, quotas, thread_bands
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
from assignor.member import StreamsMember
from assignor.member_values import MemberIdentity, Received
from assignor.observe import Outcome, RebalanceEnd, RebalanceHook, RebalanceStart, RebalanceWatch
from assignor.observer import (
    AnswerHandled,
    AnswerRefused,
    AnswersDecided,
    AssignmentFailed,
    AssignmentTaken,
    MemberFailed,
    MembershipLost,
    Observation,
    Observer,
    RejoinRequested,
    SubscriptionWritten,
)
from assignor.partitions import SubtopologyWaits, TaskPlan, plan_tasks
from assignor.placing import LeaderKnowledge
from assignor.problem import (
    LagMemory,
    Problem,
    ProblemError,
    parse_problem,
    read_problem,
    result_of,
)
from assignor.problem_events import play_problem
from assignor.racks_traffic import traffic_of
from assignor.simulate import Moves, Round, clients_after, moves_of, play, regroup, totals
from assignor.spread import Spread
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

if TYPE_CHECKING:
    from assignor.inspection import inspect_group
    from assignor.inspection_problem import problem_of
    from assignor.inspection_values import (
        ClusterFacts,
        DescribedGroup,
        DescribedMember,
        GroupInspection,
        TopicFacts,
    )
    from assignor.reasons import Reason, active_reason
    from assignor.reasons_candidates import Candidate, candidates
    from assignor.reasons_changes import Change, changes
    from assignor.reasons_copies import copy_reason, dropped, dropped_reason
    from assignor.reasons_facts import Facts, facts_of
    from assignor.reasons_moves import Diff, Move, diff_of

__all__ = [
    "LAG_RUNNING",
    "LAG_UNKNOWN",
    "NOBODY",
    "STRATEGIES",
    "AnswerHandled",
    "AnswerRefused",
    "AnswersDecided",
    "AssignmentConfig",
    "AssignmentFailed",
    "AssignmentTaken",
    "Bands",
    "Candidate",
    "Change",
    "ClientInput",
    "ClusterFacts",
    "ConfigError",
    "CopartitionMismatch",
    "DescribedGroup",
    "DescribedMember",
    "Diff",
    "Facts",
    "GroupAnswer",
    "GroupInspection",
    "GroupMember",
    "GroupState",
    "LagMemory",
    "LeaderKnowledge",
    "LeaderRefused",
    "LeaderSettings",
    "MemberFailed",
    "MemberIdentity",
    "MemberRefused",
    "MembershipLost",
    "MissingSourceTopic",
    "Move",
    "Moves",
    "Observation",
    "Observer",
    "Outcome",
    "PartitionCountUnknown",
    "PartitionsByTask",
    "Problem",
    "ProblemError",
    "Reason",
    "RebalanceEnd",
    "RebalanceHook",
    "RebalanceStart",
    "RebalanceWatch",
    "Received",
    "RejoinRequested",
    "RepartitionTopic",
    "Round",
    "Spread",
    "Strategy",
    "StreamsMember",
    "SubscriptionWritten",
    "Subtopology",
    "SubtopologyWaits",
    "TaskAssignment",
    "TaskAssignmentError",
    "TaskPlan",
    "TasksHeld",
    "TasksListener",
    "TopicFacts",
    "Topology",
    "TopologyError",
    "active_reason",
    "assign_group",
    "assign_threads",
    "candidates",
    "changes",
    "clients_after",
    "config_from_mapping",
    "copy_reason",
    "default_standbys",
    "diff_of",
    "dropped",
    "dropped_reason",
    "facts_of",
    "fallback_prior",
    "find_strategy",
    "group_state",
    "high_availability",
    "identity",
    "inspect_group",
    "lag_warnings",
    "moves_of",
    "named_strategy",
    "parse_problem",
    "plan_tasks",
    "play",
    "play_problem",
    "problem_of",
    "quotas",
    "read_problem",
    "regroup",
    "result_of",
    "run_strategy",
    "setting_texts",
    "setting_value",
    "sticky",
    "thread_bands",
    "totals",
    "traffic_of",
    "validate",
]

_LATER = {
    "Candidate": "reasons_candidates",
    "Change": "reasons_changes",
    "ClusterFacts": "inspection_values",
    "DescribedGroup": "inspection_values",
    "DescribedMember": "inspection_values",
    "Diff": "reasons_moves",
    "Facts": "reasons_facts",
    "GroupInspection": "inspection_values",
    "Move": "reasons_moves",
    "Reason": "reasons",
    "TopicFacts": "inspection_values",
    "active_reason": "reasons",
    "candidates": "reasons_candidates",
    "changes": "reasons_changes",
    "copy_reason": "reasons_copies",
    "diff_of": "reasons_moves",
    "dropped": "reasons_copies",
    "dropped_reason": "reasons_copies",
    "facts_of": "reasons_facts",
    "inspect_group": "inspection",
    "problem_of": "inspection_problem",
}

if not TYPE_CHECKING:  # or a type checker would believe in every name

    def __getattr__(name: str) -> object:
        """Import reasons and looks only when somebody asks for them: members never do."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return found


logging.getLogger(__name__).addHandler(logging.NullHandler())
