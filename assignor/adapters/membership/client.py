"""What a member needs of its client: a few questions and requests, and a timer."""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from assignor.adapters.membership.rejoin_timer import Cancellable
from assignor.rebalance import UNKNOWN_GENERATION
from encoding import TopicPartition

__all__ = ["UNKNOWN_GENERATION", "ClientPort", "ClusterMetadata"]


class ClientPort(Protocol):
    """What a member asks of its client; every method is quick and never raises.

    One instance per consumer. `StreamsAssignor.attach` makes it; tests pass a fake.
    """

    def request_rejoin(self) -> None:
        """Have the client join again as soon as it can."""

    def is_rebalancing(self) -> bool:
        """Whether a rebalance is running, in which a request to rejoin would be lost."""

    def has_lost_membership(self) -> bool:
        """Whether the group removed this member."""

    def generation(self) -> int:
        """Generation of the last join, also while the leader still decides; -1 if unknown."""

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """Partitions that the client has been assigned and has not given up."""

    def group_instance_id(self) -> str | None:
        """Instance id of a static member (`group.instance.id`); None for a dynamic one."""

    def start_timer(self, delay_s: float, call: Callable[[], None]) -> Cancellable:
        """Have `call` called in `delay_s` seconds, on a thread or the client's event loop."""


class ClusterMetadata(Protocol):
    """What clients pass to a leading assignor: the topics that they know."""

    def partitions_for_topic(self, topic: str) -> Collection[int] | None:
        """Partition numbers of a topic; None or nothing where the client knows none."""


def partition_counts(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[str, int]:
    """Return topic -> number of partitions as the client has it, 0 for an unknown topic."""
    return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in sorted(topics)}
