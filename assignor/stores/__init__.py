"""What outlives a rebalance, in files: plans and the group states they are for, feature levels.

The only part of the assignor besides its adapters and commands that touches a disk.
"""

from assignor.stores.checkpoints import Checkpoint
from assignor.stores.disk import Disk, FolderDisk
from assignor.stores.feature_log import (
    Committed,
    FeatureLog,
    LogFormat,
    format_log,
    look_at_log,
    opened_log,
    read_format,
)
from assignor.stores.feature_records import LogState, Note
from assignor.stores.files import StoreError, read_sealed, write_sealed
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from assignor.stores.offload import OffloadedPlans
from assignor.stores.persisted import StateStores
from assignor.stores.plans import (
    GroupPlan,
    GroupSnapshot,
    PlanStore,
    plan_for,
    read_snapshot,
)
from assignor.stores.process_file import ProcessRecord

__all__ = [
    "Checkpoint",
    "Committed",
    "Disk",
    "FeatureLog",
    "Fingerprint",
    "FolderDisk",
    "GroupPlan",
    "GroupSnapshot",
    "LogFormat",
    "LogState",
    "Note",
    "OffloadedPlans",
    "PlanStore",
    "ProcessRecord",
    "StateStores",
    "StoreError",
    "fingerprint_of",
    "format_log",
    "look_at_log",
    "opened_log",
    "plan_for",
    "read_format",
    "read_sealed",
    "read_snapshot",
    "write_sealed",
]
