"""The assignment of a streams group (KIP-1071): a model of the assignor of Kafka's brokers.

Import from here; the modules of this package are its steps.
"""

from assignor.placement.streams_groups.assign import MemberSpec, MemberTasks, assign_members
from assignor.placement.streams_groups.members import member_specs
from assignor.placement.streams_groups.strategy import kafka_streams_group

__all__ = [
    "MemberSpec",
    "MemberTasks",
    "assign_members",
    "kafka_streams_group",
    "member_specs",
]
