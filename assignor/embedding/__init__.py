"""Parts for an application that uses the assignor: topics, lags, process id, state, queries.

The package is independent of the Kafka client: `ClusterAccess` is the interface, implemented in
`assignor.adapters`. Blocking calls run on the thread of `InternalTopicManager`, never on the
client's.
"""

from assignor.embedding.clean_up import LocalTask, local_tasks
from assignor.embedding.cluster_view import ClusterKnowledge, ClusterWatch, lags_or_prior
from assignor.embedding.commit_metadata import COMMIT_METADATA, is_members_commit
from assignor.embedding.errors import (
    LEFT_GROUP,
    ChangelogLost,
    ClusterUnavailable,
    CopiesKept,
    ListenerFailed,
    LostPosition,
    MemberStopped,
    PollErrors,
    StateDirectoryLocked,
    StoreNotHeld,
    StoreReadOnly,
    UnreadableRecord,
    error_text,
    fatal_reason,
    is_interrupt,
)
from assignor.embedding.input_facts import LogRange
from assignor.embedding.internal_topic_manager import InternalTopicManager
from assignor.embedding.internal_topics import (
    CHECKED_SETTINGS,
    ClusterAccess,
    ExistingTopic,
    InternalTopic,
    InternalTopicSettings,
    internal_topics,
    setting_warnings,
    topic_problem,
)
from assignor.embedding.leader_facts import InternalTopicStatus, LeaderFacts, knowledge_of
from assignor.embedding.process_id import (
    ProcessDirectory,
    is_state_directory,
    unchanged_memory,
)
from assignor.embedding.queries import KeyHosts, Partitioner, key_hosts, murmur2, partition_for_key
from assignor.embedding.running_tasks import RunningTasks
from assignor.embedding.state_stores import (
    BYTES,
    JSON,
    TEXT,
    ChangelogAccess,
    DictStore,
    FollowedStore,
    Handler,
    InputState,
    NewRecord,
    Serde,
    SqliteStore,
    StateStore,
    Store,
    TaskState,
    TaskStores,
    check_kinds,
)

__all__ = [
    "BYTES",
    "CHECKED_SETTINGS",
    "COMMIT_METADATA",
    "JSON",
    "LEFT_GROUP",
    "TEXT",
    "ChangelogAccess",
    "ChangelogLost",
    "ClusterAccess",
    "ClusterKnowledge",
    "ClusterUnavailable",
    "ClusterWatch",
    "CopiesKept",
    "DictStore",
    "ExistingTopic",
    "FollowedStore",
    "Handler",
    "InputState",
    "InternalTopic",
    "InternalTopicManager",
    "InternalTopicSettings",
    "InternalTopicStatus",
    "KeyHosts",
    "LeaderFacts",
    "ListenerFailed",
    "LocalTask",
    "LogRange",
    "LostPosition",
    "MemberStopped",
    "NewRecord",
    "Partitioner",
    "PollErrors",
    "ProcessDirectory",
    "RunningTasks",
    "Serde",
    "SqliteStore",
    "StateDirectoryLocked",
    "StateStore",
    "Store",
    "StoreNotHeld",
    "StoreReadOnly",
    "TaskState",
    "TaskStores",
    "UnreadableRecord",
    "check_kinds",
    "error_text",
    "fatal_reason",
    "internal_topics",
    "is_interrupt",
    "is_members_commit",
    "is_state_directory",
    "key_hosts",
    "knowledge_of",
    "lags_or_prior",
    "local_tasks",
    "murmur2",
    "partition_for_key",
    "setting_warnings",
    "topic_problem",
    "unchanged_memory",
]
