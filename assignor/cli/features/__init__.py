"""The command `assignor features`."""

from assignor.cli.features.command import features
from assignor.cli.features.topologies import downgrade_topology

__all__ = ["downgrade_topology", "features"]

features.add_command(downgrade_topology)
