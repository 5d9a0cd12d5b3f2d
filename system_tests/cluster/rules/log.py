"""Rules about the log of a cluster and the requests that change it; see ``checkers.py``."""

from system_tests.cluster.events import Acknowledged, Asked, Committed
from system_tests.cluster.rules.evidence import Evidence


def only_what_was_asked(evidence: Evidence, event: Committed) -> str | None:
    """A level changes only by an accepted request or by formatting."""
    if not (changes := evidence.changes_of(event)):
        return None
    if evidence.finalized.epoch == 0 and evidence.realm.formatted is not None:
        level = changes.get(evidence.realm.governing)
        if level == evidence.realm.formatted:
            return None
        return f"formatted at {evidence.realm.formatted}, but the log begins at {level}"
    causes = [row for row in evidence.accepted if evidence.expected_changes(row) == changes]
    if causes:
        return _as_allowed(evidence, causes[-1], changes)
    return f"{changes} was not requested, or refused, or requested as a dry run"


def _as_allowed(evidence: Evidence, asked: Asked, changes: dict[str, int]) -> str | None:
    """An upgrade raises levels only, a downgrade lowers them only."""
    for feature, level in sorted(changes.items()):
        is_lower = level < evidence.finalized.level_of(feature)
        if is_lower == (asked.kind == "upgrade"):
            return f"an {asked.kind} sets {feature} to {level}"
    return None


def requirements_hold(evidence: Evidence, event: Committed) -> str | None:
    """A feature is finalized only with the features that it requires."""
    if not (changes := evidence.changes_of(event)):
        return None
    levels = {**evidence.finalized.levels, **changes}
    for feature, level in sorted(levels.items()):
        unmet = evidence.realm.table.unmet(feature, level, levels) if level else None
        if unmet is not None:
            return f"{feature} is finalized at {level} without {unmet}"
    return None


def brokers_can(evidence: Evidence, event: Committed) -> str | None:
    """A level is finalized only if every registered broker supports it."""
    for feature, level in sorted(evidence.changes_of(event).items()):
        for broker in sorted(evidence.registered):
            if not evidence.supports(broker, feature, level):
                return f"{feature} is finalized at {level}, and {broker} does not support that"
    return None


def majority_can(evidence: Evidence, event: Asked) -> str | None:
    """A level is accepted only if a majority of the quorum supports it."""
    if event.error != "NONE":
        return None
    for feature, level in sorted(event.levels.items()):
        able = [
            voter
            for voter, ranges in sorted(event.voters.items())
            if level == 0 or (feature in ranges and level in ranges[feature])
        ]
        if len(able) <= len(evidence.voters) // 2:
            names = ", ".join(able) or "none"
            return f"{feature}={level} is accepted with {names} of {len(evidence.voters)} voters"
    return None


def safe_is_lossless(evidence: Evidence, event: Committed) -> str | None:
    """Only an unsafe downgrade loses content, and its response says so."""
    if not (changes := evidence.changes_of(event)):
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
        return f"the response does not list the losses at {level}: {', '.join(sorted(lost))}"
    return None


def minimums_hold(evidence: Evidence, event: Committed) -> str | None:
    """A deprecated minimum rises when all nodes have it, never falls, and is kept."""
    for feature, level in sorted(evidence.minimums_of(event).items()):
        if level <= evidence.minimums.get(feature, 0):
            return f"the minimum of {feature} falls from {evidence.minimums[feature]} to {level}"
        for node in sorted(evidence.registered | (set(evidence.voters) & evidence.up)):
            found = evidence.started[node].ranges.get(feature)
            if found is None or found.min < level:
                return f"the minimum of {feature} rises to {level}, and {node} supports less"
    for feature, level in sorted(evidence.changes_of(event).items()):
        if 0 < level < evidence.minimums.get(feature, 0):
            return f"{feature}={level} is below its minimum {evidence.minimums[feature]}"
    return None


def acknowledged(evidence: Evidence, event: Acknowledged) -> str | None:
    """An acknowledged request is in the log and increments the epoch by one."""
    asked = evidence.asked[event.request]
    if asked.dry or asked.error != "NONE":
        return f"request {event.request} was refused or a dry run, but is acknowledged"
    if event.epoch != asked.epoch + 1:
        return f"request {event.request} moved the epoch from {asked.epoch} to {event.epoch}"
    levels = evidence.history.get(event.epoch, {})
    if any(levels.get(name, 0) != level for name, level in asked.levels.items()):
        return f"request {event.request} is acknowledged but not committed"
    return None
