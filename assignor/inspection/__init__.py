"""Inspection of live groups (sans-IO): versions, tasks, lags and findings from DescribeGroups."""

from assignor.inspection.group import (
    group_topics,
    inspect_group,
    is_broker_side,
    is_present,
    is_settling,
)
from assignor.inspection.members import look_at_member
from assignor.inspection.names import short_id, thread_name
from assignor.inspection.offsets import TopicOffsets, offsets_by_topic
from assignor.inspection.routing import few
from assignor.inspection.saved_problem import problem_line, problem_of
from assignor.inspection.streams_groups.look import (
    group_topics_of,
    look_at_streams_group,
    read_partitions,
)
from assignor.inspection.streams_groups.values import (
    DescribedStreamsGroup,
    InternalTopic,
    StreamsFacts,
    StreamsGroupLook,
    StreamsGroupMember,
    StreamsOffset,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    sorted_tasks,
)
from assignor.inspection.tasks import groups_below, is_changelog, is_internal
from assignor.inspection.topology_values import FamilyLook, FormLook, TopologiesLook
from assignor.inspection.values import (
    STREAMS_PROTOCOL,
    ClientLook,
    ClusterFacts,
    DescribedGroup,
    DescribedMember,
    Finding,
    GroupInspection,
    LeaderLook,
    MemberLook,
    TaskLook,
    TopicFacts,
    VersionsLook,
)

__all__ = [
    "STREAMS_PROTOCOL",
    "ClientLook",
    "ClusterFacts",
    "DescribedGroup",
    "DescribedMember",
    "DescribedStreamsGroup",
    "FamilyLook",
    "Finding",
    "FormLook",
    "GroupInspection",
    "InternalTopic",
    "LeaderLook",
    "MemberLook",
    "StreamsFacts",
    "StreamsGroupLook",
    "StreamsGroupMember",
    "StreamsOffset",
    "StreamsSubtopology",
    "StreamsTask",
    "StreamsTasks",
    "TaskLook",
    "TopicFacts",
    "TopicOffsets",
    "TopologiesLook",
    "VersionsLook",
    "few",
    "group_topics",
    "group_topics_of",
    "groups_below",
    "inspect_group",
    "is_broker_side",
    "is_changelog",
    "is_internal",
    "is_present",
    "is_settling",
    "look_at_member",
    "look_at_streams_group",
    "offsets_by_topic",
    "problem_line",
    "problem_of",
    "read_partitions",
    "short_id",
    "sorted_tasks",
    "thread_name",
]
