"""In which format persisted things are written, and when there is no way back (KIP-384).

The wire may go up and down; what lies on a disk or in an internal topic must be read by whoever
starts next, perhaps an older release. So one setting of its own, ``persistent.metadata.version``,
decides what is *written*; every known format is read. A change that older readers skip over is made
at once, one that they cannot read waits for the setting. Once a raised format was written the
setting cannot go down again. Kafka never shipped this; the gate and its numbers are this project's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from probing.features import NATIVE_FEATURES, PERSISTENT_METADATA

PERSISTENT_VERSIONS: Final = tuple(
    level.number for level in NATIVE_FEATURES.named(PERSISTENT_METADATA).levels
)
"""Every value of ``persistent.metadata.version`` and of ``message.format.version`` known here."""


class Store(StrEnum):
    """The things that are persisted."""

    CHECKPOINT = "checkpoint"
    FEATURE_LOG = "feature log"
    PLAN = "plan"
    PROCESS_ID = "process id"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedFormat:
    """One format of one store.

    Attributes:
        number: 1, 2, ... within the store.
        since: the persistent version that it came with.
        is_compatible: a reader of the format before reads it too, and skips what it does not know.
        what: what it is, or what changed.
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
    """What an operator sets.

    Attributes:
        message_format_version: ``message.format.version``, what everybody who reads must know.
        persistent_metadata_version: ``persistent.metadata.version``; None takes the message
            format's, which is the conservative value.
    """

    message_format_version: int = PERSISTENT_VERSIONS[0]
    persistent_metadata_version: int | None = None

    @property
    def version(self) -> int:
        """The persistent version that the settings ask for."""
        given = self.persistent_metadata_version
        return self.message_format_version if given is None else given


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The greatest persistent version that was ever written in a place, and when it first was.

    Attributes:
        version: what was written.
        at_ms: since when, in milliseconds since 1970.
        setting: the greatest setting under which this place was written; below `version` where a
            leader's version was taken that the own setting had not reached. None: `version`.
    """

    version: int
    at_ms: int
    setting: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedNumbers:
    """What a row may look at.

    Attributes:
        settings: this member's.
        written: what lies there already, None for a new place.
        leader_version: what the group's leader wrote last, None for the leader itself and alone.
        is_wire_raised: the wire version goes up in the same step.
        known_versions: every persistent version that this release reads and writes.
    """

    settings: PersistedSettings
    written: Written | None = None
    leader_version: int | None = None
    is_wire_raised: bool = False
    known_versions: tuple[int, ...] = PERSISTENT_VERSIONS

    @property
    def written_version(self) -> int:
        """What was written, 0 where nothing was."""
        return 0 if self.written is None else self.written.version

    @property
    def written_setting(self) -> int:
        """The greatest setting under which something was written, 0 where nothing was."""
        setting = None if self.written is None else self.written.setting
        return self.written_version if setting is None else setting

    @property
    def written_at(self) -> str:
        """When, for people."""
        return "" if self.written is None else _time(self.written.at_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedRule:
    """One row: when it holds, the version to write (None: refuse to start), the sentence.

    ``why`` is a format string over ``_words``.
    """

    name: str
    holds: Callable[[PersistedNumbers], bool]
    says: Callable[[PersistedNumbers], int | None]
    why: str


PERSISTED_RULES: Final = (
    PersistedRule(
        name="message format unknown",
        holds=lambda n: n.settings.message_format_version not in n.known_versions,
        says=lambda _: None,
        why="message.format.version={message} is not known here; known are {known}",
    ),
    PersistedRule(
        name="persistent version unknown",
        holds=lambda n: n.settings.version not in n.known_versions,
        says=lambda _: None,
        why="persistent.metadata.version={setting} is not known here; known are {known}",
    ),
    PersistedRule(
        name="message format above",
        holds=lambda n: n.settings.message_format_version > n.settings.version,
        says=lambda _: None,
        why="message.format.version={message} is above persistent.metadata.version={setting};"
        " raise the second, or lower the first",
    ),
    PersistedRule(
        name="written by a later release",
        holds=lambda n: n.written is not None and n.written.version not in n.known_versions,
        says=lambda _: None,
        why="persistent version {written} was written here at {at}, which this release does not"
        " read (it reads {known}); start the later release again",
    ),
    PersistedRule(
        name="the leader's is unknown",
        holds=lambda n: n.leader_version is not None and n.leader_version not in n.known_versions,
        says=lambda _: None,
        why="the leader writes persistent version {leader}, which this release does not read (it"
        " reads {known}); upgrade this member first",
    ),
    PersistedRule(
        name="as the leader writes",
        holds=lambda n: n.leader_version is not None,
        says=lambda n: max(n.leader_version or 0, n.written_version),
        why="the leader writes persistent version {leader}, and followers take it whatever their"
        " own setting says ({setting})",
    ),
    PersistedRule(
        name="no way back",
        holds=lambda n: n.written_setting > n.settings.version,
        says=lambda _: None,
        why="persistent.metadata.version={setting} would go back: version {written} was first"
        " written here at {at}, and what is written stays readable only to releases that know it;"
        " set it to {written} again, nothing is lost",
    ),
    PersistedRule(
        name="as a leader wrote",
        holds=lambda n: n.written_version > n.settings.version,
        says=lambda n: n.written_version,
        why="persistent version {written} is written here since {at}, as the group's leader did;"
        " the setting ({setting}) was never above and may follow",
    ),
    PersistedRule(
        name="raised with the wire",
        holds=lambda n: n.is_wire_raised and n.settings.version > max(n.written_version, 1),
        says=lambda n: n.settings.version,
        why="persistent version {setting} goes up together with the wire version: the way back to"
        " an older release closes with the first write, before the new wire version was tried",
    ),
    PersistedRule(
        name="raised",
        holds=lambda n: n.settings.version > max(n.written_version, 1),
        says=lambda n: n.settings.version,
        why="persistent version {setting} is written from now on: the way back to releases that"
        " do not read it closes with the first write",
    ),
    PersistedRule(
        name="as set",
        holds=lambda _: True,
        says=lambda n: n.settings.version,
        why="persistent version {setting} is written, as set",
    ),
)
"""First row that holds, wins."""

_CLOSING = frozenset({"raised", "raised with the wire"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedDecision:
    """What a member writes.

    Attributes:
        version: the persistent version to write, None where it must not start.
        rule: the row that said so.
        why: its sentence.
        closes_way_back: the next write ends the way back to older releases; a tool warns.
    """

    version: int | None
    rule: str
    why: str
    closes_way_back: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether the member must not start."""
        return self.version is None


