"""Files that outlive a rebalance: process id, checkpoints, plans and group states.

Only this package, `assignor.embedding` and `assignor.levels` read and write files.
"""

from assignor.stores.checkpoints import Checkpoint
from assignor.stores.disk import Disk, FolderDisk
from assignor.stores.errors import (
    ForeignFile,
    LaterRelease,
    OutputTooLarge,
    RecordTooLarge,
    StoreError,
    store_errors,
)
from assignor.stores.files import read_sealed, seal, unseal, write_sealed
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from assignor.stores.offload import OffloadedPlans
from assignor.stores.persisted import PROCESS_NAME, StateStores
from assignor.stores.plans import GroupPlan, PlanStore, plan_for, read_snapshot
from assignor.stores.process_file import ProcessRecord
from assignor.stores.reached_file import read_reached, write_reached
from assignor.stores.reading import (
    LATEST_MS,
    check_links,
    check_no_link,
    read_limited,
    text,
    whole_number,
)
from assignor.stores.replacing import PARTIAL, replace_file
from assignor.stores.snapshot_file import GroupSnapshot

__all__ = [
    "LATEST_MS",
    "PARTIAL",
    "PROCESS_NAME",
    "Checkpoint",
    "Disk",
    "Fingerprint",
    "FolderDisk",
    "ForeignFile",
    "GroupPlan",
    "GroupSnapshot",
    "LaterRelease",
    "OffloadedPlans",
    "OutputTooLarge",
    "PlanStore",
    "ProcessRecord",
    "RecordTooLarge",
    "StateStores",
    "StoreError",
    "check_links",
    "check_no_link",
    "fingerprint_of",
    "plan_for",
    "read_limited",
    "read_reached",
    "read_sealed",
    "read_snapshot",
    "replace_file",
    "seal",
    "store_errors",
    "text",
    "unseal",
    "whole_number",
    "write_reached",
    "write_sealed",
]
