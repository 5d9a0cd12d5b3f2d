"""The memory of reached topology versions as records of a compacted topic; no Kafka client.

It has a topic of its own beside the feature log: releases that do not know it delete records of the
feature log that they cannot read, when they change a level. A record contains a whole memory. The
memory of the topic is the greatest entry of each form of all records, so that their order does not
matter, and two writers at the same moment lose nothing. Each record has its own key; a record that
later ones contain is deleted.

All entries are read, however many there are: which of them concern the group, only its members
know. An entry whose epoch is far above the lowest one of the topic is refused; no change and no
operator writes it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgpack

from assignor.levels.log.topic import TopicRecord, ignored_records
from assignor.stores import whole_number
from encoding import shown
from probing.topologies import (
    HIGHEST_EPOCH,
    MOST_AHEAD,
    MOST_ENTRIES,
    Reached,
    credible,
    lacks,
)

_LAYOUT: Final = 1
_FORM_BYTES: Final = 8
_HIGHEST_VERSION: Final = 2**31 - 1
# Half of what leaders believe, so that they believe an operator's return, too: its epoch is the
# next one.
_MOST_ABOVE_LOWEST: Final = MOST_AHEAD // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedView:
    """The result of reading all records.

    Attributes:
        memory: fingerprint of a form -> the version that it has reached.
        stale: keys of records that later ones contain, to be deleted.
        warnings: records and entries that were ignored, and why, one sentence each.
        later: records that only a later release reads; do not write or delete while there are any.
    """

    memory: Mapping[bytes, Reached] = field(default_factory=dict)
    stale: tuple[bytes, ...] = ()
    warnings: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


def reached_topic_name(group: str) -> str:
    """Return the name of a group's topic."""
    return f"{group}-reached-topologies"


def read_reached_topic(
    records: Iterable[TopicRecord], *, topic: str = "the reached versions' topic"
) -> ReachedView:
    """Return the memory that all records of the topic yield.

    Args:
        records: all existing records, in offset order.
        topic: its name, for messages.
    """
    memories: dict[bytes, Mapping[bytes, Reached]] = {}
    later: dict[bytes, str] = {}
    ignored: list[tuple[int, str]] = []
    for record in records:
        # The later record of a key replaces the earlier one.
        memories.pop(record.key, None)
        later.pop(record.key, None)
        if record.value is None:
            continue
        try:
            fields = msgpack.unpackb(record.value)
            since = whole_number(fields["readable_since"], what="readable_since")
            if since > _LAYOUT:
                later[record.key] = _later_layout(record, since)
            else:
                memories[record.key] = _memory(fields["reached"])
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            ignored.append((record.offset, str(error) or type(error).__name__))
    epochs = [reached.epoch for memory in memories.values() for reached in memory.values()]
    lowest = min(epochs, default=0)
    seen: dict[bytes, Reached] = {}
    stale = []
    for key, memory in reversed(memories.items()):
        believed = credible(memory, lowest, ahead=_MOST_ABOVE_LOWEST)
        if len(believed) == len(memory) and not lacks(seen, memory):
            stale.append(key)
        for form, reached in believed.items():
            seen[form] = max(reached, seen.get(form, reached))
    refused = sum(epoch > lowest + _MOST_ABOVE_LOWEST for epoch in epochs)
    return ReachedView(
        memory=dict(sorted(seen.items())),
        stale=tuple(reversed(stale)),
        warnings=(
            *ignored_records(topic, "no memory of topologies", ignored),
            *_refused(topic, refused, lowest),
        ),
        later=tuple(later.values()),
    )


def reached_record(memory: Mapping[bytes, Reached], *, nonce: str) -> tuple[bytes, bytes]:
    """Return key and value of the record with a memory.

    Args:
        memory: that of the topic, and what is added.
        nonce: random text that makes the key unique.
    """
    rows = [[form, *memory[form]] for form in sorted(memory)]
    value: bytes = msgpack.packb({"readable_since": _LAYOUT, "reached": rows})
    epoch = max((reached.epoch for reached in memory.values()), default=0)
    return f"{epoch:020}/{nonce}".encode(), value


def _refused(topic: str, entries: int, lowest: int) -> tuple[str, ...]:
    """The sentence about entries with an epoch that no release writes."""
    if not entries:
        return ()
    sentence = (
        f"{entries} entries of {topic} are ignored: their epoch is more than {_MOST_ABOVE_LOWEST}"
        f" above {lowest}, the lowest one; find out who writes to the topic"
    )
    return (sentence,)


def _later_layout(record: TopicRecord, layout: int) -> str:
    key = shown(record.key.decode(errors="backslashreplace"))
    return (
        f"record {record.offset} with key {key} has layout {layout}, and this release reads only"
        f" layout {_LAYOUT}"
    )


def _memory(rows: object) -> dict[bytes, Reached]:
    """The memory of a record's rows.

    Raises:
        ValueError, TypeError: a row is not an entry that leaders believe.
    """
    if not isinstance(rows, list) or len(rows) > MOST_ENTRIES:
        raise ValueError("not a list of entries")
    memory = {}
    for form, epoch, version in rows:
        if not isinstance(form, bytes) or len(form) != _FORM_BYTES:
            raise ValueError("not a fingerprint")
        memory[form] = Reached(
            whole_number(epoch, what="epoch", most=HIGHEST_EPOCH - 1),
            1 + whole_number(version - 1, what="version - 1", most=_HIGHEST_VERSION - 1),
        )
    return memory
