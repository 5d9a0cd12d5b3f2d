"""Records of a group's feature log, and the state that comes of them; bytes in, values out.

A *batch* is what one update wrote: it is there as a whole or not at all. A change names what is
new, a snapshot holds everything. Replaying is the same for files and for a topic. In which format a
batch is written is the finalized level of `persistent.metadata.version` (KIP-384), and going down
drops what the lower one does not know (KIP-778); `dropped_below` says what that is.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import msgpack

from assignor.stores import LATEST_MS, StoreError, text, understood, whole_number
from encoding import shown
from probing.features import (
    FIRST_EPOCH,
    MAX_LEVEL,
    NATIVE_FEATURES,
    PERSISTENT_METADATA,
    FeatureError,
    FinalizedLevels,
    LevelRange,
)
from probing.persisted_formats import Store, format_to_write, formats_to_read

NO_MINIMUMS: Mapping[str, int] = MappingProxyType({})
BATCH_LIMIT: Final = 1 << 20
"""Bytes of one batch, as much as a broker takes in one record."""

_MEMBERS_SINCE: Final = 3
_NOTES_SINCE: Final = 2
# Who reads format 1 reads 2 as well, and skips the notes.
_READABLE_SINCE: Final = {1: 1, 2: 1, 3: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Who changed levels, when and why; empty where the format does not tell."""

    at_ms: int = 0
    who: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What a log says after its last batch.

    Attributes:
        levels: finalized levels, one number a feature (KIP-778 has no minimum), and their epoch.
        ranges_by_member: what each member supports, as it said when it last registered; members
            are remembered from `persistent.metadata.version` 2 on.
        note: of the last change.
        minimums: lowest level that is not deprecated, by feature; it never falls (KIP-584).
    """

    levels: FinalizedLevels = field(default_factory=FinalizedLevels)
    minimums: Mapping[str, int] = field(default_factory=dict)
    ranges_by_member: Mapping[str, Mapping[str, LevelRange]] = field(default_factory=dict)
    note: Note = field(default_factory=Note)

    @property
    def persistent_version(self) -> int:
        """In which version this log is written; 1 where nothing was ever finalized."""
        return max(self.levels.level_of(PERSISTENT_METADATA), 1)

    @property
    def format(self) -> int:
        """Format of the batches."""
        return format_to_write(Store.FEATURE_LOG, self.persistent_version)

    @property
    def knows_members(self) -> bool:
        """Whether that format holds what members support."""
        return self.format >= _MEMBERS_SINCE


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """One atomic write.

    Attributes:
        epoch: of the levels after it; a batch that changes no level keeps the epoch.
        is_snapshot: it holds the whole state; otherwise what changes.
        levels: level by feature; 0 takes a feature out.
        members: what members support; None takes one out.
        note: who, when and why.
        minimums: lowest level that is not deprecated, by feature; readers that do not know minimums
            skip them.
    """

    epoch: int
    is_snapshot: bool = False
    minimums: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    members: Mapping[str, Mapping[str, LevelRange] | None] = field(default_factory=dict)
    note: Note = field(default_factory=Note)


def level_change(
    state: LogState,
    levels: Mapping[str, int],
    note: Note,
    *,
    minimums: Mapping[str, int] = NO_MINIMUMS,
) -> LogBatch:
    """Return the batch that finalizes levels, or raises minimums; the epoch is the next one."""
    return LogBatch(
        epoch=max(state.levels.epoch, FIRST_EPOCH) + 1,
        levels=dict(sorted(levels.items())),
        minimums=dict(sorted(minimums.items())),
        note=note,
    )


def leader_note(minimums: Mapping[str, int]) -> Note:
    """Return the note of a change that a group's leader makes by itself."""
    listed = ", ".join(f"{name} from {level} on" for name, level in sorted(minimums.items()))
    return Note(
        at_ms=time.time_ns() // 1_000_000,
        who="the group's leader",
        why=f"every member supports {listed} only",
    )


def registration(
    state: LogState, member: str, ranges: Mapping[str, LevelRange] | None
) -> LogBatch | None:
    """Return the batch that a member writes when it registers, None where nothing is to be written.

    Nothing is, where it said the same before, and where the log's version knows no members.
    """
    if not state.knows_members or state.ranges_by_member.get(member) == ranges:
        return None
    return LogBatch(epoch=state.levels.epoch, members={member: ranges})


def replay(state: LogState, batch: LogBatch) -> LogState:
    """Return the state after a batch; what its level does not know is gone.

    A minimum that is no level at all counts for nothing: it would forbid every level.
    """
    said = {name: level for name, level in batch.minimums.items() if 1 <= level <= MAX_LEVEL}
    both = sorted({*state.minimums, *said})
    minimums = {name: max(state.minimums.get(name, 0), said.get(name, 0)) for name in both}
    if batch.is_snapshot:
        levels = FinalizedLevels(levels=dict(sorted(batch.levels.items())), epoch=batch.epoch)
        members = {name: ranges for name, ranges in batch.members.items() if ranges is not None}
        return LogState(levels=levels, minimums=minimums, ranges_by_member=members, note=batch.note)
    merged = {**state.levels.levels, **batch.levels}
    kept = {name: level for name, level in sorted(merged.items()) if level > 0}
    members = {
        name: ranges
        for name, ranges in sorted({**state.ranges_by_member, **batch.members}.items())
        if ranges is not None
    }
    after = LogState(
        levels=FinalizedLevels(levels=kept, epoch=batch.epoch),
        minimums=minimums,
        ranges_by_member=members,
        note=batch.note if batch.levels or batch.minimums else state.note,
    )
    return after if after.knows_members else replace(after, ranges_by_member={})


