"""What a trace of a cluster says up to a point, put together from the trace alone.

The committed log is read here by code of its own, so that what nodes make of it can be compared:
levels by epoch, what the log holds at each, and what a way down has to drop.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from probing.features import FinalizedLevels, LevelRange, LevelRecord
from system_tests.cluster.events import (
    Adopted,
    Asked,
    Committed,
    Happening,
    Loaded,
    MemberStarted,
    Published,
    Rebalanced,
    Registered,
    Rejected,
    Rewritten,
    Silenced,
    SnapshotWritten,
    Spoke,
    Started,
    Stopped,
    Unfenced,
    Unregistered,
)
from system_tests.cluster.machines import ContentRecord, Entry, FloorRecord
from system_tests.cluster.nodes.programs import MIGRATION, Realm

_PREVIEW = 1


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What is known.

    Attributes:
        realm: what holds for the whole cluster.
        started: node -> how it was last started; up: nodes that run.
        registered, unfenced: brokers that were told so and are still thought to be there.
        history: levels by epoch; offset_by_epoch: the batch that made it.
        finalized: the committed levels; floors: deprecated minimum by feature.
        content: what the log holds; content_by_epoch, dropped_by_epoch: right after each epoch.
        published: node -> levels it goes by; steps: what it did since.
        said_to_all: node -> level it speaks to everybody.
        asked: requests by number; accepted: those that may be committed yet.
        adopted: member -> levels; told: highest epoch that a rebalance was for.
        last: node -> the last happening of it.
    """

    realm: Realm
    started: dict[str, Started] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    registered: set[str] = field(default_factory=set)
    unfenced: set[str] = field(default_factory=set)
    finalized: FinalizedLevels = field(default_factory=FinalizedLevels)
    history: dict[int, Mapping[str, int]] = field(default_factory=dict)
    offset_by_epoch: dict[int, int] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    content: dict[tuple[str, str], Entry] = field(default_factory=dict)
    content_by_epoch: dict[int, tuple[Entry, ...]] = field(default_factory=dict)
    dropped_by_epoch: dict[int, frozenset[str]] = field(default_factory=dict)
    published: dict[str, FinalizedLevels] = field(default_factory=dict)
    steps: dict[str, list[Happening]] = field(default_factory=dict)
    said_to_all: dict[str, int] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    accepted: list[Asked] = field(default_factory=list)
    adopted: dict[str, FinalizedLevels] = field(default_factory=dict)
    told: int = 0
    last: dict[str, Happening] = field(default_factory=dict)

    def __post_init__(self) -> None:
        realm = self.realm
        if not realm.has_setting and realm.formatted is None:
            self.finalized = FinalizedLevels(levels={realm.governing: _PREVIEW})
        self.history[0] = self.finalized.levels
        self.content_by_epoch[0] = ()

    @property
    def voters(self) -> list[str]:
        """Return every controller that was ever started."""
        return sorted(name for name in self.started if name.startswith("c"))

    def supports(self, node: str, feature: str, level: int) -> bool:
        """Tell whether the program of a node supports a level; off needs no support."""
        found: LevelRange | None = self.started[node].ranges.get(feature)
        return level == 0 or (found is not None and found.min <= level <= found.max)

    def looks_at_levels(self, node: str) -> bool:
        """Tell whether levels count on a node."""
        setting = self.started[node].setting
        return setting is None or setting >= MIGRATION

    def changes_of(self, one: Committed) -> dict[str, int]:
        """Return the levels that a batch sets."""
        return {row.feature: row.level for row in one.records if isinstance(row, LevelRecord)}

    def floors_of(self, one: Committed) -> dict[str, int]:
        """Return the minimums that a batch sets."""
        return {row.feature: row.level for row in one.records if isinstance(row, FloorRecord)}

    def dropped_at(self, level: int, entries: Mapping[tuple[str, str], Entry]) -> set[str]:
        """Say what of the entries a level does not know, one by one."""
        found = set()
        for kind in self.realm.schema.kinds:
            for (name, key), entry in entries.items():
                if name != kind.name:
                    continue
                if kind.since > level:
                    found.add(f"{name} {key}")
                    continue
                later = [f for f in entry.fields if kind.later_fields.get(f, 0) > level]
                found |= {f"{one} of {name} {key}" for one in later}
        return found

    def expected_changes(self, request: Asked) -> dict[str, int]:
        """Return what a request would change now."""
        return {
            name: level
            for name, level in request.levels.items()
            if level != self.finalized.level_of(name)
        }

    def add(self, happening: Happening) -> None:
        """Take the next happening in."""
        taker = _TAKERS.get(type(happening))
        if taker is not None:
            taker(self, happening)
        node = getattr(happening, "node", None)
        if isinstance(node, str):
            self.last[node] = happening


