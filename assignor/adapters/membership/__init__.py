"""What the adapters share: one group member beside any client that calls assignors."""

from assignor.adapters.membership.client import ClientPort, Reporting
from assignor.adapters.membership.client_bytes import readable_metadata, unusable_answer
from assignor.adapters.membership.embedded import EmbeddedAssignor
from assignor.adapters.membership.member import SharedAssignor
from assignor.adapters.membership.options import offered_protocol
from assignor.adapters.membership.rejoin_timer import Cancellable, FollowupTimer

__all__ = [
    "Cancellable",
    "ClientPort",
    "EmbeddedAssignor",
    "FollowupTimer",
    "Reporting",
    "SharedAssignor",
    "offered_protocol",
    "readable_metadata",
    "unusable_answer",
]
