"""The machine of everybody who reads the log: records in, snapshots and levels out.

A change of a level is done in three steps, in this order (KIP-778): a snapshot of all that was
before the change, the whole state written again at the new level, and only then is it published
and peers are spoken to anew. One batch of records is one update: one step of the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from probing.features import FinalizedLevels, LevelRange, LevelRecord, Role
from system_tests.cluster.machines.content import ContentSchema, Dropped, Entry, rewrite_content
from system_tests.cluster.machines.roles import Reaction, ReadNumbers, first_role_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRecord:
    """The deprecated minimum of a feature in the log (KIP-584): levels below are refused."""

    feature: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRecord:
    """Anything else in the log: an entry that is set, replacing the one of its kind and key."""

    entry: Entry


Record = LevelRecord | FloorRecord | ContentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """A committed batch was read.

    Attributes:
        offset: of the batch in the log, from 0.
        records: of the batch, applied together or not at all.
    """

    offset: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a log says before an offset.

    Attributes:
        end_offset: the first batch that is not in it.
        finalized: levels and epoch; floors: deprecated minimum by feature.
        entries: the rest.
    """

    end_offset: int
    finalized: FinalizedLevels
    floors: Mapping[str, int]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSnapshot:
    """Write this to disk before anything of the change is used."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteState:
    """The state was written again at new levels: write it as a snapshot, and say what it lacks."""

    snapshot: Snapshot
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishLevels:
    """Let every component of the node go by these levels from now on."""

    finalized: FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class Renegotiate:
    """Ask every peer again which requests it takes: the level has changed what may be sent."""

    level_by_feature: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveCluster:
    """Stop for good: unregister or resign first where ``reaction`` says so.

    Attributes:
        rule, reaction, why: the row of ``ROLE_RULES`` that fired.
    """

    rule: str
    reaction: Reaction
    why: str


ReplicaCommand = WriteSnapshot | RewriteState | PublishLevels | Renegotiate | LeaveCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """What a node that reads the log remembers.

    Attributes:
        role, ranges: what it is and supports.
        schema: of the log's content.
        is_active: it is the active controller.
        is_enabled: levels count on this node; False in KIP-584's phase 1, where they are read and
            neither checked nor used.
        next_offset: of the first batch that was not read yet.
        finalized, floors: as read so far.
        content: entry by kind and key.
        has_left: it ended; nothing more is read.
    """

    role: Role
    ranges: Mapping[str, LevelRange]
    schema: ContentSchema
    is_active: bool = False
    is_enabled: bool = True
    next_offset: int = 0
    finalized: FinalizedLevels = field(default_factory=FinalizedLevels)
    floors: Mapping[str, int] = field(default_factory=dict)
    content: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    has_left: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """Return all that was read."""
        entries = tuple(self.content[key] for key in sorted(self.content))
        return Snapshot(
            end_offset=self.next_offset,
            finalized=self.finalized,
            floors=dict(self.floors),
            entries=entries,
        )


def load_snapshot(state: ReplicaState, snapshot: Snapshot) -> ReplicaState:
    """Return the state as the snapshot has it; levels that are not supported show at once.

    Use :func:`check_levels` before anything of it is used.
    """
    return replace(
        state,
        next_offset=snapshot.end_offset,
        finalized=snapshot.finalized,
        floors=dict(snapshot.floors),
        content={(entry.kind, entry.key): entry for entry in snapshot.entries},
    )


def check_levels(state: ReplicaState, levels: Mapping[str, int]) -> LeaveCluster | None:
    """Return why the node has to leave at these levels, None if it can go on."""
    if not state.is_enabled:
        return None
    for feature, level in sorted(levels.items()):
        numbers = ReadNumbers(
            role=state.role,
            is_active=state.is_active,
            feature=feature,
            level=level,
            range=state.ranges.get(feature),
        )
        rule = first_role_rule(numbers)
        if rule.reaction is not Reaction.APPLY:
            why = rule.why.format(feature=feature, level=level, supported=numbers.supported)
            return LeaveCluster(rule=rule.name, reaction=rule.reaction, why=why)
    return None


def replica_step(
    state: ReplicaState, event: BatchRead
) -> tuple[ReplicaState, tuple[ReplicaCommand, ...]]:
    """Return the node after a batch, and what it has to do, in order.

    A batch that was read before, or comes after the node has left, changes nothing.
    """
    if state.has_left or event.offset < state.next_offset:
        return state, ()
    changes = {row.feature: row.level for row in event.records if isinstance(row, LevelRecord)}
    leave = check_levels(state, changes)
    if leave is not None:
        return replace(state, has_left=True), (leave,)
    after = replace(
        state,
        next_offset=event.offset + 1,
        floors=_floors(state, event.records),
        content=_content(state, event.records),
    )
    if not changes:
        return after, ()
    return _changed(state, after, changes)


def _changed(
    before: ReplicaState, after: ReplicaState, changes: Mapping[str, int]
) -> tuple[ReplicaState, tuple[ReplicaCommand, ...]]:
    finalized = before.finalized.changed(changes)
    level = finalized.level_of(after.schema.feature)
    rewritten = rewrite_content(after.schema, after.content.values(), level)
    content = {(entry.kind, entry.key): entry for entry in rewritten.entries}
    after = replace(after, finalized=finalized, content=content)
    if not before.is_enabled:
        return after, ()
    return after, (
        WriteSnapshot(snapshot=before.snapshot),
        RewriteState(snapshot=after.snapshot, dropped=rewritten.dropped),
        PublishLevels(finalized=finalized),
        Renegotiate(level_by_feature=dict(sorted(changes.items()))),
    )


def _floors(state: ReplicaState, records: tuple[Record, ...]) -> Mapping[str, int]:
    """Return the deprecated minimums; a record that would lower one is not believed."""
    floors = dict(state.floors)
    for record in records:
        if isinstance(record, FloorRecord):
            floors[record.feature] = max(floors.get(record.feature, 0), record.level)
    return floors


def _content(state: ReplicaState, records: tuple[Record, ...]) -> Mapping[tuple[str, str], Entry]:
    changed = {
        (row.entry.kind, row.entry.key): row.entry
        for row in records
        if isinstance(row, ContentRecord)
    }
    return {**state.content, **changed} if changed else state.content
