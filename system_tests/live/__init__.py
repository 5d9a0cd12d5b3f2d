"""Live bounces: real client processes on a broker, and checks of what they report."""

from system_tests.live.bounce import run_live_bounce
from system_tests.live.environment import Environment, topic_of
from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    MemberStarted,
    MemberStopped,
    OffsetsCommitted,
    PartitionsAssigned,
    PartitionsLost,
    RecordsProcessed,
    RejoinRequested,
    Report,
    SubscriptionWritten,
)
from system_tests.live.evidence.story import story_of_live
from system_tests.live.group import unsettled_reason
from system_tests.live.hold_back import HELD_VERSION
from system_tests.live.members.config import GroupConfig
from system_tests.live.options import CLIENT, LiveOptions, Switches, changed_options, conflict_of
from system_tests.live.order import (
    CLIENTS,
    MIXED,
    MIXED_CLIENTS,
    OrderError,
    bounce_order,
    check_order,
    find_member,
    member_names,
)
from system_tests.live.plan import LivePlan, PathError, Stage, plan_path
from system_tests.live.processes import MemberDiedError, Members, NotInTimeError, Screen
from system_tests.live.producer import WordProducer
from system_tests.live.report import Outcome, outcome_json, summary_lines
from system_tests.live.screen import PlainScreen, RecordingScreen, SilentScreen, TerminalScreen

__all__ = [
    "CLIENT",
    "CLIENTS",
    "HELD_VERSION",
    "MIXED",
    "MIXED_CLIENTS",
    "AnswersDecided",
    "AssignmentTaken",
    "Environment",
    "GroupConfig",
    "LiveOptions",
    "LivePlan",
    "MemberDiedError",
    "MemberFailed",
    "MemberStarted",
    "MemberStopped",
    "Members",
    "NotInTimeError",
    "OffsetsCommitted",
    "OrderError",
    "Outcome",
    "PartitionsAssigned",
    "PartitionsLost",
    "PathError",
    "PlainScreen",
    "RecordingScreen",
    "RecordsProcessed",
    "RejoinRequested",
    "Report",
    "Screen",
    "SilentScreen",
    "Stage",
    "SubscriptionWritten",
    "Switches",
    "TerminalScreen",
    "WordProducer",
    "bounce_order",
    "changed_options",
    "check_order",
    "conflict_of",
    "find_member",
    "member_names",
    "outcome_json",
    "plan_path",
    "run_live_bounce",
    "story_of_live",
    "summary_lines",
    "topic_of",
    "unsettled_reason",
]
