"""What an application around the assignor needs: internal topics, end offsets, identity, queries.

Client-neutral. A Kafka client is reached through `ClusterAccess`, whose implementations are in
`assignor.adapters`; what blocks runs on the thread of `LeaderProvider`, never on a client's own.
"""

from assignor.embedding.cluster_thread import LeaderProvider
from assignor.embedding.cluster_view import AtHand, ClusterWatch, lags_or_prior
from assignor.embedding.errors import (
    ClusterUnavailable,
    ErrorPause,
    MemberStopped,
    PollErrors,
    StateDirectoryLocked,
    fatal_reason,
)
from assignor.embedding.internal_topics import (
    ClusterAccess,
    InternalTopic,
    InternalTopicSettings,
    TopicFound,
    internal_topics,
    topic_problem,
)
from assignor.embedding.leader_facts import LeaderFacts, TopicState, knowledge_of
from assignor.embedding.process_id import ProcessDirectory
from assignor.embedding.queries import KeyHosts, Partitioner, key_hosts, murmur2, partition_for_key
from assignor.embedding.running_tasks import RunningTasks

__all__ = [
    "AtHand",
    "ClusterAccess",
    "ClusterUnavailable",
    "ClusterWatch",
    "ErrorPause",
    "InternalTopic",
    "InternalTopicSettings",
    "KeyHosts",
    "LeaderFacts",
    "LeaderProvider",
    "MemberStopped",
    "Partitioner",
    "PollErrors",
    "ProcessDirectory",
    "RunningTasks",
    "StateDirectoryLocked",
    "TopicFound",
    "TopicState",
    "fatal_reason",
    "internal_topics",
    "key_hosts",
    "knowledge_of",
    "lags_or_prior",
    "murmur2",
    "partition_for_key",
    "topic_problem",
]