def decide_persistent_version(numbers: PersistedNumbers) -> PersistedDecision:
    """Say which persistent version is written; a refusal is a decision like the others."""
    rule = next(rule for rule in PERSISTED_RULES if rule.holds(numbers))
    return PersistedDecision(
        version=rule.says(numbers),
        rule=rule.name,
        why=rule.why.format(**_words(numbers)),
        closes_way_back=rule.name in _CLOSING,
    )


def format_to_write(store: Store, persistent_version: int) -> int:
    """Return the format in which a store is written at a persistent version.

    The latest one of that version or below, and from there on every compatible change up to the
    next incompatible one.
    """
    formats = [one for one in PERSISTED_FORMATS if one.store is store]
    written = formats[0].number
    for one in formats[1:]:
        if one.since > persistent_version and not one.is_compatible:
            break
        written = one.number
    return written


def formats_to_read(store: Store) -> tuple[int, ...]:
    """Return every format of a store that is read, which are all known ones."""
    return tuple(one.number for one in PERSISTED_FORMATS if one.store is store)


def _words(numbers: PersistedNumbers) -> dict[str, object]:
    return {
        "message": numbers.settings.message_format_version,
        "setting": numbers.settings.version,
        "known": ", ".join(map(str, numbers.known_versions)),
        "written": numbers.written_version,
        "at": numbers.written_at,
        "leader": numbers.leader_version,
    }


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
