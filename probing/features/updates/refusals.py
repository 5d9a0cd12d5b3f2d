"""Decision tables of the controller: what forbids an update, with sentence and error.

The first row that holds decides; the last row always holds. Each model has its own table: KIP-584
with KIP-778, and what Kafka's controllers do.
"""

from dataclasses import replace
from typing import Final

from probing.features.updates.facts import UpdateNumbers
from probing.features.updates.values import UpdateError, UpdateKind, UpdateModel
from probing.rules import Rule, Rules, always

UpdateRule = Rule[UpdateNumbers, UpdateError]

_UNKNOWN: Final = UpdateRule(
    name="unknown feature",
    holds=lambda n: n.feature is None,
    says=UpdateError.INVALID_REQUEST,
    why="there is no feature {name}; list the features with describe",
)
_DELETE_IS_DOWN: Final = UpdateRule(
    name="deleted by an upgrade",
    holds=lambda n: n.update.level < 1 and n.update.kind is UpdateKind.UPGRADE,
    says=UpdateError.INVALID_REQUEST,
    why="{name} cannot be deleted by an upgrade; request a safe or an unsafe downgrade",
)
_ALWAYS_ON: Final = UpdateRule(
    name="cannot be off",
    holds=lambda n: n.update.level < 1 and n.feature is not None and n.feature.is_always_on,
    says=UpdateError.INVALID_REQUEST,
    why="{name} cannot be deleted, only lowered; name the level to go down to",
)
_NOTHING_TO_DELETE: Final = UpdateRule(
    name="nothing to delete",
    holds=lambda n: n.update.level < 1 and n.old == 0,
    says=UpdateError.INVALID_REQUEST,
    why="{name} has no finalized level to delete",
)
_ALREADY_THERE: Final = UpdateRule(
    name="already there",
    holds=lambda n: n.new == n.old,
    says=UpdateError.INVALID_REQUEST,
    why="{name} is already finalized at {old}; remove it from the request",
)
_RAISED_BY_DOWNGRADE: Final = UpdateRule(
    name="raised by a downgrade",
    holds=lambda n: n.new > n.old and n.update.kind is not UpdateKind.UPGRADE,
    says=UpdateError.INVALID_REQUEST,
    why="{name} is finalized at {old}, and {new} is above; request an upgrade",
)
_LOWERED_BY_UPGRADE: Final = UpdateRule(
    name="lowered by an upgrade",
    holds=lambda n: n.is_lower and n.update.kind is UpdateKind.UPGRADE,
    says=UpdateError.INVALID_REQUEST,
    why="{name} is finalized at {old}, and {new} is below; request a downgrade",
)
_NODES_CANNOT: Final = UpdateRule(
    name="a node cannot",
    holds=lambda n: n.new > 0 and bool(n.cannot),
    says=UpdateError.FEATURE_UPDATE_FAILED,
    why="{name} level {new} is not supported by {cannot_text}; bounce them to a release that"
    " supports it, or stop them, then repeat the request",
)
_NO_SUCH_LEVEL: Final = UpdateRule(
    name="no such level",
    holds=lambda n: n.new > 0 and n.feature is not None and n.feature.find(n.new) is None,
    says=UpdateError.INVALID_REQUEST,
    why="{name} has no level {new}; list its levels with describe",
)
_NO_MAJORITY: Final = UpdateRule(
    name="no majority of the quorum",
    holds=lambda n: n.new > 0 and n.supporting < n.majority,
    says=UpdateError.FEATURE_UPDATE_FAILED,
    why="{name} level {new} must be supported by {majority} controllers of the quorum, {supporting}"
    " support it ({voters_text}); bounce or start the others first",
)
_DEPRECATED: Final = UpdateRule(
    name="deprecated level",
    holds=lambda n: 0 < n.new < n.minimum,
    says=UpdateError.INVALID_REQUEST,
    why="{name} level {new} is deprecated: the minimum is {minimum}, since all nodes supported"
    " {minimum} or above only, and it never falls; choose {minimum} or more",
)
_UNMET: Final = UpdateRule(
    name="requires another feature",
    holds=lambda n: n.new > 0 and bool(n.unmet),
    says=UpdateError.FEATURE_UPDATE_FAILED,
    why="{name} level {new} requires {unmet}; finalize that first, or in the same request",
)
_NEEDED: Final = UpdateRule(
    name="required by another feature",
    holds=lambda n: n.is_lower and bool(n.dependent),
    says=UpdateError.FEATURE_UPDATE_FAILED,
    why="{name} cannot be lowered to {new} while {dependent} is finalized, which requires a higher"
    " level; lower that first, or in the same request",
)
_ONE_WAY: Final = UpdateRule(
    name="never lowered",
    holds=lambda n: n.is_lower and n.feature is not None and not n.feature.can_be_lowered,
    says=UpdateError.UNSAFE_FEATURE_DOWNGRADE,
    why="{name} cannot be lowered, not even with data loss; keep it at {old}",
)
_LOSSY: Final = UpdateRule(
    name="lossy downgrade",
    holds=lambda n: bool(n.lossy) and not n.is_unsafe,
    says=UpdateError.UNSAFE_FEATURE_DOWNGRADE,
    why="{name} cannot go from {old} to {new} without data loss: level {lossy_name} is not"
    " compatible back; stay at or above it, or request an unsafe downgrade to accept the loss",
)
_APPLIED_LOSSY: Final = UpdateRule(
    name="unsafe downgrade",
    holds=lambda n: bool(n.lossy),
    says=UpdateError.NONE,
    why="{name} goes from {old} to {new}; the data of level {lossy_name}, and of the lossy levels"
    " below it, is dropped",
)
_APPLIED: Final = UpdateRule(
    name="applied",
    holds=always,
    says=UpdateError.NONE,
    why="{name} goes from {old} to {new}",
)

