"""What can go wrong while tasks are placed.

```
RebalanceError                 encoding: never raised itself
+ TopologyError                ours: the topology cannot be built this way
+ ConfigError                  ours: an unknown setting, or a value out of range
+ TaskAssignmentError          no valid assignment exists
  - MissingSourceTopic         source topics whose partition count is not known; for queries only
  - CopartitionMismatch        topics joined with each other differ in their partition counts
  - PartitionCountUnknown      the count of a repartition topic cannot be derived
  - LeaderRefused              the group's versions leave this leader no answer (KIP-268)
  - MemberRefused              the version to write next is one that this member cannot write
```
"""

from collections.abc import Mapping, Sequence

from encoding import RebalanceError


class TopologyError(RebalanceError):
    """The topology cannot be built this way; the message names the node and what to change."""


class ConfigError(RebalanceError):
    """A setting is unknown or out of range; the message says what is known or allowed."""


class TaskAssignmentError(RebalanceError):
    """No valid assignment exists for this group as it is."""


class MissingSourceTopic(TaskAssignmentError):
    """The partition count of source topics is not known, so a key cannot be looked up.

    No leader of ours raises it: subtopologies of such a topic wait, the others run, and the answers
    carry error 0. Leaders of Kafka Streams answer the whole group with AssignorError 1.

    Attributes:
        topics: the missing topics, sorted.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(sorted(topics))
        super().__init__(
            f"source topics without partitions: {', '.join(self.topics)}; create them first"
        )


class CopartitionMismatch(TaskAssignmentError):
    """Topics that are read together must have the same number of partitions.

    Attributes:
        partition_counts: topic -> partitions, of the whole copartition group.
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
        topics: the repartition topics that are left without a count, sorted.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(sorted(topics))
        super().__init__(
            f"no partition count can be derived for {', '.join(self.topics)}; "
            "give one of them a number of partitions in the topology"
        )


class LeaderRefused(TaskAssignmentError):
    """This leader has no answer for the versions in the group, as its release behaves."""


class MemberRefused(TaskAssignmentError):
    """This member was told to write a version that its release does not know (KAFKA-8649)."""