def dropped_below(state: LogState, persistent_version: int) -> tuple[str, ...]:
    """Say what a snapshot at a version leaves out, one sentence each; empty: it is lossless."""
    below = format_to_write(Store.FEATURE_LOG, persistent_version)
    if below >= _MEMBERS_SINCE or not state.ranges_by_member:
        return ()
    members = sorted(state.ranges_by_member)
    said = (
        f"what {len(members)} members support ({', '.join(members)}): format {below} of the"
        " feature log does not know members"
    )
    return (said,)


def snapshot(state: LogState) -> LogBatch:
    """Return the whole state as one batch."""
    return LogBatch(
        epoch=state.levels.epoch,
        is_snapshot=True,
        minimums=state.minimums,
        levels=state.levels.levels,
        members=state.ranges_by_member,
        note=state.note,
    )


def encode_batch(batch: LogBatch, *, log_format: int) -> bytes:
    """Return the bytes of a batch; what the format does not know is left out.

    Raises:
        StoreError: it is larger than a record may be.
    """
    fields: dict[str, Any] = {
        "format": log_format,
        "readable_since": _READABLE_SINCE[log_format],
        "epoch": batch.epoch,
        "snapshot": batch.is_snapshot,
        "levels": [[feature, level] for feature, level in sorted(batch.levels.items())],
    }
    if batch.minimums:
        fields["minimums"] = [[feature, level] for feature, level in sorted(batch.minimums.items())]
    if log_format >= _NOTES_SINCE:
        fields["note"] = [batch.note.at_ms, batch.note.who, batch.note.why]
    if log_format >= _MEMBERS_SINCE:
        fields["members"] = [
            [name, None if ranges is None else _ranges_out(ranges)]
            for name, ranges in sorted(batch.members.items())
        ]
    data: bytes = msgpack.packb(fields)
    if len(data) > BATCH_LIMIT:
        raise StoreError(
            f"a batch of the feature log has {len(data)} bytes, {BATCH_LIMIT} are written at most;"
            " let members that are gone be forgotten"
        )
    return data


def decode_batch(data: bytes, *, name: str) -> LogBatch:
    """Return a batch of any known format; fields of later compatible formats are skipped.

    Args:
        data: the bytes of one batch.
        name: where they were, for messages.

    Raises:
        StoreError: they are no batch, or of a format that this release does not read.
    """
    known = max(formats_to_read(Store.FEATURE_LOG))
    with understood(name, problem="is whole but makes no sense", remedy="it is not used"):
        fields = msgpack.unpackb(data)
        since = whole_number(fields["readable_since"], what="readable_since")
        if since > known:
            raise StoreError(
                f"{name} is of format {shown(fields['format'])}, this release reads up to {known};"
                " start the later release again"
            )
        at_ms, who, why = fields.get("note", (0, "", ""))
        batch = LogBatch(
            epoch=whole_number(fields["epoch"], what="epoch"),
            is_snapshot=bool(fields["snapshot"]),
            levels={
                text(feature): whole_number(level, what=feature)
                for feature, level in fields["levels"]
            },
            minimums={
                text(feature): whole_number(level, what=feature)
                for feature, level in fields.get("minimums", ())
            },
            members={text(member): _ranges_in(rows) for member, rows in fields.get("members", ())},
            note=Note(
                at_ms=whole_number(at_ms, what="note", most=LATEST_MS), who=text(who), why=text(why)
            ),
        )
        # A level that cannot be must not come back as a crash later.
        replay(LogState(), batch)
    return batch


def supported_here() -> Mapping[str, LevelRange]:
    """What this release supports of our own features."""
    return NATIVE_FEATURES.whole_ranges()


def check_levels(levels: Mapping[str, int]) -> None:
    """Refuse levels that this release does not know.

    Raises:
        StoreError: a feature or a level is unknown; the message lists those that are known.
    """
    for name, level in sorted(levels.items()):
        try:
            NATIVE_FEATURES.named(name).parse_level(str(level))
        except FeatureError as error:
            raise StoreError(str(error)) from error


def _ranges_out(ranges: Mapping[str, LevelRange]) -> list[list[Any]]:
    return [[name, one.min, one.max, one.can_be_off] for name, one in sorted(ranges.items())]


def _ranges_in(rows: Any) -> Mapping[str, LevelRange] | None:
    if rows is None:
        return None
    return {
        text(name): LevelRange(
            min=whole_number(low, what="lowest level"),
            max=whole_number(high, what="highest level"),
            can_be_off=bool(can_be_off),
        )
        for name, low, high, can_be_off in rows
    }
