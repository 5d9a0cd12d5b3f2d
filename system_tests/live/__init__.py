"""Live bounces: real client processes on a broker, and a verdict over their reports."""

from system_tests.live.bounce import LiveBounce
from system_tests.live.conflicts import conflict_of
from system_tests.live.environment import World, topic_of
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
from system_tests.live.order import (
    CLIENTS,
    MIXED,
    OrderError,
    bounce_order,
    check_order,
    find_member,
    member_names,
)
from system_tests.live.plan import LiveOptions, LivePlan, Stage
from system_tests.live.processes import Crew, MemberDiedError, NotInTimeError, Screen
from system_tests.live.producer import WordProducer
from system_tests.live.report import Outcome, outcome_json, summary_lines
from system_tests.live.screen import PlainScreen, RecordingScreen, SilentScreen, TerminalScreen
from system_tests.live.upgrade import PathError, Switches, plan_path

__all__ = [
    "CLIENTS",
    "HELD_VERSION",
    "MIXED",
    "AnswersDecided",
    "AssignmentTaken",
    "Crew",
    "LiveBounce",
    "LiveOptions",
    "LivePlan",
    "MemberDiedError",
    "MemberFailed",
    "MemberStarted",
    "MemberStopped",
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
    "World",
    "bounce_order",
    "check_order",
    "conflict_of",
    "find_member",
    "member_names",
    "outcome_json",
    "plan_path",
    "story_of_live",
    "summary_lines",
    "topic_of",
    "unsettled_reason",
]
