"""Updates of finalized levels: requests, the rules that allow or refuse them, and the outcome."""

from probing.features.updates.decide import REQUEST_RULES, decide_update
from probing.features.updates.refusals import UPDATE_RULES
from probing.features.updates.values import (
    Change,
    ControllerView,
    FeatureUpdate,
    LevelRecord,
    NodeSupport,
    Role,
    UpdateError,
    UpdateKind,
    UpdateModel,
    UpdateOutcome,
    UpdateRequest,
    UpdateResult,
)

__all__ = [
    "REQUEST_RULES",
    "UPDATE_RULES",
    "Change",
    "ControllerView",
    "FeatureUpdate",
    "LevelRecord",
    "NodeSupport",
    "Role",
    "UpdateError",
    "UpdateKind",
    "UpdateModel",
    "UpdateOutcome",
    "UpdateRequest",
    "UpdateResult",
    "decide_update",
]
