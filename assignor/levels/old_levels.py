"""Members and brokers that still need levels below a planned minimum (KIP-584 deprecation)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.errors import ConfigError
from assignor.levels.updates import Described, level_text
from probing.features import ASSIGNMENT_PROTOCOL, NodeSupport


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What each member or broker supports and writes.

    Attributes:
        described: finalized levels, and what all nodes support.
        nodes: each member or broker, with what it supports.
        versions: member -> version of the assignment protocol that it writes now.
    """

    described: Described
    nodes: tuple[NodeSupport, ...]
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A member, broker or place that needs a level below the minimum: `who` `why` is a sentence."""

    who: str
    why: str


def needs_below(survey: Survey, feature: str, minimum: int) -> tuple[Need, ...]:
    """Return what prevents raising a feature's minimum to this level.

    That is a node that supports no level at or above the minimum, a member that writes an older
    version now, and a finalized level below the minimum. A node that does not report the feature
    needs nothing. Without any node the result has one entry, because nothing is known.

    Raises:
        ConfigError: neither this program nor a node knows the feature, or the minimum is below 1.
    """
    known = {
        *(known_feature.name for known_feature in survey.described.table),
        *survey.described.finalized.levels,
    }
    known.update(*(node.ranges for node in survey.nodes))
    if feature not in known:
        raise ConfigError(f"unknown feature {feature!r}; choose from {', '.join(sorted(known))}")
    if minimum < 1:
        raise ConfigError(f"{feature}={minimum} is not a valid minimum; give 1 or more")
    found = []
    if not survey.nodes:
        found.append(Need(who=survey.described.source, why="has no member or broker to ask"))
    for node in survey.nodes:
        who, supported = f"{node.role.value} {node.node_id}", node.ranges.get(feature)
        version = survey.versions.get(str(node.node_id), minimum)
        if not node.ranges:
            found.append(Need(who=who, why="does not report what it supports"))
        elif supported is not None and supported.max < minimum:
            why = f"supports {feature} {supported}, which is below {minimum}"
            found.append(Need(who=who, why=why))
        elif feature == ASSIGNMENT_PROTOCOL and version < minimum:
            found.append(Need(who=who, why=f"writes version {version}"))
    level = survey.described.finalized.level_of(feature)
    if 0 < level < minimum:
        level_name = level_text(survey.described.table, feature, level)
        found.append(
            Need(who=survey.described.source, why=f"has {feature} finalized at {level_name}")
        )
    return tuple(found)
