"""What a member needs of its client: that it is listed first, a few requests, and a timer."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from assignor.adapters.membership.rejoin_timer import Cancellable
from assignor.errors import ConfigError
from assignor.rebalance import UNKNOWN_GENERATION
from encoding import TopicPartition

__all__ = ["UNKNOWN_GENERATION", "ClientPort", "ClusterMetadata", "check_listed"]


class ClientPort(Protocol):
    """What a member asks of its client; every method is quick and never raises.

    One instance per consumer. `StreamsAssignor.attach` makes it; tests pass a fake.
    """

    def request_rejoin(self) -> None:
        """Have the client join again as soon as it can."""

    def is_rebalancing(self) -> bool:
        """Whether a rebalance is running, in which a request to rejoin would be lost."""

    def has_lost_membership(self) -> bool:
        """Whether this member is in no generation: not yet, or the group removed it."""

    def generation(self) -> int:
        """Generation of the last join, also while the leader still decides; -1 if unknown."""

    def member_id(self) -> str:
        """Member id of the last join, also while the leader still decides; "" if unknown."""

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """Partitions that the client has been assigned and has not given up."""

    def group_instance_id(self) -> str | None:
        """Instance id of a static member (`group.instance.id`); None for a dynamic one."""

    def unheard_s(self) -> float:
        """Seconds since a coordinator answered a member in a session; 0.0 within the timeout."""

    def start_timer(self, delay_s: float, call: Callable[[], None]) -> Cancellable:
        """Have `call` called in `delay_s` seconds, on a thread or the client's event loop."""


class ClusterMetadata(Protocol):
    """What clients pass to a leading assignor: the topics that they know."""

    def partitions_for_topic(self, topic: str) -> Collection[int] | None:
        """Partition numbers of a topic; None or nothing where the client knows none."""


def partition_counts(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[str, int]:
    """Return topic -> number of partitions as the client has it, 0 for an unknown topic."""
    return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in sorted(topics)}


def check_listed(assignor: object, listed: Sequence[object]) -> None:
    """Check that a consumer prefers an assignor: the group chooses the first that all members have.

    Args:
        assignor: to be attached.
        listed: classes or instances, in the order of the consumer's setting.

    Raises:
        ConfigError: another assignor comes first, this one is missing, or there are two of a kind.
    """
    names = [getattr(each, "__name__", type(each).__name__) for each in listed]
    if not (places := [place for place, each in enumerate(listed) if each is assignor]):
        raise ConfigError(
            f"the consumer was made with {', '.join(names) or 'no assignor'}, not with this"
            " instance; make it with partition_assignment_strategy=[assignor]"
        )
    if any(isinstance(each, type(assignor)) and each is not assignor for each in listed):
        raise ConfigError(
            "two StreamsAssignors are in partition_assignment_strategy, and the group would use"
            " only the first; keep one"
        )
    if places[0] > 0:
        raise ConfigError(
            f"{names[0]} comes before StreamsAssignor in partition_assignment_strategy, so the"
            " group would choose it and no task would run; put StreamsAssignor first"
        )
