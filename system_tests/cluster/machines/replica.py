"""State machine of a node that reads the log: records in, snapshots and levels out.

A level changes in three steps (KIP-778): a snapshot of the state before the change, a rewrite of
the whole state at the new level, and only then is the level published and renegotiated with peers.
A batch of records is one update and increments the epoch by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from probing.features import FinalizedLevels, LevelRange, LevelRecord, Role
from probing.rules import first
from system_tests.cluster.machines import roles
from system_tests.cluster.machines.content import ContentSchema, Dropped, Entry, rewrite_content
from system_tests.cluster.machines.roles import Reaction, ReadNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumRecord:
    """The deprecated minimum of a feature in the log (KIP-584): levels below are refused."""

    feature: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRecord:
    """An entry in the log; it replaces the entry with the same kind and key."""

    entry: Entry


Record = LevelRecord | MinimumRecord | ContentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """A committed batch was read.

    Attributes:
        offset: offset of the batch in the log, from 0.
        records: records of the batch; all or none are applied.
    """

    offset: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a log before an offset.

    Attributes:
        end_offset: offset of the first batch that is not included.
        finalized: levels and epoch.
        minimums: deprecated minimum by feature.
        entries: all other entries.
    """

    end_offset: int
    finalized: FinalizedLevels
    minimums: Mapping[str, int]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSnapshot:
    """Write this snapshot to disk before the change is applied."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteState:
    """Write the state at the new levels as a snapshot, and report what was dropped."""

    snapshot: Snapshot
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishLevels:
    """Let every component of the node use these levels."""

    finalized: FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class Renegotiate:
    """Negotiate with every peer again which requests may be sent at the new level."""

    level_by_feature: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveCluster:
    """Stop the node; unregister or resign first, as ``reaction`` says.

    Attributes:
        rule, reaction, why: from the matching row of ``ROLE_RULES``.
    """

    rule: str
    reaction: Reaction
    why: str


ReplicaCommand = WriteSnapshot | RewriteState | PublishLevels | Renegotiate | LeaveCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """State of a node that reads the log.

    Attributes:
        role: broker or controller.
        ranges: supported levels by feature.
        schema: schema of the log's entries.
        is_active: the node is the active controller.
        is_enabled: the node uses levels; False in KIP-584's phase 1, in which levels are read but
            neither checked nor used.
        next_offset: offset of the first batch that is not read yet.
        finalized, minimums: values read so far.
        content: entry by kind and key.
        has_left: the node stopped and reads nothing more.
    """

    role: Role
    ranges: Mapping[str, LevelRange]
    schema: ContentSchema
    is_active: bool = False
    is_enabled: bool = True
    next_offset: int = 0
    finalized: FinalizedLevels = field(default_factory=FinalizedLevels)
    minimums: Mapping[str, int] = field(default_factory=dict)
    content: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    has_left: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """Return the state as a snapshot."""
        entries = tuple(self.content[key] for key in sorted(self.content))
        return Snapshot(
            end_offset=self.next_offset,
            finalized=self.finalized,
            minimums=dict(self.minimums),
            entries=entries,
        )


def load_snapshot(state: ReplicaState, snapshot: Snapshot) -> ReplicaState:
    """Return the state of a snapshot; check it with :func:`check_levels` before it is used."""
    return replace(
        state,
        next_offset=snapshot.end_offset,
        finalized=snapshot.finalized,
        minimums=dict(snapshot.minimums),
        content={(entry.kind, entry.key): entry for entry in snapshot.entries},
    )


def check_levels(state: ReplicaState, levels: Mapping[str, int]) -> LeaveCluster | None:
    """Return why the node must stop at these levels; None if it supports them."""
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
        rule = first(roles.ROLE_RULES, numbers)
        if rule.says is not Reaction.APPLY:
            return LeaveCluster(rule=rule.name, reaction=rule.says, why=rule.sentence(numbers))
    return None


def replica_step(
    state: ReplicaState, event: BatchRead
) -> tuple[ReplicaState, tuple[ReplicaCommand, ...]]:
    """Return the state after a batch, and the commands for the node, in order.

    A batch that was read before, or that arrives after the node has left, changes nothing.
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
        minimums=_minimums(state, event.records),
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


def _minimums(state: ReplicaState, records: tuple[Record, ...]) -> Mapping[str, int]:
    """Return the deprecated minimums; a record that would lower one is ignored."""
    minimums = dict(state.minimums)
    for record in records:
        if isinstance(record, MinimumRecord):
            minimums[record.feature] = max(minimums.get(record.feature, 0), record.level)
    return minimums


def _content(state: ReplicaState, records: tuple[Record, ...]) -> Mapping[tuple[str, str], Entry]:
    changed = {
        (row.entry.kind, row.entry.key): row.entry
        for row in records
        if isinstance(row, ContentRecord)
    }
    return {**state.content, **changed} if changed else state.content
