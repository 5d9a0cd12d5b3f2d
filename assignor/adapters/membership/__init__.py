"""What the adapters share: one group member beside any client that calls assignors."""

from assignor.adapters.membership.client_bytes import readable_metadata, unusable_answer
from assignor.adapters.membership.driver import Driver
from assignor.adapters.membership.embedded import EmbeddedMember
from assignor.adapters.membership.followups import RejoinTimer, in_a_thread
from assignor.adapters.membership.keywords import (
    ApplicationMemberKeywords,
    IntegratedMemberKeywords,
    MemberKeywords,
)
from assignor.adapters.membership.options import (
    OPTION_GROUPS,
    OPTIONS,
    MemberOptions,
    check_option,
    member_options,
)
from assignor.adapters.membership.port import (
    Cancellable,
    ClientPort,
    ClusterMetadata,
    check_listed,
)
from assignor.adapters.membership.reports import Reporter
from assignor.adapters.membership.setup import new_driver, new_member, offered_protocol
from assignor.adapters.membership.signatures import documented
from assignor.rebalance import UNKNOWN_GENERATION

__all__ = [
    "OPTIONS",
    "OPTION_GROUPS",
    "UNKNOWN_GENERATION",
    "ApplicationMemberKeywords",
    "Cancellable",
    "ClientPort",
    "ClusterMetadata",
    "Driver",
    "EmbeddedMember",
    "IntegratedMemberKeywords",
    "MemberKeywords",
    "MemberOptions",
    "RejoinTimer",
    "Reporter",
    "check_listed",
    "check_option",
    "documented",
    "in_a_thread",
    "member_options",
    "new_driver",
    "new_member",
    "offered_protocol",
    "readable_metadata",
    "unusable_answer",
]
