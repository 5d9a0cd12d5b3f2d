"""Updates of finalized levels as values: request, state of the controller, outcome.

KIP-584 defines the request and its errors, KIP-778 the kinds of downgrade and the dry run.
``decide.py`` decides about them.
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
    """What an update does to the finalized level."""

    ADD = "add"
    RAISE = "upgrade"
    LOWER = "downgrade"
    DELETE = "delete"
    NOTHING = "nothing"


class UpdateError(StrEnum):
    """Errors of an update, with Kafka's names."""

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
    """The rules that a controller uses.

    KIP: the texts of KIP-584 and KIP-778 with this project's additions; native groups use it.
    KAFKA: Kafka's controllers since 3.7: INVALID_UPDATE_VERSION is the only error, metadata.version
    has no unsafe downgrade, and every controller of the quorum must support a level.
    """

    KIP = "kip"
    KAFKA = "kafka"


class Role(StrEnum):
    """Role of a node; a node with two roles is two nodes here.

    A cluster has brokers and controllers, a group has members.
    """

    BROKER = "broker"
    MEMBER = "member"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """One line of a request.

    Attributes:
        feature: name of the feature.
        level: the new level; below 1: delete the feature's level.
        kind: what the operator allows.
    """

    feature: str
    level: int
    kind: UpdateKind = UpdateKind.UPGRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """Updates of several features.

    Attributes:
        updates: one line per feature.
        validate_only: a dry run: return the results, change nothing.
        together: apply all lines or none; if False, apply each line that succeeds.
        is_authorized: the user may alter the cluster.
    """

    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False
    together: bool = True
    is_authorized: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSupport:
    """Registration of a node with its supported ranges.

    Attributes:
        node_id: number of the node, or name of the member.
        role: broker or controller of a cluster, member of a group.
        ranges: supported range by feature; a missing feature is not supported.
        is_migrated: levels apply to the node; False while its static setting is below the
            migration version (KIP-584, phase 1): it advertises nothing and joins unchecked.
    """

    node_id: int | str
    role: Role = Role.BROKER
    ranges: Mapping[str, LevelRange] = field(default_factory=dict)
    is_migrated: bool = True

    def supports(self, feature: str, level: int) -> bool:
        """Tell whether the node can run with the feature at this level."""
        found = self.ranges.get(feature)
        return level == 0 if found is None else level in found

    def range_text(self, feature: str) -> str:
        """Return role, id and range of the node as text, as in ``broker 3 (1..7)``."""
        found = self.ranges.get(feature)
        return f"{self.role.value} {self.node_id} ({'none' if found is None else found})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerView:
    """State of the controller that decides about a request.

    Attributes:
        table: the features that this controller knows.
        finalized: the levels in force.
        nodes: every live registered node, including registered controllers.
        node_id: id of this controller.
        quorum: node ids of all voters; empty without a quorum, as in a group.
        is_active: this controller may write the log.
        is_enabled: levels can be finalized; False in KIP-584's phase 1 until every node has the
            migration version.
        minimums: by feature, the lowest level that is not deprecated (KIP-584).
        model: the rules to use.
    """

    table: FeatureTable
    finalized: FinalizedLevels
    nodes: tuple[NodeSupport, ...]
    node_id: int | str = 0
    quorum: tuple[int | str, ...] = ()
    is_active: bool = True
    is_enabled: bool = True
    minimums: Mapping[str, int] = field(default_factory=dict)
    model: UpdateModel = UpdateModel.KIP


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRecord:
    """Log record of an applied update: one level, no minimum (KIP-778); 0 deletes."""

    feature: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """Result of one line of a request.

    Attributes:
        feature: name of the feature.
        old_level: the level before, 0 if there was none.
        new_level: the requested level, 0 to delete.
        change: the kind of change.
        error: NONE if the line is applied, or would be without the dry run.
        rule: the row that decided.
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
        """Tell whether this line succeeds."""
        return self.error is UpdateError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOutcome:
    """Outcome of a request.

    Attributes:
        results: one per line, in the order of the request.
        finalized: the levels afterwards; unchanged by a failed request and by a dry run.
        records: records to append to the log atomically; empty if nothing changes.
        request_error: the error of a request that was refused as a whole, else NONE.
        why: the sentence for that error.
    """

    results: tuple[UpdateResult, ...]
    finalized: FinalizedLevels
    records: tuple[LevelRecord, ...] = ()
    request_error: UpdateError = UpdateError.NONE
    why: str = ""

    @property
    def error(self) -> UpdateError:
        """Return the error of the request, else the first error of a line, else NONE."""
        errors = (self.request_error, *(row.error for row in self.results))
        return next((error for error in errors if error is not UpdateError.NONE), UpdateError.NONE)

    @property
    def ok(self) -> bool:
        """Tell whether the request and all its lines succeed."""
        return self.error is UpdateError.NONE
