"""Errors of topologies, settings and assignments.

```
RebalanceError                 encoding: never raised itself
+ TopologyError                native: the topology is invalid
+ ConfigError                  native: an unknown setting, or a value out of range
+ TaskAssignmentError          no valid assignment exists
  - MissingSourceTopic         source topics whose partition count is not known; for queries only
  - CopartitionMismatch        copartitioned topics differ in their partition counts
  - PartitionCountUnknown      the partition count of a repartition topic cannot be derived
  - LeaderRefused              the leader's release cannot answer the group's versions (KIP-268)
  - MemberRefused              the leader requests a version that this member cannot write
```
"""

from collections.abc import Mapping, Sequence

from encoding import RebalanceError


class TopologyError(RebalanceError):
    """The topology is invalid; the message names the node and what to change."""


class ConfigError(RebalanceError):
    """A setting is unknown or out of range; the message lists known names or the range."""


class TaskAssignmentError(RebalanceError):
    """No valid assignment exists for this group."""


class MissingSourceTopic(TaskAssignmentError):
    """The partition count of source topics is not known, so a key cannot be looked up.

    Native leaders do not raise it: subtopologies of such a topic wait, the others run, and the
    error code of assignments is 0. Kafka Streams leaders send AssignorError 1 to the whole group.

    Attributes:
        topics: the missing topics, sorted.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(sorted(topics))
        super().__init__(
            f"the partition count of source topics {', '.join(self.topics)} is not known; create "
            "the topics"
        )


class CopartitionMismatch(TaskAssignmentError):
    """Copartitioned topics differ in their partition counts.

    Attributes:
        partition_counts: topic -> number of partitions, for the whole copartition group.
    """

    def __init__(self, partition_counts: Mapping[str, int]) -> None:
        self.partition_counts = dict(sorted(partition_counts.items()))
        listed = ", ".join(f"{topic} has {n}" for topic, n in self.partition_counts.items())
        super().__init__(
            f"copartitioned topics differ in their partition counts: {listed}; "
            "repartition one of them to the count of the others"
        )


class PartitionCountUnknown(TaskAssignmentError):
    """The partition count of repartition topics cannot be derived (a cycle without a count).

    Attributes:
        topics: the repartition topics without a count, sorted.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(sorted(topics))
        super().__init__(
            f"the partition count of repartition topics {', '.join(self.topics)} cannot be "
            "derived; set the number of partitions of one of them in the topology"
        )


class LeaderRefused(TaskAssignmentError):
    """The release of this leader cannot answer the versions in the group."""


class MemberRefused(TaskAssignmentError):
    """The leader requests a version that this member's release does not know (KAFKA-8649)."""
