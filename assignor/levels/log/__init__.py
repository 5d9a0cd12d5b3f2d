"""The feature log of a group, in a directory or in a compacted topic (KIP-584, KIP-778)."""

from assignor.levels.log.directory import (
    Committed,
    FeatureLog,
    LogFormat,
    format_log,
    look_at_log,
    opened_log,
    read_format,
)
from assignor.levels.log.reached import (
    ReachedView,
    reached_record,
    reached_topic_name,
    read_reached_topic,
)
from assignor.levels.log.records import NO_MINIMUMS, LogState, Note, leader_note, supported_here
from assignor.levels.log.topic import (
    TOPIC_SETTINGS,
    TopicChange,
    TopicRecord,
    TopicView,
    change_record,
    check_counted,
    read_topic,
    topic_name,
)

__all__ = [
    "NO_MINIMUMS",
    "TOPIC_SETTINGS",
    "Committed",
    "FeatureLog",
    "LogFormat",
    "LogState",
    "Note",
    "ReachedView",
    "TopicChange",
    "TopicRecord",
    "TopicView",
    "change_record",
    "check_counted",
    "format_log",
    "leader_note",
    "look_at_log",
    "opened_log",
    "reached_record",
    "reached_topic_name",
    "read_format",
    "read_reached_topic",
    "read_topic",
    "supported_here",
    "topic_name",
]
