"""What the adapters share: one group member beside any client that calls assignors."""

from assignor.adapters.membership.embedded import EmbeddedAssignor
from assignor.adapters.membership.options import offered_protocol
from assignor.adapters.membership.rejoin_timer import Cancellable, FollowupTimer

__all__ = [
    "Cancellable",
    "EmbeddedAssignor",
    "FollowupTimer",
    "offered_protocol",
]
