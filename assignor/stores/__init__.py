"""What outlives a rebalance, in files: group states to be planned elsewhere, and their plans.

The only part of the assignor besides its adapters and commands that touches a disk.
"""

from assignor.stores.files import StoreError, read_sealed, write_sealed
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from assignor.stores.offload import OffloadedPlans
from assignor.stores.plans import (
    GroupPlan,
    GroupSnapshot,
    PlanStore,
    plan_bytes,
    plan_for,
    read_snapshot,
)

__all__ = [
    "Fingerprint",
    "GroupPlan",
    "GroupSnapshot",
    "OffloadedPlans",
    "PlanStore",
    "StoreError",
    "fingerprint_of",
    "plan_bytes",
    "plan_for",
    "read_sealed",
    "read_snapshot",
    "write_sealed",
]
