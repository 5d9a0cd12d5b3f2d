"""Evidence of the checkers: the state of a cluster, computed from its trace alone.

The committed log is applied here by separate code, to compare it with the state of the nodes:
levels by epoch, content at each epoch, and what a downgrade has to drop.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from probing.features import NO_EPOCH, FinalizedLevels, LevelRange, LevelRecord
from system_tests.cluster.events import (
    Asked,
    Committed,
    Loaded,
    Published,
    Regarded,
    Rewritten,
    SnapshotWritten,
    Spoke,
    Standing,
    Started,
    Stopped,
)
from system_tests.cluster.machines.content import Entry
from system_tests.cluster.machines.replica import ContentRecord, MinimumRecord
from system_tests.cluster.nodes.programs import MIGRATION, Realm
from system_tests.sim import Adopted, Ended, Looked

_PREVIEW = 1


@dataclass(slots=True, kw_only=True)
class Evidence:
    """State of the cluster after the events so far.

    Attributes:
        realm: what holds for the whole cluster.
        started: node -> how it was last started; up: nodes that run.
        registered: brokers that were told so and are still thought to be there.
        history: levels by epoch; offset_by_epoch: the batch that made it.
        finalized: the committed levels; minimums: deprecated minimum by feature.
        content: what the log holds; content_by_epoch, dropped_by_epoch: right after each epoch.
        published: node -> levels it goes by; steps: what it did since.
        said_to_all: node -> level that it uses with all peers.
        asked: requests by number; accepted: those that may be committed yet.
        adopted: member -> levels; rebalanced_epoch: highest epoch that a rebalance was for.
        last: node -> the last happening of it.
    """

    realm: Realm
    started: dict[str, Started] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    registered: set[str] = field(default_factory=set)
    finalized: FinalizedLevels = field(default_factory=FinalizedLevels)
    history: dict[int, Mapping[str, int]] = field(default_factory=dict)
    offset_by_epoch: dict[int, int] = field(default_factory=dict)
    minimums: dict[str, int] = field(default_factory=dict)
    content: dict[tuple[str, str], Entry] = field(default_factory=dict)
    content_by_epoch: dict[int, tuple[Entry, ...]] = field(default_factory=dict)
    dropped_by_epoch: dict[int, frozenset[str]] = field(default_factory=dict)
    published: dict[str, FinalizedLevels] = field(default_factory=dict)
    steps: dict[str, list[Any]] = field(default_factory=dict)
    broadcast_level: dict[str, int] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    accepted: list[Asked] = field(default_factory=list)
    adopted: dict[str, FinalizedLevels] = field(default_factory=dict)
    rebalanced_epoch: int = NO_EPOCH
    last: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        realm = self.realm
        if not realm.has_setting and realm.formatted is None:
            self.finalized = FinalizedLevels(levels={realm.governing: _PREVIEW})
        self.history[0] = self.finalized.levels
        self.content_by_epoch[0] = ()

    @property
    def voters(self) -> list[str]:
        """Return all controllers that were started at least once."""
        return sorted(name for name in self.started if name.startswith("c"))

    def supports(self, node: str, feature: str, level: int) -> bool:
        """Whether the release of a node supports a level; level 0 (off) needs no support."""
        found: LevelRange | None = self.started[node].ranges.get(feature)
        return level == 0 or (found is not None and found.min <= level <= found.max)

    def uses_levels(self, node: str) -> bool:
        """Whether a node uses levels."""
        setting = self.started[node].setting
        return setting is None or setting >= MIGRATION

    def changes_of(self, event: Committed) -> dict[str, int]:
        """Return the levels that a batch sets."""
        return {row.feature: row.level for row in event.records if isinstance(row, LevelRecord)}

    def minimums_of(self, event: Committed) -> dict[str, int]:
        """Return the minimums that a batch sets."""
        return {row.feature: row.level for row in event.records if isinstance(row, MinimumRecord)}

    def dropped_at(self, level: int, entries: Mapping[tuple[str, str], Entry]) -> set[str]:
        """Return the entries and fields that a level does not know, as text."""
        found = set()
        for kind in self.realm.schema.kinds:
            for (name, key), entry in entries.items():
                if name != kind.name:
                    continue
                if kind.since > level:
                    found.add(f"{name} {key}")
                    continue
                later = [f for f in entry.fields if kind.later_fields.get(f, 0) > level]
                found |= {f"{part} of {name} {key}" for part in later}
        return found

    def expected_changes(self, request: Asked) -> dict[str, int]:
        """Return the levels that a request would change now."""
        return {
            name: level
            for name, level in request.levels.items()
            if level != self.finalized.level_of(name)
        }

    def add(self, event: Any) -> None:
        """Apply the next event."""
        add = _ADD_BY_EVENT.get(type(event))
        if add is not None:
            add(self, event)
        node = getattr(event, "node", None)
        if isinstance(node, str):
            self.last[node] = event


def _add_started(evidence: Evidence, event: Started) -> None:
    evidence.started[event.node] = event
    evidence.up.add(event.node)
    evidence.steps[event.node] = [event]
    evidence.published.pop(event.node, None)


def _add_stopped(evidence: Evidence, event: Stopped) -> None:
    evidence.up.discard(event.node)
    evidence.broadcast_level.pop(event.node, None)
    evidence.registered.discard(event.node)


def _add_regarded(evidence: Evidence, event: Regarded) -> None:
    if event.standing is Standing.REGISTERED:
        evidence.registered.add(event.node)
    elif event.standing is not Standing.UNFENCED:
        evidence.registered.discard(event.node)


def _add_committed(evidence: Evidence, event: Committed) -> None:
    for row in event.records:
        if isinstance(row, ContentRecord):
            evidence.content[row.entry.kind, row.entry.key] = row.entry
    evidence.minimums.update(evidence.minimums_of(event))
    changes = evidence.changes_of(event)
    if not changes:
        return
    before = dict(evidence.finalized.levels) | changes
    epoch = evidence.finalized.epoch + 1
    levels = {name: level for name, level in before.items() if level}
    evidence.finalized = FinalizedLevels(levels=levels, epoch=epoch)
    evidence.history[epoch] = evidence.finalized.levels
    evidence.offset_by_epoch[epoch] = event.offset
    level = evidence.finalized.level_of(evidence.realm.governing)
    dropped = evidence.dropped_at(level, evidence.content)
    evidence.dropped_by_epoch[epoch] = frozenset(dropped)
    evidence.content = _without(evidence.content, dropped)
    ordered = tuple(evidence.content[key] for key in sorted(evidence.content))
    evidence.content_by_epoch[epoch] = ordered
    # Requests of earlier epochs cannot be committed any more.
    evidence.accepted = [row for row in evidence.accepted if row.epoch >= epoch]


def _without(
    content: Mapping[tuple[str, str], Entry], dropped: set[str]
) -> dict[tuple[str, str], Entry]:
    kept = {}
    for (kind, key), entry in content.items():
        whole = f"{kind} {key}"
        if whole not in dropped:
            fields = {f: v for f, v in entry.fields.items() if f"{f} of {whole}" not in dropped}
            kept[kind, key] = Entry(kind=kind, key=key, fields=fields)
    return kept


def _add_asked(evidence: Evidence, event: Asked) -> None:
    evidence.asked[event.request] = event
    if event.error == "NONE" and not event.dry:
        evidence.accepted.append(event)


def _add_step(evidence: Evidence, event: SnapshotWritten | Rewritten | Loaded) -> None:
    evidence.steps.setdefault(event.node, []).append(event)


def _add_published(evidence: Evidence, event: Published) -> None:
    evidence.published[event.node] = event.finalized
    evidence.steps[event.node] = []


def _add_spoke(evidence: Evidence, event: Spoke) -> None:
    if not event.peer:
        evidence.broadcast_level[event.node] = event.level


def _add_adopted(evidence: Evidence, event: Adopted) -> None:
    evidence.adopted[event.thread] = event.levels


def _add_ended(evidence: Evidence, event: Ended) -> None:
    evidence.adopted.pop(event.thread, None)
    # An epoch that only this member had adopted has to be announced again.
    epochs = [levels.epoch for levels in evidence.adopted.values()]
    evidence.rebalanced_epoch = min(evidence.rebalanced_epoch, max(epochs, default=NO_EPOCH))


def _add_looked(evidence: Evidence, event: Looked) -> None:
    if event.asks:
        evidence.rebalanced_epoch = max(evidence.rebalanced_epoch, event.levels.epoch)


_ADD_BY_EVENT: dict[type, Callable[[Evidence, Any], None]] = {
    Started: _add_started,
    Stopped: _add_stopped,
    Committed: _add_committed,
    Asked: _add_asked,
    SnapshotWritten: _add_step,
    Rewritten: _add_step,
    Loaded: _add_step,
    Published: _add_published,
    Spoke: _add_spoke,
    Adopted: _add_adopted,
    Ended: _add_ended,
    Looked: _add_looked,
    Regarded: _add_regarded,
}
