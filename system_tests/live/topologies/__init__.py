"""Rolling changes of an application's topology, with real member processes and an exact oracle."""

from system_tests.live.topologies.run import TopologyOptions, run_topology_change
from system_tests.live.topologies.verdict import TopologyVerdict, broken_rules

__all__ = [
    "TopologyOptions",
    "TopologyVerdict",
    "broken_rules",
    "run_topology_change",
]
