"""The feature log as records of a group's compacted topic; this module has no Kafka client.

Every record contains the complete state after one change, and the offset of its parent: the record
with the state that was changed. Records are read in offset order. A record is effective if its
parent is the last effective record, so of two concurrent changes the first is effective, for every
reader. Each record has its own key, which is deleted two changes later, ineffective records first.
So compaction can neither remove the last effective record nor leave an ineffective one as the
first. The effective record before the last is the snapshot before the level change (KIP-778).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgpack

from assignor.levels.log.records import (
    NO_MINIMUMS,
    LogState,
    Note,
    check_levels,
    decode_batch,
    dropped_below,
    encode_batch,
    level_change,
    replay,
    snapshot,
)
from assignor.stores import LaterRelease, StoreError, whole_number
from encoding import shown
from probing.features import LevelRange

NOBODY: Final = -1
"""The parent of the first record."""

_LAYOUT: Final = 1
_KEPT: Final = 2
_NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A record of the topic; a value of None deletes the key."""

    offset: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """The result of reading all records.

    Attributes:
        state: state of the last effective record.
        head: offset of the last effective record; `NOBODY` if there is none.
        counted: keys of the existing effective records, oldest first.
        stale: keys to delete one by one in this order, so that the first remaining record is
            always effective.
        warnings: records that were ignored, and why, one sentence each.
    """

    state: LogState = field(default_factory=LogState)
    head: int = NOBODY
    counted: tuple[bytes, ...] = ()
    stale: tuple[bytes, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A record to write.

    Attributes:
        key, value: key and value of the record.
        after: the state if the record is effective.
        dropped: what a downgrade loses, one sentence each.
    """

    key: bytes
    value: bytes
    after: LogState
    dropped: tuple[str, ...] = ()


def topic_name(group: str) -> str:
    """Return the name of a group's topic."""
    return f"{group}-feature-levels"


TOPIC_SETTINGS: Final = {"cleanup.policy": "compact"}
"""Settings of the topic, which has one partition."""


def ignored_records(topic: str, what: str, found: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Return a sentence for each of the first records that were ignored, and one for the others.

    Args:
        topic: its name.
        what: what the records are not, such as "no feature log record".
        found: offset of each record, and what is wrong.
    """
    named = (
        f"record {offset} of {topic} is {what} and is ignored: {shown(why)}"
        for offset, why in found[:_NAMED]
    )
    more = len(found) - _NAMED
    others = (f"{more} more records of {topic} are {what} and are ignored",) if more > 0 else ()
    return (*named, *others)


def read_topic(
    records: Iterable[TopicRecord], *, topic: str = "the feature log's topic"
) -> TopicView:
    """Return the state that all records of the topic yield.

    A record that no release can have written is ignored: each record contains a whole state, so the
    state of the last effective record holds. A record of a later release may contain the levels
    that are in force, so it is not ignored.

    Args:
        records: all existing records, in offset order.
        topic: its name, for messages.

    Raises:
        LaterRelease: a record has a format that this release does not read.
    """
    alive: dict[bytes, int] = {}
    counted: list[bytes] = []
    ignored: list[tuple[int, str]] = []
    head, state = NOBODY, LogState()
    for record in records:
        if record.value is None:
            alive.pop(record.key, None)
            continue
        alive[record.key] = record.offset
        try:
            parent, body = _unpack(record)
            # The first existing record is effective: its parent has been deleted.
            if head not in (NOBODY, parent):
                continue
            batch = decode_batch(body, name=f"record {record.offset} of {topic}")
        except LaterRelease:
            raise
        except (StoreError, ValueError, TypeError, msgpack.UnpackException) as error:
            cause = error.__cause__ or error
            ignored.append((record.offset, str(cause) or type(cause).__name__))
            continue
        # An older program's record has no minimums; minimums never fall.
        state = replay(LogState(minimums=state.minimums), batch)
        head = record.offset
        counted.append(record.key)
    kept, winners = set(counted[-_KEPT:]), set(counted)
    return TopicView(
        state=state,
        head=head,
        counted=tuple(counted),
        stale=tuple(
            # Ineffective records first: none may remain as the first record.
            sorted(alive.keys() - kept, key=lambda key: (key in winners, alive[key]))
        ),
        warnings=ignored_records(topic, "no feature log record", ignored),
    )


def change_record(
    view: TopicView,
    levels: Mapping[str, int],
    note: Note,
    *,
    nonce: str,
    members: Mapping[str, Mapping[str, LevelRange]],
    minimums: Mapping[str, int] = NO_MINIMUMS,
) -> TopicChange:
    """Return the record that changes levels.

    Args:
        view: the state to change.
        levels: feature -> level; 0 disables a feature.
        note: who, when and why.
        nonce: random text that makes the key unique.
        members: what each member supports now; recorded if the format contains members.
        minimums: feature -> minimum to raise (KIP-584).

    Raises:
        StoreError: a level is unknown, or the record is too large.
    """
    check_levels({name: level for name, level in levels.items() if level > 0})
    after = replay(view.state, level_change(view.state, levels, note, minimums=minimums))
    dropped = dropped_below(view.state, after.persistent_version)
    if after.knows_members:
        after = replace(after, ranges_by_member=dict(sorted(members.items())))
    body = encode_batch(snapshot(after), log_format=after.format)
    return TopicChange(
        key=f"{after.levels.epoch:010}/{nonce}".encode(),
        value=msgpack.packb([_LAYOUT, view.head, body]),
        after=after,
        dropped=dropped,
    )


def check_counted(view: TopicView, change: TopicChange) -> None:
    """Check that a written record is effective, by a view that was read after the write.

    Raises:
        StoreError: a concurrent change came first, and this one has no effect.
    """
    if change.key not in view.counted:
        now = view.state.note
        who = f" by {now.who}" if now.who else ""
        raise StoreError(
            f"the levels were changed at the same time{who} (epoch {view.state.levels.epoch}), so"
            " this change has no effect; check the levels and try again"
        )


def _unpack(record: TopicRecord) -> tuple[int, bytes]:
    fields = msgpack.unpackb(record.value)
    if not isinstance(fields, list) or not fields:
        raise TypeError(f"a value of type {type(fields).__name__}")
    layout = whole_number(fields[0], what="layout")
    if layout > _LAYOUT:
        raise LaterRelease(
            f"record {record.offset} has layout {layout}; this release reads only layout"
            f" {_LAYOUT}; use the later release that wrote it"
        )
    if layout < _LAYOUT:
        raise ValueError(f"layout {layout} does not exist")
    _, parent, body = fields
    if not isinstance(body, bytes):
        raise TypeError(f"a state of type {type(body).__name__}")
    return parent if parent == NOBODY else whole_number(parent, what="parent"), body
