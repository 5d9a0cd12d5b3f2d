"""State stores of an application: changelogs, restoration, standbys, exactly-once state."""

from assignor.embedding.state_stores.access import (
    WAIT_S,
    ChangelogAccess,
    FollowedStore,
    InputState,
)
from assignor.embedding.state_stores.copies import Phase, TaskProgress
from assignor.embedding.state_stores.layout import check_kinds
from assignor.embedding.state_stores.processing import Handler, TaskState
from assignor.embedding.state_stores.records import OWNER_KEY, ChangelogRecord, Headers, NewRecord
from assignor.embedding.state_stores.serdes import BYTES, JSON, TEXT, Serde
from assignor.embedding.state_stores.stores import DictStore, SqliteStore, StateStore, Store
from assignor.embedding.state_stores.task_stores import TaskStores

__all__ = [
    "BYTES",
    "JSON",
    "OWNER_KEY",
    "TEXT",
    "WAIT_S",
    "ChangelogAccess",
    "ChangelogRecord",
    "DictStore",
    "FollowedStore",
    "Handler",
    "Headers",
    "InputState",
    "NewRecord",
    "Phase",
    "Serde",
    "SqliteStore",
    "StateStore",
    "Store",
    "TaskProgress",
    "TaskState",
    "TaskStores",
    "check_kinds",
]