_REFUSED: Final = UpdateError.INVALID_UPDATE_VERSION

UPDATE_RULES: Final[dict[UpdateModel, Rules[UpdateNumbers, UpdateError]]] = {
    UpdateModel.KIP: (
        _UNKNOWN,
        _DELETE_IS_DOWN,
        _ALWAYS_ON,
        _NOTHING_TO_DELETE,
        _ALREADY_THERE,
        _RAISED_BY_DOWNGRADE,
        _LOWERED_BY_UPGRADE,
        _NODES_CANNOT,
        _NO_SUCH_LEVEL,
        _NO_MAJORITY,
        _DEPRECATED,
        _UNMET,
        _NEEDED,
        _ONE_WAY,
        _LOSSY,
        _APPLIED_LOSSY,
        _APPLIED,
    ),
    UpdateModel.KAFKA: (
        UpdateRule(
            name="negative level",
            holds=lambda n: n.update.level < 0,
            says=_REFUSED,
            why="{name} cannot be set to a level below 0",
        ),
        UpdateRule(
            name="a node cannot",
            holds=lambda n: bool(n.cannot),
            says=_REFUSED,
            why="{name} level {new} is not supported by {cannot_text}",
        ),
        UpdateRule(
            name="a controller cannot",
            holds=lambda n: bool(n.silent),
            says=_REFUSED,
            why="{name} level {new} must be supported by every controller of the quorum, and"
            " {silent} may not support it",
        ),
        replace(_LOWERED_BY_UPGRADE, says=_REFUSED),
        replace(_RAISED_BY_DOWNGRADE, says=_REFUSED),
        UpdateRule(
            name="no such level",
            holds=lambda n: n.feature is None or (n.new > 0 and n.feature.find(n.new) is None),
            says=_REFUSED,
            why="{name} has no level {new}",
        ),
        UpdateRule(
            name="too low to be logged",
            holds=lambda n: (
                n.feature is not None
                and n.new < n.feature.lowest_settable
                and n.feature.is_always_on
            ),
            says=_REFUSED,
            why="{name} level {new} cannot be set: it is older than level records in the log",
        ),
        replace(_ONE_WAY, says=_REFUSED),
        UpdateRule(
            name="lossy downgrade",
            holds=lambda n: bool(n.lossy) and not n.is_unsafe,
            says=_REFUSED,
            why="{name} cannot go from {old} to {new} without data loss: level {lossy_name} is not"
            " compatible back",
        ),
        UpdateRule(
            name="unsafe downgrade not done",
            holds=lambda n: bool(n.lossy),
            says=_REFUSED,
            why="{name} cannot go from {old} to {new}: Kafka does not support unsafe downgrades yet"
            " (KAFKA-13896)",
        ),
        replace(_UNMET, says=_REFUSED),
        _APPLIED,
    ),
}
"""Rows for each line of a request, by model: the error of the line."""
