"""Updates of finalized levels as values: what is asked, what the controller sees, what comes of it.

KIP-584 has the request and its errors, KIP-778 the kinds of downgrade and the dry run. What a
controller does with them is decided in ``decide.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from probing.features.levels import FinalizedLevels, LevelRange
from probing.features.table import FeatureTable


class UpdateKind(Enum):
    """What an operator allows an update to do; the values are those of UpdateFeatures v1."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class Change(StrEnum):
    """What an update comes to, given the level that is finalized now."""

    ADD = "add"
    RAISE = "upgrade"
    LOWER = "downgrade"
    DELETE = "delete"
    NOTHING = "nothing"


class UpdateError(StrEnum):
    """The errors of an update by Kafka's names."""

    NONE = "NONE"
    CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
    NOT_CONTROLLER = "NOT_CONTROLLER"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_UPDATE_VERSION = "INVALID_UPDATE_VERSION"
    FEATURE_UPDATE_FAILED = "FEATURE_UPDATE_FAILED"
    UNSAFE_FEATURE_DOWNGRADE = "UNSAFE_FEATURE_DOWNGRADE"

    @property
    def code(self) -> int:
        """Return the number on the wire.

        UNSAFE_FEATURE_DOWNGRADE never got one in Kafka; there it is INVALID_UPDATE_VERSION.
        """
        return _CODES[self]


_CODES: Final = {
    UpdateError.NONE: 0,
    UpdateError.CLUSTER_AUTHORIZATION_FAILED: 31,
    UpdateError.NOT_CONTROLLER: 41,
    UpdateError.INVALID_REQUEST: 42,
    UpdateError.INVALID_UPDATE_VERSION: 95,
    UpdateError.FEATURE_UPDATE_FAILED: 96,
    UpdateError.UNSAFE_FEATURE_DOWNGRADE: 95,
}


class UpdateModel(StrEnum):
    """Whose rules a controller goes by.

    KIP: the texts of KIP-584 and KIP-778, and what we add to them; ours. KAFKA: what Kafka's
    controllers since 3.7 do: one error for all, INVALID_UPDATE_VERSION, no unsafe way down of
    metadata.version, every controller of the quorum asked.
    """

    KIP = "kip"
    KAFKA = "kafka"


class Role(StrEnum):
    """What a node is; a node of both roles is two nodes here.

    A group has members and neither of the others.
    """

    BROKER = "broker"
    MEMBER = "member"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """One line of a request.

    Attributes:
        feature: its name.
        level: the level wanted; below 1 it asks to delete the feature's level.
        kind: what the operator allows.
    """

    feature: str
    level: int
    kind: UpdateKind = UpdateKind.UPGRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """Updates of several features.

    Attributes:
        updates: one a feature.
        validate_only: a dry run: say what would come of it, change nothing.
        together: all or none; otherwise each that can be done is done.
        is_authorized: who asks may alter the cluster.
    """

    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False
    together: bool = True
    is_authorized: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSupport:
    """What a registered node told the controller.

    Attributes:
        node_id: its number, or a member's name.
        role: broker or controller of a cluster, member of a group.
        ranges: supported range by feature; a feature that is missing is not supported.
        is_migrated: levels count on the node; False while its static setting is below the
            migration version (KIP-584, phase 1): it advertises nothing and is let in unchecked.
    """

    node_id: int | str
    role: Role = Role.BROKER
    ranges: Mapping[str, LevelRange] = field(default_factory=dict)
    is_migrated: bool = True

    def supports(self, feature: str, level: int) -> bool:
        """Tell whether the node can run with the feature at this level."""
        found = self.ranges.get(feature)
        return level == 0 if found is None else level in found

    def said(self, feature: str) -> str:
        """Describe the node and its range, as in ``broker 3 (1..7)``."""
        found = self.ranges.get(feature)
        return f"{self.role.value} {self.node_id} ({'none' if found is None else found})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerView:
    """All that decides about a request.

    Attributes:
        table: the features that this controller knows.
        finalized: the levels in force.
        nodes: every live registered node; the controllers that are heard of among them.
        node_id: of the controller that decides.
        quorum: node ids of all voters; empty where there is no quorum, as in a group.
        is_active: this controller may write the log.
        is_enabled: levels may be finalized at all; False in KIP-584's phase 1 until every node
            has the migration version.
        floors: the deprecated minimum by feature (KIP-584): no level may go below.
        model: whose rules hold.
    """

    table: FeatureTable
    finalized: FinalizedLevels
    nodes: tuple[NodeSupport, ...]
    node_id: int | str = 0
    quorum: tuple[int | str, ...] = ()
    is_active: bool = True
    is_enabled: bool = True
    floors: Mapping[str, int] = field(default_factory=dict)
    model: UpdateModel = UpdateModel.KIP


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRecord:
    """What an applied update writes to the log: one level, no minimum (KIP-778); 0 deletes."""

    feature: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """What becomes of one line of a request.

    Attributes:
        feature: its name.
        old_level: the level before, 0 if there was none.
        new_level: the level that was asked for, 0 to delete.
        change: what that is.
        error: NONE if it is, or in a dry run would be, done.
        rule: the row of the table that decided.
        why: its sentence, with the numbers and what to do.
        loses: names of the levels whose records and fields a lossy downgrade drops.
    """

    feature: str
    old_level: int
    new_level: int
    change: Change
    error: UpdateError
    rule: str
    why: str
    loses: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Tell whether this line can be done."""
        return self.error is UpdateError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOutcome:
    """What becomes of a request.

    Attributes:
        results: one a line, in the order of the request.
        finalized: the levels afterwards; untouched by a failed request and by a dry run.
        records: what has to be appended to the log, at once or not at all; none when nothing is
            to change.
        request_error: the request as a whole was refused, before any line was looked at.
        why: the sentence of that.
    """

    results: tuple[UpdateResult, ...]
    finalized: FinalizedLevels
    records: tuple[LevelRecord, ...] = ()
    request_error: UpdateError = UpdateError.NONE
    why: str = ""

    @property
    def error(self) -> UpdateError:
        """Return the error of the request, else the first of a line, NONE if there is none."""
        errors = (self.request_error, *(row.error for row in self.results))
        return next((error for error in errors if error is not UpdateError.NONE), UpdateError.NONE)

    @property
    def ok(self) -> bool:
        """Tell whether every line can be done."""
        return self.error is UpdateError.NONE
