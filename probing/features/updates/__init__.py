"""Updates of finalized levels: requests, the rules that allow or refuse them, and the outcome."""

from probing.features.updates.decide import decide_update
from probing.features.updates.rules import UPDATE_RULES, UpdateRule

__all__ = ["UPDATE_RULES", "UpdateRule", "decide_update"]
