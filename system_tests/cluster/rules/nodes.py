"""Rules about what nodes and members of the group do with levels; see ``checkers.py``."""

from typing import Final

from system_tests.cluster.events import (
    Activated,
    Adopted,
    Happening,
    Left,
    Loaded,
    Published,
    Rebalanced,
    Registered,
    Rested,
    Restless,
    Rewritten,
    SnapshotWritten,
    Spoke,
    Started,
    Unfenced,
)
from system_tests.cluster.rules.evidence import Evidence


def rewritten_at_the_level(evidence: Evidence, one: Happening) -> str | None:
    """What a node writes again is what the level knows, and it says what it drops."""
    if not isinstance(one, Rewritten):
        return None
    epoch = one.finalized.epoch
    said = {str(dropped) for dropped in one.dropped}
    expected = evidence.dropped_by_epoch.get(epoch, frozenset())
    if said != expected:
        return f"{one.node} says that {sorted(said)} was dropped, it was {sorted(expected)}"
    if one.entries != evidence.content_by_epoch.get(epoch):
        return f"{one.node} wrote other content at epoch {epoch} than the log has"
    return None


def snapshot_first(evidence: Evidence, one: Happening) -> str | None:
    """Started or loaded, or: a snapshot of before, all of it again, and only then in use."""
    if not isinstance(one, Published):
        return None
    steps = evidence.steps.get(one.node, [])
    if steps and isinstance(steps[0], Started | Loaded):
        return None
    before = evidence.published.get(one.node)
    match steps:
        case [SnapshotWritten() as old, Rewritten() as new]:
            offset = evidence.offset_by_epoch.get(one.finalized.epoch)
            is_right = old.finalized == before and new.finalized == one.finalized
            if is_right and old.end_offset == offset:
                return None
    kinds = [type(step).__name__ for step in steps]
    return f"{one.node} uses epoch {one.finalized.epoch} after {kinds or 'nothing'}"


def only_finalized(evidence: Evidence, one: Happening) -> str | None:
    """No node goes by a level that is not committed, and none goes back."""
    if not isinstance(one, Published):
        return None
    levels = evidence.history.get(one.finalized.epoch)
    if levels != one.finalized.levels:
        return f"{one.node} goes by {dict(one.finalized.levels)}, which is not finalized"
    before = evidence.published.get(one.node)
    if before is not None and before.epoch > one.finalized.epoch:
        return f"{one.node} goes back from epoch {before.epoch} to {one.finalized.epoch}"
    return None


def only_supported(evidence: Evidence, one: Happening) -> str | None:
    """No node goes by a level that it lacks."""
    if not isinstance(one, Published) or not evidence.looks_at_levels(one.node):
        return None
    for feature, level in sorted(one.finalized.levels.items()):
        if not evidence.supports(one.node, feature, level):
            return f"{one.node} goes by {feature}={level}, which it does not support"
    return None


def kept_out(evidence: Evidence, one: Happening) -> str | None:
    """No broker is let in that lacks a finalized level."""
    if not isinstance(one, Registered | Unfenced) or one.node not in evidence.up:
        return None
    if not evidence.looks_at_levels(one.node):
        return None
    for feature, level in sorted(evidence.finalized.levels.items()):
        if not evidence.supports(one.node, feature, level):
            return f"{one.node} is let in, which does not support {feature}={level}"
    return None


_REACTIONS: Final = {"b": ("unregister and terminate",), "c": ("terminate", "resign and terminate")}


def who_cannot_leaves(evidence: Evidence, one: Happening) -> str | None:
    """Who reads a level that it lacks ends: unregistered, resigned."""
    if isinstance(one, Left):
        expected = _REACTIONS[one.node[0]]
        if isinstance(evidence.last.get(one.node), Activated):
            expected = ("resign and terminate",)
        return None if one.reaction in expected else f"{one.node} is to {one.reaction}"
    node = getattr(one, "node", "")
    if isinstance(evidence.last.get(node), Left) and isinstance(one, Published | Spoke | Activated):
        return f"{node} goes on after a level that it does not support"
    return None


def readable(evidence: Evidence, one: Happening) -> str | None:
    """Nobody is sent what its program cannot read, whoever learns of a level first."""
    if isinstance(one, Started):
        high = [n for n, level in sorted(evidence.said_to_all.items()) if level > one.reads]
        return f"{high[0]} speaks above what {one.node} reads" if high else None
    if not isinstance(one, Spoke):
        return None
    if not one.peer and one.level < 1:
        return f"{one.node} has no level to speak at"
    peers = [one.peer] if one.peer else sorted(evidence.up)
    for peer in peers:
        if peer in evidence.up and one.level > evidence.started[peer].reads:
            return f"{one.node} speaks {one.level} to {peer}, which reads less"
    return None


def group_goes_on(evidence: Evidence, one: Happening) -> str | None:
    """No member goes by what is not finalized, or goes back."""
    if isinstance(one, Adopted):
        before = evidence.adopted.get(one.member)
        if before is not None and one.finalized.epoch < before.epoch:
            return f"{one.member} goes back from epoch {before.epoch} to {one.finalized.epoch}"
        if evidence.history.get(one.finalized.epoch) != one.finalized.levels:
            return f"{one.member} goes by levels that are not finalized"
    if isinstance(one, Rebalanced):
        newest = max((levels.epoch for levels in evidence.adopted.values()), default=-1)
        if one.finalized.epoch < newest:
            return f"the group is told epoch {one.finalized.epoch} when a member has {newest}"
    return None


def one_rebalance(evidence: Evidence, one: Happening) -> str | None:
    """The group rebalances once for a change of levels."""
    if isinstance(one, Rebalanced) and one.cause == "levels":
        leader = evidence.adopted.get(one.leader)
        if leader is not None and one.finalized.epoch <= evidence.told:
            return f"a second rebalance tells of epoch {one.finalized.epoch}"
    return None


def acknowledged_stays(evidence: Evidence, one: Happening) -> str | None:
    """At rest the cluster is at what was committed."""
    if isinstance(one, Rested) and one.finalized != evidence.finalized:
        return f"at rest at epoch {one.finalized.epoch}, committed was {evidence.finalized.epoch}"
    return None


def comes_to_rest(_evidence: Evidence, one: Happening) -> str | None:
    """Every step ends with all nodes at the same levels."""
    if isinstance(one, Restless):
        return f"not at rest after {one.waited_ms} ms: {one.why}"
    return None
