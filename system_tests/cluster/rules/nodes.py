"""Rules about the use of levels by nodes and group members; see ``checkers.py``."""

from typing import Final

from probing.features import FinalizedLevels
from system_tests.cluster.events import (
    Activated,
    Left,
    Loaded,
    Published,
    Regarded,
    Rested,
    Restless,
    Rewritten,
    SnapshotWritten,
    Spoke,
    Standing,
    Started,
)
from system_tests.cluster.nodes.clients import group_levels_of
from system_tests.cluster.rules.evidence import Evidence
from system_tests.sim import Adopted, Looked


def rewritten_at_the_level(evidence: Evidence, event: Rewritten) -> str | None:
    """A rewritten state holds only what the level knows, and lists what was dropped."""
    epoch = event.finalized.epoch
    lost = {str(dropped) for dropped in event.dropped}
    expected = evidence.dropped_by_epoch.get(epoch, frozenset())
    if lost != expected:
        return f"{event.node} reports {sorted(lost)} as dropped, expected {sorted(expected)}"
    if event.entries != evidence.content_by_epoch.get(epoch):
        return f"{event.node} wrote content at epoch {epoch} that differs from the log"
    return None


def snapshot_first(evidence: Evidence, event: Published) -> str | None:
    """A level is used only after a snapshot of the old state and a rewrite of the state.

    Levels of a start or of a loaded snapshot are used at once.
    """
    steps = evidence.steps.get(event.node, [])
    if steps and isinstance(steps[0], Started | Loaded):
        return None
    before = evidence.published.get(event.node)
    match steps:
        case [SnapshotWritten() as old, Rewritten() as new]:
            offset = evidence.offset_by_epoch.get(event.finalized.epoch)
            is_right = old.finalized == before and new.finalized == event.finalized
            if is_right and old.end_offset == offset:
                return None
    kinds = [type(step).__name__ for step in steps]
    return f"{event.node} uses epoch {event.finalized.epoch} after {kinds or 'nothing'}"


def only_finalized(evidence: Evidence, event: Published) -> str | None:
    """No node uses a level that is not committed.

    And none returns to an older epoch.
    """
    levels = evidence.history.get(event.finalized.epoch)
    if levels != event.finalized.levels:
        return f"{event.node} uses {dict(event.finalized.levels)}, which is not finalized"
    before = evidence.published.get(event.node)
    if before is not None and before.epoch > event.finalized.epoch:
        return f"{event.node} goes back from epoch {before.epoch} to {event.finalized.epoch}"
    return None


def only_supported(evidence: Evidence, event: Published) -> str | None:
    """No node uses a level that it does not support."""
    if not evidence.uses_levels(event.node):
        return None
    for feature, level in sorted(event.finalized.levels.items()):
        if not evidence.supports(event.node, feature, level):
            return f"{event.node} uses {feature}={level}, which it does not support"
    return None


def kept_out(evidence: Evidence, event: Regarded) -> str | None:
    """No broker is registered that does not support a finalized level."""
    let_in = (Standing.REGISTERED, Standing.UNFENCED)
    if event.standing not in let_in or event.node not in evidence.up:
        return None
    if not evidence.uses_levels(event.node):
        return None
    for feature, level in sorted(evidence.finalized.levels.items()):
        if not evidence.supports(event.node, feature, level):
            return f"{event.node} is registered, but does not support {feature}={level}"
    return None


_REACTIONS: Final = {"b": ("unregister and terminate",), "c": ("terminate", "resign and terminate")}


def unsupported_leaves(
    evidence: Evidence, event: Left | Published | Spoke | Activated
) -> str | None:
    """A node that reads a level that it does not support unregisters or resigns, and stops."""
    if isinstance(event, Left):
        expected = _REACTIONS[event.node[0]]
        if isinstance(evidence.last.get(event.node), Activated):
            expected = ("resign and terminate",)
        return (
            None
            if event.reaction in expected
            else f"wrong reaction of {event.node}: {event.reaction}"
        )
    if isinstance(evidence.last.get(event.node), Left):
        return f"{event.node} keeps running after a level that it does not support"
    return None


def readable(evidence: Evidence, event: Started | Spoke) -> str | None:
    """No node is sent records that its release cannot read."""
    if isinstance(event, Started):
        high = [n for n, level in sorted(evidence.broadcast_level.items()) if level > event.reads]
        return f"{high[0]} sends a level that {event.node} cannot read" if high else None
    if not event.peer and event.level < 1:
        return f"{event.node} has no level to send at"
    peers = [event.peer] if event.peer else sorted(evidence.up)
    for peer in peers:
        if peer in evidence.up and event.level > evidence.started[peer].reads:
            return f"{event.node} sends level {event.level} to {peer}, which cannot read it"
    return None


def group_continues(evidence: Evidence, event: Adopted) -> str | None:
    """Members use finalized levels only, and never an older epoch."""
    before, levels = evidence.adopted.get(event.thread), event.levels
    if before is not None and levels.epoch < before.epoch:
        return f"{event.thread} goes back from epoch {before.epoch} to {levels.epoch}"
    finalized = FinalizedLevels(levels=evidence.history.get(levels.epoch, {}), epoch=levels.epoch)
    if levels != group_levels_of(finalized, evidence.realm.governing):
        return f"{event.thread} uses levels that are not finalized"
    return None


def one_rebalance(evidence: Evidence, event: Looked) -> str | None:
    """The group rebalances once for a change of levels."""
    if event.asks and event.levels.epoch <= evidence.rebalanced_epoch:
        return f"{event.thread} asks for a second rebalance for epoch {event.levels.epoch}"
    return None


def acknowledged_stays(evidence: Evidence, event: Rested) -> str | None:
    """At rest the cluster has the committed levels."""
    if event.finalized != evidence.finalized:
        return f"at rest at epoch {event.finalized.epoch}, committed is {evidence.finalized.epoch}"
    return None


def comes_to_rest(_: Evidence, event: Restless) -> str:
    """Every step ends with all nodes at the same levels."""
    return f"not at rest after {event.waited_ms} ms: {event.why}"
