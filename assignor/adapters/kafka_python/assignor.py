"""The assignor inside a kafka-python (3.0 or newer) consumer.

kafka-python calls `metadata`, `assign` and `on_assignment` on the consumer's io thread, while the
application waits in `poll`. Nothing here blocks it.

kafka-python 3.0 throws a join away that ends between two calls of `poll`, and joins anew; `attach`
has such a join kept for the next `poll`. Bytes that the client would raise for out of `poll` are
held back: the assignor takes them as an answer that it cannot take, and asks again.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.abstract import RebalanceProtocol as ClientProtocol
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.adapters.kafka_python.cluster_access import KafkaAdminAccess, admin_settings
from assignor.adapters.kafka_python.wire import (
    group_member,
    owned_entries,
    to_wire,
)
from assignor.adapters.membership import (
    EmbeddedAssignor,
    FollowupTimer,
    readable_metadata,
    unusable_answer,
)
from encoding import TopicPartition

# kafka-python's generation of a member that fell out of the group.
_NO_GENERATION = -1
_NO_ANSWER: bytes = ConsumerProtocolAssignment(
    version=0, assigned_partitions=[], user_data=b""
).encode()


class _Consumer:
    """What the shared steps can ask of a `KafkaConsumer`."""

    def __init__(self, consumer: Any, coordinator: Any) -> None:
        self._consumer = consumer
        self._coordinator = coordinator

    def request_rejoin(self) -> None:
        self._coordinator.request_rejoin()

    def is_rebalancing(self) -> bool:
        return bool(self._coordinator.rebalance_in_progress())

    def is_silent(self) -> bool:
        """Whether it counts as a member and sends no heartbeats: so the client takes a fencing.

        A member that joins anew sends none either, and counts as one until it found a coordinator.
        """
        coordinator = self._coordinator
        stable = getattr(coordinator, "stable", None)
        # kafka-python changes all three under its lock.
        with getattr(coordinator, "_lock", None) or nullcontext():
            joins = getattr(coordinator, "rejoining", False)
            sends = getattr(coordinator, "_heartbeat_enabled", True)
            return callable(stable) and bool(stable()) and not sends and not joins

    def has_lost_membership(self) -> bool:
        known = getattr(self._coordinator, "_generation", None)
        return bool(getattr(known, "generation_id", 0) == _NO_GENERATION)

    def generation(self) -> int:
        known = getattr(self._coordinator, "_generation", None)
        return int(getattr(known, "generation_id", _NO_GENERATION))

    def owned_partitions(self) -> Iterable[TopicPartition]:
        return tuple(TopicPartition(p.topic, p.partition) for p in self._consumer.assignment())


def _keep_joins(coordinator: Any, report: Callable[[str], None]) -> None:
    """Have an answer that arrives between two calls of `poll` taken by the next one.

    kafka-python forgets it and joins anew, which costs the whole group a rebalance, and a member
    that always works between its polls all of them. As in the Java client, an answer is kept as
    long as the member is in the generation that it is of, and the session cannot have ended. The
    next `poll` looks for it whatever the join was for.

    An answer that kafka-python cannot take becomes one without partitions and user data, and
    `report` is told why.
    """
    join: Callable[[], Awaitable[bytes]] | None = getattr(
        coordinator, "_do_join_and_sync_async", None
    )
    if join is None:
        return
    session_s = coordinator.config["session_timeout_ms"] / 1000
    kept: tuple[Any, bytes, float] | None = None

    async def join_or_take() -> bytes:
        nonlocal kept
        last, kept = kept, None
        # Where changed metadata or topics are the reason, nothing else has the next `poll` take the
        # answer: the reason is gone once the leader has decided, and the member hangs in the join.
        coordinator.request_rejoin()
        if last is not None:
            generation, answer, since = last
            # An answer that was taken has ended the rebalance.
            waits = coordinator.rebalance_in_progress()
            is_member = getattr(coordinator, "_generation", None) == generation
            if waits and is_member and time.monotonic() - since < session_s:
                return answer
        answer = await join()
        why = unusable_answer(answer, ConsumerProtocolAssignment.decode, _subscribed(coordinator))
        if why:
            report(why)
            answer = _NO_ANSWER
        kept = getattr(coordinator, "_generation", None), answer, time.monotonic()
        return answer

    coordinator._do_join_and_sync_async = join_or_take  # noqa: SLF001 the client has no hook for it


def _make_readable(coordinator: Any) -> None:
    """Have the leader see no metadata that kafka-python would raise for: it decodes unguarded."""
    perform = getattr(coordinator, "_perform_assignment", None)
    if perform is None:
        return

    def perform_readable(leader_id: str, protocol_name: str, members: list[Any]) -> Any:
        for member in members:
            member.metadata = readable_metadata(
                bytes(member.metadata or b""), ConsumerProtocolSubscription.decode
            )
        return perform(leader_id, protocol_name, members)

    coordinator._perform_assignment = perform_readable  # noqa: SLF001 the client has no hook for it


def _subscribed(coordinator: Any) -> frozenset[str] | None:
    """Topics of the consumer, or None where that is not known."""
    topics = getattr(getattr(coordinator, "_subscription", None), "subscription", None)
    return None if topics is None else frozenset(topics)


class StreamsAssignor(EmbeddedAssignor, AbstractPartitionAssignor):  # type: ignore[misc] # untyped
    """A Kafka Streams style assignor for one `KafkaConsumer`; one instance per consumer.

    Settings are those of `EmbeddedAssignor`. With `rebalance_protocol="cooperative"` the consumer
    keeps what it has through a rebalance, and gives up what moves right after it.
    """

    def attach(self, consumer: Any) -> None:
        """Connect to the consumer that this instance was given to, for rejoins and follow-ups.

        A static member is known by the consumer's `group_instance_id`. The cluster is looked at
        with an admin client that reaches it as the consumer does.

        Raises:
            TypeError: this is no kafka-python 3 consumer with a group id.
        """
        coordinator: Any = getattr(consumer, "_coordinator", None)
        if not callable(getattr(coordinator, "request_rejoin", None)):
            raise TypeError(
                f"{type(consumer).__name__} has no group coordinator; attach a kafka-python 3 "
                "KafkaConsumer that was made with a group_id"
            )
        _keep_joins(coordinator, self._report)
        _make_readable(coordinator)
        client = _Consumer(consumer, coordinator)
        self._connect(
            client,
            FollowupTimer(client.request_rejoin, client.is_rebalancing),
            getattr(coordinator, "group_instance_id", None),
        )
        config = getattr(consumer, "config", None)
        if config is not None:
            settings, group_id = admin_settings(config), config["group_id"]
            self._watch_cluster(lambda: KafkaAdminAccess(settings, group_id=group_id))

    @property
    def is_silent(self) -> bool:
        """Whether the consumer stopped its heartbeats, as it does when a namesake fenced it.

        kafka-python raises nothing then: it goes on with what it has, beside whoever has it now.
        """
        return isinstance(self._client, _Consumer) and self._client.is_silent()

    # What kafka-python calls

    def supported_protocols(self) -> list[ClientProtocol]:
        """How this member moves partitions; kafka-python asks once, when the consumer is made."""
        return [ClientProtocol.COOPERATIVE if self.is_cooperative else ClientProtocol.EAGER]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """The subscription for the next JoinGroup.

        Raises:
            MemberRefused: this member cannot go by the group's levels; it does not join.
        """
        user_data = self._join()
        return ConsumerProtocolSubscription(
            version=1,
            topics=sorted(topics),
            user_data=user_data,
            owned_partitions=owned_entries(self._offered),
        )

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """The leader's answers to all members.

        Raises:
            LeaderRefused: the emulated release dies of the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        answers = self._decide(cluster, [group_member(member) for member in members])
        return {member: to_wire(one) for member, one in answers.items()}

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take the answer of the leader; never raises."""
        self._take(assignment.partitions(), assignment.user_data, generation)
