"""Deprecation of levels: a feature's minimum rises once every node has raised its own (KIP-584).

A program that no longer supports old levels raises its supported minimum. The minimum of a feature
follows from this, never from a request, and never falls.
"""

from collections.abc import Mapping, Sequence

from probing.features.levels import FinalizedLevels
from probing.features.native_table import TOPOLOGY_VERSION
from probing.features.updates.values import NodeSupport


def raised_minimums(
    levels: FinalizedLevels, minimums: Mapping[str, int], nodes: Sequence[NodeSupport]
) -> dict[str, int]:
    """Return the minimums that rise now, by feature; that of `topology.version` never does.

    Args:
        levels: the finalized levels; a minimum is never above the level of its feature.
        minimums: the current minimums by feature; a missing feature has none.
        nodes: all registered nodes. If one of them does not support a feature, its minimum stays.
    """
    raised = {}
    for feature, level in sorted(levels.levels.items()):
        if feature == TOPOLOGY_VERSION:
            # An application may be bounced back to a program with an older version.
            continue
        ranges = [node.ranges[feature] for node in nodes if feature in node.ranges]
        lowest = min((found.min for found in ranges), default=0)
        is_everywhere = len(ranges) == len(nodes)
        if is_everywhere and minimums.get(feature, 1) < lowest <= level:
            raised[feature] = lowest
    return raised
