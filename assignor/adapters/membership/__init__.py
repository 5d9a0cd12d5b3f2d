"""What the adapters share: one group member beside any client that calls assignors."""

from assignor.adapters.membership.embedded import EmbeddedAssignor
from assignor.adapters.membership.options import offered_protocol
from assignor.adapters.membership.rejoin_timer import Cancellable, FollowupTimer
from assignor.rebalance.consumer_protocol import by_topic

__all__ = [
    "Cancellable",
    "EmbeddedAssignor",
    "FollowupTimer",
    "by_topic",
    "offered_protocol",
]
