"""Rack-aware placement (KIP-925): the same counts per client, less traffic between racks."""

from assignor.placement.racks.traffic import traffic_of

__all__ = [
    "traffic_of",
]
