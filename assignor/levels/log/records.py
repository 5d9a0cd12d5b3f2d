"""Batches of a group's feature log, and the state after replaying them; no I/O.

A *batch* is one atomic write: a change contains the new values, a snapshot the complete state.
Replaying is the same for a directory and for a topic. The finalized level of
`persistent.metadata.version` decides the format of batches (KIP-384). A downgrade drops what the
lower format cannot contain (KIP-778); `dropped_below` lists it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import msgpack

from assignor.stores import (
    LATEST_MS,
    LaterRelease,
    StoreError,
    store_errors,
    text,
    whole_number,
)
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
"""Most bytes of one batch, the same as a broker's default limit for one record."""

_LAST_EPOCH: Final = (1 << 63) - 1
_MEMBERS_SINCE: Final = 3
_NOTES_SINCE: Final = 2
# A reader of format 1 can read format 2; it skips the notes.
_READABLE_SINCE: Final = {1: 1, 2: 1, 3: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Author, time and reason of a change of levels; empty if the format does not contain notes."""

    at_ms: int = 0
    who: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The state of a log after its last batch.

    Attributes:
        levels: finalized levels, one number per feature (KIP-778), and their epoch.
        minimums: feature -> lowest level that is not deprecated; it never falls (KIP-584).
        ranges_by_member: what each member supports, as of its last registration; recorded from
            `persistent.metadata.version` 2 on.
        note: note of the last change.
    """

    levels: FinalizedLevels = field(default_factory=FinalizedLevels)
    minimums: Mapping[str, int] = field(default_factory=dict)
    ranges_by_member: Mapping[str, Mapping[str, LevelRange]] = field(default_factory=dict)
    note: Note = field(default_factory=Note)

    @property
    def persistent_version(self) -> int:
        """The persistent version of the log; 1 if none was ever finalized."""
        return max(self.levels.level_of(PERSISTENT_METADATA), 1)

    @property
    def format(self) -> int:
        """Format in which batches are written."""
        return format_to_write(Store.FEATURE_LOG, self.persistent_version)

    @property
    def knows_members(self) -> bool:
        """Whether that format contains what members support."""
        return self.format >= _MEMBERS_SINCE


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """One atomic write.

    Attributes:
        epoch: epoch after the batch; a registration does not change it.
        is_snapshot: whether it contains the complete state instead of a change.
        minimums: feature -> lowest level that is not deprecated; older readers skip it.
        levels: feature -> level; 0 disables a feature.
        members: member -> what it supports; None removes a member.
        note: who, when and why.
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
    """Return the batch that finalizes levels and raises minimums, with the next epoch.

    Raises:
        StoreError: the epoch is the last one that readers take; another program wrote it.
    """
    if state.levels.epoch >= _LAST_EPOCH:
        raise StoreError(
            f"the feature log has the last epoch, {_LAST_EPOCH}, so no change can follow: another"
            " program wrote that record; delete the log and finalize its levels again"
        )
    return LogBatch(
        epoch=max(state.levels.epoch, FIRST_EPOCH) + 1,
        levels=dict(sorted(levels.items())),
        minimums=dict(sorted(minimums.items())),
        note=note,
    )


def leader_note(minimums: Mapping[str, int]) -> Note:
    """Return the note of minimums that a group's leader raises by itself."""
    listed = ", ".join(f"{name} from {level} on" for name, level in sorted(minimums.items()))
    return Note(
        at_ms=time.time_ns() // 1_000_000,
        who="the group's leader",
        why=f"every member supports {listed} only",
    )


def registration(
    state: LogState, member: str, ranges: Mapping[str, LevelRange] | None
) -> LogBatch | None:
    """Return the batch that registers a member; None if there is nothing to write.

    There is nothing to write if the member's ranges are unchanged, or if the log's format does not
    contain members.
    """
    if not state.knows_members or state.ranges_by_member.get(member) == ranges:
        return None
    return LogBatch(epoch=state.levels.epoch, members={member: ranges})


def replay(state: LogState, batch: LogBatch) -> LogState:
    """Return the state after a batch; what its format cannot contain is dropped.

    A minimum outside the valid levels is ignored, because it would forbid every level.
    """
    raised = {name: level for name, level in batch.minimums.items() if 1 <= level <= MAX_LEVEL}
    both = sorted({*state.minimums, *raised})
    minimums = {name: max(state.minimums.get(name, 0), raised.get(name, 0)) for name in both}
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
    """Return what a snapshot in a version loses, one sentence each; empty: nothing."""
    below = format_to_write(Store.FEATURE_LOG, persistent_version)
    if below >= _MEMBERS_SINCE or not state.ranges_by_member:
        return ()
    members = sorted(state.ranges_by_member)
    sentence = (
        f"the supported levels of {len(members)} members ({', '.join(members)}): format {below} of"
        " the feature log does not contain members"
    )
    return (sentence,)


def snapshot(state: LogState) -> LogBatch:
    """Return the complete state as one batch."""
    return LogBatch(
        epoch=state.levels.epoch,
        is_snapshot=True,
        minimums=state.minimums,
        levels=state.levels.levels,
        members=state.ranges_by_member,
        note=state.note,
    )


def encode_batch(batch: LogBatch, *, log_format: int) -> bytes:
    """Return the bytes of a batch, without what the format cannot contain.

    Raises:
        StoreError: the batch has more than `BATCH_LIMIT` bytes.
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
            f"a batch of the feature log has {len(data)} bytes; the limit is {BATCH_LIMIT}; remove"
            " registrations of members that have left"
        )
    return data


def decode_batch(data: bytes, *, name: str) -> LogBatch:
    """Return a batch in any known format; fields of later compatible formats are skipped.

    Args:
        data: the bytes of one batch.
        name: origin of the bytes, for messages.

    Raises:
        LaterRelease: the batch has a format that this release does not read.
        StoreError: the bytes are not a batch.
    """
    known = max(formats_to_read(Store.FEATURE_LOG))
    problem = "has a valid checksum but invalid content"
    with store_errors(name, problem=problem, remedy="it is not used"):
        fields = msgpack.unpackb(data)
        since = whole_number(fields["readable_since"], what="readable_since")
        if since > known:
            if whole_number(fields["format"], what="format") < since:
                raise ValueError("a format below the one that is necessary to read it")
            raise LaterRelease(
                f"{name} has format {fields['format']}; this release reads formats up to"
                f" {known}; use the later release that wrote it"
            )
        at_ms, who, why = fields.get("note", (0, "", ""))
        batch = LogBatch(
            epoch=whole_number(fields["epoch"], what="epoch", most=_LAST_EPOCH),
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
        # Invalid levels raise here and not later.
        replay(LogState(), batch)
    return batch


def supported_here() -> Mapping[str, LevelRange]:
    """Return the ranges of native features that this release supports."""
    return NATIVE_FEATURES.whole_ranges()


def check_levels(levels: Mapping[str, int]) -> None:
    """Check that this release knows all levels.

    Raises:
        StoreError: a feature or a level is unknown; the message lists the known ones.
    """
    for name, level in sorted(levels.items()):
        try:
            NATIVE_FEATURES.named(name).parse_level(str(level))
        except FeatureError as error:
            raise StoreError(str(error)) from error


def _ranges_out(ranges: Mapping[str, LevelRange]) -> list[list[Any]]:
    return [
        [name, level_range.min, level_range.max, level_range.can_be_off]
        for name, level_range in sorted(ranges.items())
    ]


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
