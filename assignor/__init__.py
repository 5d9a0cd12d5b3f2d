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
    "ConfigError",
    "CopartitionMismatch",
    "Diff",
    "Facts",
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
    "lag_warnings",
    "moves_of",
    "named_strategy",
    "parse_problem",
    "plan_tasks",
    "play",
    "play_problem",
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

_REASONS = {
    "Candidate": "reasons_candidates",
    "Change": "reasons_changes",
    "Diff": "reasons_moves",
    "Facts": "reasons_facts",
    "Move": "reasons_moves",
    "Reason": "reasons",
    "active_reason": "reasons",
    "candidates": "reasons_candidates",
    "changes": "reasons_changes",
    "copy_reason": "reasons_copies",
    "diff_of": "reasons_moves",
    "dropped": "reasons_copies",
    "dropped_reason": "reasons_copies",
    "facts_of": "reasons_facts",
}

if not TYPE_CHECKING:  # or a type checker would believe in every name

    def __getattr__(name: str) -> object:
        """Import what gives reasons only when somebody asks for one: members never do."""
        if name not in _REASONS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_REASONS[name]}"), name)
        return found


logging.getLogger(__name__).addHandler(logging.NullHandler())
