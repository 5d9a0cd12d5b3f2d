"""The feature log as records of a compacted topic that a group shares; no client, only records.

Every record holds the whole state after one change, and the offset of the record that it was
decided on. In the order of offsets a record counts when it names the one that counted last, so of
two operators who change levels at the same moment the first wins, and everybody sees the same one.
Each record has a key of its own, which is deleted two changes later, losers first: compaction,
which keeps the last record of a key, can neither take the winner away nor leave a loser as the
first of all. The record before the last is the snapshot right before the level change (KIP-778).
"""

from collections.abc import Iterable, Mapping
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
from assignor.stores import StoreError, whole_number
from encoding import shown
from probing.features import LevelRange

NOBODY: Final = -1
"""The offset before the first record."""

_LAYOUT: Final = 1
_KEPT: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A record as a consumer gets it; a value of None deletes the key."""

    offset: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """What the records say.

    Attributes:
        state: after the last record that counts.
        head: offset of that record, `NOBODY` if there is none.
        counted: keys of the records that count, oldest first, as far as they are still there.
        stale: keys that may be deleted, one after the other in this order, each when the one
            before is: what is left always begins with a record that counts.
        warnings: what was passed over, and why.
    """

    state: LogState = field(default_factory=LogState)
    head: int = NOBODY
    counted: tuple[bytes, ...] = ()
    stale: tuple[bytes, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A record to write, and what comes of it if it counts.

    Attributes:
        dropped: what the new level does not know and is gone, one sentence each.
    """

    key: bytes
    value: bytes
    after: LogState
    dropped: tuple[str, ...] = ()


def topic_name(group: str) -> str:
    """Return the name of a group's topic."""
    return f"{group}-feature-levels"


TOPIC_SETTINGS: Final = {"cleanup.policy": "compact"}
"""How the topic is made, with one partition."""


def read_topic(records: Iterable[TopicRecord]) -> TopicView:
    """Return what all records of the topic say.

    Args:
        records: in the order of their offsets, from the first that is there.

    Raises:
        StoreError: a later release wrote in a format that this one does not read.
    """
    alive: dict[bytes, int] = {}
    counted: list[bytes] = []
    warnings: list[str] = []
    head, state = NOBODY, LogState()
    for record in records:
        if record.value is None:
            alive.pop(record.key, None)
            continue
        alive[record.key] = record.offset
        try:
            parent, body = _unpack(record)
        except (ValueError, TypeError, msgpack.UnpackException):
            warnings.append(f"record {record.offset} is none of ours and counts for nothing")
            continue
        # The first that is left counts: what it was decided on has been deleted.
        if head not in (NOBODY, parent):
            continue
        # A program that does not know minimums leaves them out of its record; they do not fall.
        before = LogState(minimums=state.minimums)
        found = replay(before, decode_batch(body, name=f"record {record.offset}"))
        head, state = record.offset, found
        counted.append(record.key)
    kept, winners = set(counted[-_KEPT:]), set(counted)
    return TopicView(
        state=state,
        head=head,
        counted=tuple(counted),
        stale=tuple(
            # Those that never counted first: none may be left as the first record of all.
            sorted(alive.keys() - kept, key=lambda key: (key in winners, alive[key]))
        ),
        warnings=tuple(warnings),
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
        view: what it is decided on.
        levels: level by feature; 0 takes a feature out.
        note: who, when, why.
        nonce: random; tells this record from another operator's.
        members: what each member supports now, remembered where the level knows members.
        minimums: that rise, by feature (KIP-584).

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
    """Tell that a written record counts, from what was read after it was written.

    Raises:
        StoreError: somebody else's came first, and this one changed nothing.
    """
    if change.key not in view.counted:
        now = view.state.note
        who = f" by {now.who}" if now.who else ""
        raise StoreError(
            f"the levels were changed at the same time{who} (epoch {view.state.levels.epoch}), and"
            " this change counts for nothing; look at them and try again"
        )


def _unpack(record: TopicRecord) -> tuple[int, bytes]:
    layout, parent, body = msgpack.unpackb(record.value)
    if layout != _LAYOUT:
        raise StoreError(
            f"record {record.offset} is of layout {shown(layout)}, this release reads {_LAYOUT};"
            " use the later release"
        )
    if not isinstance(body, bytes):
        raise TypeError(f"a state of type {type(body).__name__}")
    return parent if parent == NOBODY else whole_number(parent, what="parent"), body
