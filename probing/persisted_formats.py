"""Formats of persisted data, and when a rollback is no longer possible (KIP-384).

The wire version may go up and down. Data on a disk or in an internal topic must be readable for the
next program, which may be an older release. So a separate setting, ``persistent.metadata.version``,
selects the format that is *written*; every known format is read. A change that older readers skip
is made at once; a change that they cannot read needs the setting. After a raised format was
written, the setting cannot be lowered. Kafka never shipped this; the numbers are this project's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from probing.features import NATIVE_FEATURES, PERSISTENT_METADATA
from probing.rules import Rule, Rules, always, first

PERSISTENT_VERSIONS: Final = tuple(
    level.number for level in NATIVE_FEATURES.named(PERSISTENT_METADATA).levels
)
"""Every known value of ``persistent.metadata.version`` and ``message.format.version``."""


class Store(StrEnum):
    """Kinds of persisted data."""

    CHECKPOINT = "checkpoint"
    FEATURE_LOG = "feature log"
    PLAN = "plan"
    PROCESS_ID = "process id"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedFormat:
    """One format of one store.

    Attributes:
        number: 1, 2, ... within the store.
        since: the persistent version that introduced it.
        is_compatible: readers of the previous format can read it; they skip what they do not know.
        what: content of the format, or the change.
    """

    store: Store
    number: int
    since: int
    is_compatible: bool
    what: str


def _format(
    store: Store, number: int, what: str, *, since: int, is_compatible: bool = False
) -> PersistedFormat:
    return PersistedFormat(
        store=store, number=number, since=since, is_compatible=is_compatible, what=what
    )


PERSISTED_FORMATS: Final = (
    _format(Store.CHECKPOINT, 1, "lines of text, as Kafka Streams writes them", since=1),
    _format(Store.CHECKPOINT, 2, "columns under a checksum, with lags and sums", since=2),
    _format(Store.FEATURE_LOG, 1, "finalized levels", since=1),
    _format(Store.FEATURE_LOG, 2, "who changed a level, when and why", since=2, is_compatible=True),
    _format(Store.FEATURE_LOG, 3, "ranges that members support", since=2),
    _format(Store.PLAN, 1, "columns of eight bytes a number", since=1),
    _format(Store.PLAN, 2, "columns as narrow as their numbers", since=2),
    _format(Store.PROCESS_ID, 1, "JSON, as Kafka Streams writes it", since=1),
    _format(Store.PROCESS_ID, 2, "when it was made", since=2, is_compatible=True),
    _format(Store.PROCESS_ID, 3, "under a checksum", since=2),
)
"""Every format of every store, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedSettings:
    """Settings of the operator.

    Attributes:
        message_format_version: ``message.format.version``, which every reader must know.
        persistent_metadata_version: ``persistent.metadata.version``; None: the message format
            version, which is the conservative value.
    """

    message_format_version: int = PERSISTENT_VERSIONS[0]
    persistent_metadata_version: int | None = None

    @property
    def version(self) -> int:
        """The configured persistent version."""
        given = self.persistent_metadata_version
        return self.message_format_version if given is None else given


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The greatest persistent version that was ever written in a store, and when it first was.

    Attributes:
        version: the version.
        at_ms: when it was first written, in milliseconds since 1970.
        setting: the greatest setting with which this store was written; below ``version`` if a
            leader's higher version was adopted. None: ``version``.
    """

    version: int
    at_ms: int
    setting: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedNumbers:
    """Inputs of a row.

    Attributes:
        settings: this member's settings.
        written: the version that was written before, None for a new store.
        leader_version: the version that the group's leader writes; None for the leader itself.
        is_wire_raised: the wire version is raised in the same step.
        known_versions: every persistent version that this release reads and writes.
    """

    settings: PersistedSettings
    written: Written | None = None
    leader_version: int | None = None
    is_wire_raised: bool = False
    known_versions: tuple[int, ...] = PERSISTENT_VERSIONS

    @property
    def message(self) -> int:
        """The setting ``message.format.version``."""
        return self.settings.message_format_version

    @property
    def setting(self) -> int:
        """The configured persistent version."""
        return self.settings.version

    @property
    def known(self) -> str:
        """The known versions as text."""
        return ", ".join(map(str, self.known_versions))

    @property
    def written_version(self) -> int:
        """The version written before, 0 if there is none."""
        return 0 if self.written is None else self.written.version

    @property
    def written_setting(self) -> int:
        """The greatest setting of an earlier write, 0 if there is none."""
        setting = None if self.written is None else self.written.setting
        return self.written_version if setting is None else setting

    @property
    def written_at(self) -> str:
        """Time of the first write as text, empty if there is none."""
        return "" if self.written is None else _time(self.written.at_ms)


PERSISTED_RULES: Final[Rules[PersistedNumbers, Callable[[PersistedNumbers], int | None]]] = (
    Rule(
        name="message format unknown",
        holds=lambda n: n.message not in n.known_versions,
        says=lambda _: None,
        why="message.format.version={message} is unknown to this release; it knows {known}",
    ),
    Rule(
        name="persistent version unknown",
        holds=lambda n: n.setting not in n.known_versions,
        says=lambda _: None,
        why="persistent.metadata.version={setting} is unknown to this release; it knows {known}",
    ),
    Rule(
        name="message format above",
        holds=lambda n: n.message > n.setting,
        says=lambda _: None,
        why="message.format.version={message} is above persistent.metadata.version={setting};"
        " raise the second or lower the first",
    ),
    Rule(
        name="written by a later release",
        holds=lambda n: n.written is not None and n.written.version not in n.known_versions,
        says=lambda _: None,
        why="persistent version {written_version} was written here at {written_at}; this release"
        " does not read it (it reads {known}); start the later release again",
    ),
    Rule(
        name="the leader's is unknown",
        holds=lambda n: n.leader_version is not None and n.leader_version not in n.known_versions,
        says=lambda _: None,
        why="the leader writes persistent version {leader_version}; this release does not read it"
        " (it reads {known}); upgrade this member first",
    ),
    Rule(
        name="as the leader writes",
        holds=lambda n: n.leader_version is not None,
        says=lambda n: max(n.leader_version or 0, n.written_version),
        why="the leader writes persistent version {leader_version}; followers use it instead of"
        " their own setting ({setting})",
    ),
    Rule(
        name="no rollback",
        holds=lambda n: n.written_setting > n.setting,
        says=lambda _: None,
        why="persistent.metadata.version={setting} cannot be lowered: version {written_version} was"
        " first written here at {written_at}, and only releases that know it can read it; set it to"
        " {written_version} again, no data is lost",
    ),
    Rule(
        name="as a leader wrote",
        holds=lambda n: n.written_version > n.setting,
        says=lambda n: n.written_version,
        why="persistent version {written_version} is written here since {written_at}, adopted from"
        " the group's leader; the setting ({setting}) is lower and may be raised to it",
    ),
    Rule(
        name="raised with the wire",
        holds=lambda n: n.is_wire_raised and n.setting > max(n.written_version, 1),
        says=lambda n: n.setting,
        why="persistent version {setting} is raised together with the wire version: the first write"
        " makes a rollback impossible, before the new wire version has proved itself",
    ),
    Rule(
        name="raised",
        holds=lambda n: n.setting > max(n.written_version, 1),
        says=lambda n: n.setting,
        why="persistent version {setting} is written from now on: the first write makes a rollback"
        " to releases that do not read it impossible",
    ),
    Rule(
        name="as set",
        holds=always,
        says=lambda n: n.setting,
        why="persistent version {setting} is written, as configured",
    ),
)
"""The version to write; None: the member must not start."""

_CLOSING = frozenset({"raised", "raised with the wire"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedDecision:
    """The persistent version that a member writes.

    Attributes:
        version: the version, None if the member must not start.
        rule: the row that decided.
        why: its sentence.
        prevents_rollback: the next write makes a rollback to older releases impossible; tools warn.
    """

    version: int | None
    rule: str
    why: str
    prevents_rollback: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether the member must not start."""
        return self.version is None


def decide_persistent_version(numbers: PersistedNumbers) -> PersistedDecision:
    """Return which persistent version is written; a refusal is a decision too."""
    rule = first(PERSISTED_RULES, numbers)
    return PersistedDecision(
        version=rule.says(numbers),
        rule=rule.name,
        why=rule.sentence(numbers),
        prevents_rollback=rule.name in _CLOSING,
    )


def format_to_write(store: Store, persistent_version: int) -> int:
    """Return the format in which a store is written at a persistent version.

    This is the latest format up to the first incompatible one of a later persistent version.
    """
    formats = [row for row in PERSISTED_FORMATS if row.store is store]
    written = formats[0].number
    for row in formats[1:]:
        if row.since > persistent_version and not row.is_compatible:
            break
        written = row.number
    return written


def formats_to_read(store: Store) -> tuple[int, ...]:
    """Return every format of a store that can be read: all known ones."""
    return tuple(row.number for row in PERSISTED_FORMATS if row.store is store)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
