"""Who still needs levels below a minimum that is planned (KIP-584: look before you deprecate)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.errors import ConfigError
from assignor.levels.updates import Described, level_text
from probing.features import ASSIGNMENT_PROTOCOL, NodeSupport


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What each member or broker says.

    Attributes:
        described: levels of the place, and what all support together.
        nodes: each of them, with what it supports.
        versions: node -> version of the assignment protocol that it writes now; members only.
    """

    described: Described
    nodes: tuple[NodeSupport, ...]
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One that still needs a level below the minimum: who, and why (a sentence without its end)."""

    who: str
    why: str


def needs_below(survey: Survey, feature: str, minimum: int) -> tuple[Need, ...]:
    """Return who cannot go on once a feature has this minimum.

    These are nodes that support no level from the minimum on, members that write an older version
    now, and a finalized level that is below. A node that does not name the feature needs nothing.
    Where nobody can be asked, nobody can say that the levels are not needed.

    Raises:
        ConfigError: neither this program nor any node knows the feature, or it is no level.
    """
    known = {*(one.name for one in survey.described.table), *survey.described.finalized.levels}
    known.update(*(node.ranges for node in survey.nodes))
    if feature not in known:
        raise ConfigError(f"there is no feature {feature!r}; there are {', '.join(sorted(known))}")
    if minimum < 1:
        raise ConfigError(f"{feature}={minimum} is no level to plan for; give 1 or more")
    found = []
    if not survey.nodes:
        found.append(Need(who=survey.described.source, why="has nobody to ask"))
    for node in survey.nodes:
        who, supported = f"{node.role.value} {node.node_id}", node.ranges.get(feature)
        version = survey.versions.get(str(node.node_id), minimum)
        if not node.ranges:
            found.append(Need(who=who, why="does not tell what it supports"))
        elif supported is not None and supported.max < minimum:
            why = f"supports {feature} {supported}, nothing from {minimum} on"
            found.append(Need(who=who, why=why))
        elif feature == ASSIGNMENT_PROTOCOL and version < minimum:
            found.append(Need(who=who, why=f"writes version {version}"))
    level = survey.described.finalized.level_of(feature)
    if 0 < level < minimum:
        said = level_text(survey.described.table, feature, level)
        found.append(Need(who=survey.described.source, why=f"has {feature} finalized at {said}"))
    return tuple(found)
