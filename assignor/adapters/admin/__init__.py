"""Requests to live clusters with kafka-python: groups, offsets, feature levels, level topics."""

# ruff: noqa: E402 the release is checked before anything is imported from the library
import assignor.clients

assignor.clients.require_client("kafka-python")

from assignor.adapters.admin.client import (
    Admin,
    BrokerError,
    NotAuthorized,
    Refused,
    Target,
    open_admin,
)
from assignor.adapters.admin.facts import (
    EARLIEST,
    LATEST,
    cleanup_policies,
    committed_offsets,
    offsets_of_topics,
    partition_counts,
)
from assignor.adapters.admin.features import read_all_features, read_features, update_features
from assignor.adapters.admin.groups import (
    describe_group,
    describe_settled,
    list_groups,
    settled_members,
)
from assignor.adapters.admin.inspect import look_at_all_groups, look_at_group
from assignor.adapters.admin.level_sources import ClusterFeature, GroupLevels
from assignor.adapters.admin.level_topic import FeatureTopic, ReachedTopic
from assignor.adapters.admin.offsets import remove_offsets, set_offsets
from assignor.adapters.admin.properties import (
    client_settings,
    positive_milliseconds,
    read_properties,
)
from assignor.adapters.admin.topics import delete_topics
from assignor.adapters.servers import parse_servers

__all__ = [
    "EARLIEST",
    "LATEST",
    "Admin",
    "BrokerError",
    "ClusterFeature",
    "FeatureTopic",
    "GroupLevels",
    "NotAuthorized",
    "ReachedTopic",
    "Refused",
    "Target",
    "cleanup_policies",
    "client_settings",
    "committed_offsets",
    "delete_topics",
    "describe_group",
    "describe_settled",
    "list_groups",
    "look_at_all_groups",
    "look_at_group",
    "offsets_of_topics",
    "open_admin",
    "parse_servers",
    "partition_counts",
    "positive_milliseconds",
    "read_all_features",
    "read_features",
    "read_properties",
    "remove_offsets",
    "set_offsets",
    "settled_members",
    "update_features",
]
