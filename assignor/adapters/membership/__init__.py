"""What the adapters share: one group member beside any client that calls assignors."""

from assignor.adapters.membership.client import (
    UNKNOWN_GENERATION,
    ClientPort,
    ClusterMetadata,
    check_listed,
)
from assignor.adapters.membership.client_bytes import readable_metadata, unusable_answer
from assignor.adapters.membership.core import MembershipCore
from assignor.adapters.membership.embedded import (
    EmbeddedMember,
    new_membership,
)
from assignor.adapters.membership.keywords import (
    ApplicationMemberKeywords,
    IntegratedMemberKeywords,
    MemberKeywords,
)
from assignor.adapters.membership.member import Membership
from assignor.adapters.membership.options import (
    OPTION_GROUPS,
    OPTIONS,
    MemberOptions,
    check_option,
    member_options,
)
from assignor.adapters.membership.rejoin_timer import Cancellable, FollowupTimer, in_a_thread
from assignor.adapters.membership.reports import Reporter
from assignor.adapters.membership.resources import Resources
from assignor.adapters.membership.setup import offered_protocol
from assignor.adapters.membership.signatures import documented

__all__ = [
    "OPTIONS",
    "OPTION_GROUPS",
    "UNKNOWN_GENERATION",
    "ApplicationMemberKeywords",
    "Cancellable",
    "ClientPort",
    "ClusterMetadata",
    "EmbeddedMember",
    "FollowupTimer",
    "IntegratedMemberKeywords",
    "MemberKeywords",
    "MemberOptions",
    "Membership",
    "MembershipCore",
    "Reporter",
    "Resources",
    "check_listed",
    "check_option",
    "documented",
    "in_a_thread",
    "member_options",
    "new_membership",
    "offered_protocol",
    "readable_metadata",
    "unusable_answer",
]
