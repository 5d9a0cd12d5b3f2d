"""Rack-aware placement (KIP-925): the same counts per client, less traffic between racks."""

from assignor.placement.racks.assignments import (
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
)
from assignor.placement.racks.optimise import rack_warnings
from assignor.placement.racks.traffic import traffic_of

__all__ = [
    "optimize_rack_aware_active_tasks",
    "optimize_rack_aware_standby_tasks",
    "rack_warnings",
    "traffic_of",
]
