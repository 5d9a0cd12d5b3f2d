"""Rules about the log of a cluster and the requests that change it; see ``checkers.py``."""

from system_tests.cluster.events import (
    Acknowledged,
    Asked,
    Committed,
    Happening,
)
from system_tests.cluster.rules.evidence import Evidence


def only_what_was_asked(evidence: Evidence, one: Happening) -> str | None:
    """A level changes by an accepted request or by the format."""
    if not isinstance(one, Committed) or not (changes := evidence.changes_of(one)):
        return None
    if evidence.finalized.epoch == 0 and evidence.realm.formatted is not None:
        level = changes.get(evidence.realm.governing)
        if level == evidence.realm.formatted:
            return None
        return f"formatted at {evidence.realm.formatted}, and the log begins at {level}"
    causes = [row for row in evidence.accepted if evidence.expected_changes(row) == changes]
    if causes:
        return _as_allowed(evidence, causes[-1], changes)
    return f"nobody had asked for {changes}, or it was refused, or it was a dry run"


def _as_allowed(evidence: Evidence, asked: Asked, changes: dict[str, int]) -> str | None:
    """An upgrade only raises, a downgrade only lowers."""
    for feature, level in sorted(changes.items()):
        is_lower = level < evidence.finalized.level_of(feature)
        if is_lower == (asked.kind == "upgrade"):
            return f"an {asked.kind} takes {feature} to {level}"
    return None


def requirements_hold(evidence: Evidence, one: Happening) -> str | None:
    """No feature is finalized without what it requires."""
    if not isinstance(one, Committed) or not (changes := evidence.changes_of(one)):
        return None
    levels = {**evidence.finalized.levels, **changes}
    for feature, level in sorted(levels.items()):
        unmet = evidence.realm.table.unmet(feature, level, levels) if level else None
        if unmet is not None:
            return f"{feature} is finalized at {level} without {unmet}"
    return None


def brokers_can(evidence: Evidence, one: Happening) -> str | None:
    """A level is finalized only if every registered broker supports it."""
    if not isinstance(one, Committed):
        return None
    for feature, level in sorted(evidence.changes_of(one).items()):
        for broker in sorted(evidence.registered):
            if not evidence.supports(broker, feature, level):
                return f"{feature} is finalized at {level}, and {broker} does not support that"
    return None


def majority_can(evidence: Evidence, one: Happening) -> str | None:
    """A level is accepted only if a majority of the quorum supports it."""
    if not isinstance(one, Asked) or one.error != "NONE":
        return None
    for feature, level in sorted(one.levels.items()):
        able = [
            voter
            for voter, ranges in sorted(one.voters.items())
            if level == 0 or (feature in ranges and level in ranges[feature])
        ]
        if len(able) <= len(evidence.voters) // 2:
            said = ", ".join(able) or "none"
            return f"{feature}={level} is accepted with {said} of {len(evidence.voters)} voters"
    return None


def safe_is_lossless(evidence: Evidence, one: Happening) -> str | None:
    """Only an unsafe downgrade loses anything, and the operator is told."""
    if not isinstance(one, Committed) or not (changes := evidence.changes_of(one)):
        return None
    level = changes.get(evidence.realm.governing)
    if level is None:
        return None
    content = dict(evidence.content)
    lost = evidence.dropped_at(level, content)
    causes = [row for row in evidence.accepted if evidence.expected_changes(row) == changes]
    if not lost or not causes:
        return None
    if causes[-1].kind != "unsafe_downgrade":
        return f"a {causes[-1].kind} to {level} loses {', '.join(sorted(lost))}"
    if not causes[-1].loses:
        return f"the operator was not told of losses at {level}: {', '.join(sorted(lost))}"
    return None


def floors_hold(evidence: Evidence, one: Happening) -> str | None:
    """A deprecated minimum rises when all nodes have it, never falls, and is kept."""
    if not isinstance(one, Committed):
        return None
    for feature, level in sorted(evidence.floors_of(one).items()):
        if level <= evidence.floors.get(feature, 0):
            return f"the minimum of {feature} falls from {evidence.floors[feature]} to {level}"
        for node in sorted(evidence.registered | (set(evidence.voters) & evidence.up)):
            found = evidence.started[node].ranges.get(feature)
            if found is None or found.min < level:
                return f"the minimum of {feature} rises to {level}, and {node} supports less"
    for feature, level in sorted(evidence.changes_of(one).items()):
        if 0 < level < evidence.floors.get(feature, 0):
            return f"{feature}={level} is below its minimum {evidence.floors[feature]}"
    return None


def acknowledged(evidence: Evidence, one: Happening) -> str | None:
    """An acknowledged request is in the log, one step of the epoch."""
    if not isinstance(one, Acknowledged):
        return None
    asked = evidence.asked[one.request]
    if asked.dry or asked.error != "NONE":
        return f"request {one.request} was not to be done, and is acknowledged"
    if one.epoch != asked.epoch + 1:
        return f"request {one.request} took the epoch from {asked.epoch} to {one.epoch}"
    levels = evidence.history.get(one.epoch, {})
    if any(levels.get(name, 0) != level for name, level in asked.levels.items()):
        return f"request {one.request} is acknowledged and not committed"
    return None