def _take_started(evidence: Evidence, one: Started) -> None:
    evidence.started[one.node] = one
    evidence.up.add(one.node)
    evidence.steps[one.node] = [one]
    evidence.published.pop(one.node, None)


def _take_stopped(evidence: Evidence, one: Stopped) -> None:
    evidence.up.discard(one.node)
    evidence.said_to_all.pop(one.node, None)
    _forget(evidence, one.node)


def _forget(evidence: Evidence, node: str) -> None:
    evidence.registered.discard(node)
    evidence.unfenced.discard(node)


def _take_committed(evidence: Evidence, one: Committed) -> None:
    for row in one.records:
        if isinstance(row, ContentRecord):
            evidence.content[row.entry.kind, row.entry.key] = row.entry
    evidence.floors.update(evidence.floors_of(one))
    changes = evidence.changes_of(one)
    if not changes:
        return
    before = dict(evidence.finalized.levels) | changes
    epoch = evidence.finalized.epoch + 1
    levels = {name: level for name, level in before.items() if level}
    evidence.finalized = FinalizedLevels(levels=levels, epoch=epoch)
    evidence.history[epoch] = evidence.finalized.levels
    evidence.offset_by_epoch[epoch] = one.offset
    level = evidence.finalized.level_of(evidence.realm.governing)
    dropped = evidence.dropped_at(level, evidence.content)
    evidence.dropped_by_epoch[epoch] = frozenset(dropped)
    evidence.content = _without(evidence.content, dropped)
    ordered = tuple(evidence.content[key] for key in sorted(evidence.content))
    evidence.content_by_epoch[epoch] = ordered
    # Older requests were decided on levels that are gone; they cannot be committed any more.
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


def _take_asked(evidence: Evidence, one: Asked) -> None:
    evidence.asked[one.request] = one
    if one.error == "NONE" and not one.dry:
        evidence.accepted.append(one)


def _take_step(evidence: Evidence, one: SnapshotWritten | Rewritten | Loaded) -> None:
    evidence.steps.setdefault(one.node, []).append(one)


def _take_published(evidence: Evidence, one: Published) -> None:
    evidence.published[one.node] = one.finalized
    evidence.steps[one.node] = []


def _take_spoke(evidence: Evidence, one: Spoke) -> None:
    if not one.peer:
        evidence.said_to_all[one.node] = one.level


def _take_adopted(evidence: Evidence, one: Adopted) -> None:
    evidence.adopted[one.member] = one.finalized


def _take_member_started(evidence: Evidence, one: MemberStarted) -> None:
    evidence.adopted.pop(one.member, None)
    # What only this member had taken in has to be told once more.
    epochs = [levels.epoch for levels in evidence.adopted.values()]
    evidence.told = min(evidence.told, max(epochs, default=0))


def _take_rebalanced(evidence: Evidence, one: Rebalanced) -> None:
    if one.cause == "levels":
        evidence.told = max(evidence.told, one.finalized.epoch)


_TAKERS: dict[type, Callable[[Evidence, Any], None]] = {
    Started: _take_started,
    Stopped: _take_stopped,
    Committed: _take_committed,
    Asked: _take_asked,
    SnapshotWritten: _take_step,
    Rewritten: _take_step,
    Loaded: _take_step,
    Published: _take_published,
    Spoke: _take_spoke,
    Adopted: _take_adopted,
    MemberStarted: _take_member_started,
    Rebalanced: _take_rebalanced,
    Registered: lambda evidence, one: evidence.registered.add(one.node),
    Unfenced: lambda evidence, one: evidence.unfenced.add(one.node),
    Silenced: lambda evidence, one: _forget(evidence, one.node),
    Unregistered: lambda evidence, one: _forget(evidence, one.node),
    Rejected: lambda evidence, one: _forget(evidence, one.node),
}
