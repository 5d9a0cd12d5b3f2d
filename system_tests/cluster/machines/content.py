"""Entries of a metadata log besides levels, and their conversion to another level.

A schema defines the first level of each kind of entry and of its fields. The state is rewritten at
every change of the level (KIP-778). A lossy downgrade drops the entries and fields that the lower
level does not know, and lists them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from probing.features import FeatureError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a log.

    Attributes:
        kind: name of a kind of the schema.
        key: key, unique within the kind.
        fields: value by name; a missing field has its default.
    """

    kind: str
    key: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKind:
    """A kind of entry: its first level, and the first level of each later field."""

    name: str
    since: int
    later_fields: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """An entry, or a field of it, that a lower level does not know; ``field`` None: the entry."""

    kind: str
    key: str
    field: str | None = None

    def __str__(self) -> str:
        whole = f"{self.kind} {self.key}"
        return whole if self.field is None else f"{self.field} of {whole}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """State at another level: the remaining entries, by kind and key, and what was dropped."""

    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSchema:
    """Kinds of entries of one feature.

    Attributes:
        feature: feature whose level determines the known entries.
        kinds: every kind once.
    """

    feature: str
    kinds: tuple[EntryKind, ...]

    def kind_of(self, entry: Entry) -> EntryKind:
        """Return the row of an entry's kind.

        Raises:
            FeatureError: the kind is unknown.
        """
        for kind in self.kinds:
            if kind.name == entry.kind:
                return kind
        known = ", ".join(kind.name for kind in self.kinds)
        raise FeatureError(f"a log has no entries of kind {entry.kind!r}; there are {known}")

    def unknown_fields(self, entry: Entry, level: int) -> tuple[str, ...]:
        """Return the fields of an entry that a level does not know."""
        later = self.kind_of(entry).later_fields
        return tuple(name for name in sorted(entry.fields) if later.get(name, 0) > level)


def rewrite_content(schema: ContentSchema, entries: Iterable[Entry], level: int) -> Rewritten:
    """Return the state at a level, without the entries and fields that the level does not know.

    Raises:
        FeatureError: the kind of an entry is unknown.
    """
    kept: list[Entry] = []
    dropped: list[Dropped] = []
    for entry in sorted(entries, key=lambda entry: (entry.kind, entry.key)):
        if schema.kind_of(entry).since > level:
            dropped.append(Dropped(kind=entry.kind, key=entry.key))
            continue
        unknown = schema.unknown_fields(entry, level)
        dropped += [Dropped(kind=entry.kind, key=entry.key, field=name) for name in unknown]
        left = {name: value for name, value in entry.fields.items() if name not in unknown}
        kept.append(replace(entry, fields=left) if unknown else entry)
    return Rewritten(entries=tuple(kept), dropped=tuple(dropped))


KAFKA_CONTENT: Final = ContentSchema(
    feature="metadata.version",
    kinds=(
        EntryKind(name="topic", since=1),
        EntryKind(
            name="partition",
            since=1,
            later_fields={
                "leader_recovery_state": 3,
                "directories": 17,
                "eligible_leader_replicas": 23,
                "last_known_elr": 23,
            },
        ),
        EntryKind(
            name="broker",
            since=1,
            later_fields={
                "in_controlled_shutdown": 7,
                "is_migrating_from_zookeeper": 8,
                "log_directories": 17,
                "cordoned_log_directories": 30,
            },
        ),
        EntryKind(name="config", since=1),
        EntryKind(name="quota", since=1),
        EntryKind(name="acl", since=1),
        EntryKind(name="producer_ids", since=1),
        EntryKind(name="zookeeper_migration", since=8),
        EntryKind(name="scram_credential", since=11),
        EntryKind(name="delegation_token", since=14),
        EntryKind(name="controller", since=15),
    ),
)
"""Entries of Kafka's metadata log, by metadata.version. Records that are not in a snapshot (no-ops,
transactions, changes of a registration) are left out."""
