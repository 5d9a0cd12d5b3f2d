"""Inspection of live groups (sans-IO): versions, tasks, lags and findings from DescribeGroups."""

from assignor.inspection.group import (
    group_topics,
    inspect_group,
    is_broker_side,
    is_present,
    is_settling,
)
from assignor.inspection.members import look_at_member, thread_name
from assignor.inspection.routing import few
from assignor.inspection.saved_problem import problem_of
from assignor.inspection.topology_values import FamilyLook, FormLook, TopologiesLook
from assignor.inspection.values import (
    ClientLook,
    ClusterFacts,
    DescribedGroup,
    DescribedMember,
    Finding,
    GroupInspection,
    LeaderLook,
    MemberLook,
    TopicFacts,
    VersionsLook,
)

__all__ = [
    "ClientLook",
    "ClusterFacts",
    "DescribedGroup",
    "DescribedMember",
    "FamilyLook",
    "Finding",
    "FormLook",
    "GroupInspection",
    "LeaderLook",
    "MemberLook",
    "TopicFacts",
    "TopologiesLook",
    "VersionsLook",
    "few",
    "group_topics",
    "inspect_group",
    "is_broker_side",
    "is_present",
    "is_settling",
    "look_at_member",
    "problem_of",
    "thread_name",
]
