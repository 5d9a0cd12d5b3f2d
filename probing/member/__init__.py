"""Version probing of a member (KIP-268): state, events, decision tables, commands."""

from probing.member.events import (
    AssignmentReceived,
    ClearSchedule,
    Command,
    Event,
    IgnoreTasks,
    KeepVersion,
    LevelsPolled,
    NativeAnswer,
    RebalanceStarted,
    Refuse,
    RejoinNow,
    ReportError,
    ScheduleRebalance,
    TimePassed,
    WriteNextTime,
)
from probing.member.level_cap import HELD_BACK, member_ranges, protocol_level
from probing.member.machine import FOLLOWUP_RULES, member_step
from probing.member.next_subscription import (
    MemberState,
    SubscriptionVersion,
    go_by,
    rejoin_for_levels,
    start_member,
    subscription_version,
)
from probing.member.used_version import MEMBER_RULES

__all__ = [
    "FOLLOWUP_RULES",
    "HELD_BACK",
    "MEMBER_RULES",
    "AssignmentReceived",
    "ClearSchedule",
    "Command",
    "Event",
    "IgnoreTasks",
    "KeepVersion",
    "LevelsPolled",
    "MemberState",
    "NativeAnswer",
    "RebalanceStarted",
    "Refuse",
    "RejoinNow",
    "ReportError",
    "ScheduleRebalance",
    "SubscriptionVersion",
    "TimePassed",
    "WriteNextTime",
    "go_by",
    "member_ranges",
    "member_step",
    "protocol_level",
    "rejoin_for_levels",
    "start_member",
    "subscription_version",
]
