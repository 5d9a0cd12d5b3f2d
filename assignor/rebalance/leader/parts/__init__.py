"""The parts of a leader that can be absent: what the stages call, and what holds without a part."""

from assignor.rebalance.leader.parts.absent import (
    GroupLevels,
    LeaderParts,
    OneTopology,
    ViewFields,
)

__all__ = ["GroupLevels", "LeaderParts", "OneTopology", "ViewFields"]
