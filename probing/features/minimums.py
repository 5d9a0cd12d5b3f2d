"""Deprecation: the minimum of a finalized feature rises once every node has it (KIP-584).

A program that no longer supports old levels raises its supported minimum. No request changes the
minimum of a feature, and it never falls.
"""

from collections.abc import Mapping, Sequence

from probing.features.levels import FinalizedLevels
from probing.features.update import NodeSupport


def raised_minimums(
    levels: FinalizedLevels, minimums: Mapping[str, int], nodes: Sequence[NodeSupport]
) -> dict[str, int]:
    """Return the minimums that rise now, by feature; empty where none does.

    Args:
        levels: finalized; a minimum is never above the level of its feature.
        minimums: in force, by feature; a feature that is not named has none.
        nodes: all that are registered. One that does not name a feature keeps its minimum.
    """
    raised = {}
    for feature, level in sorted(levels.levels.items()):
        ranges = [node.ranges[feature] for node in nodes if feature in node.ranges]
        lowest = min((found.min for found in ranges), default=0)
        is_everywhere = len(ranges) == len(nodes)
        if is_everywhere and minimums.get(feature, 1) < lowest <= level:
            raised[feature] = lowest
    return raised
