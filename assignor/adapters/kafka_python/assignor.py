"""The assignor inside a kafka-python (3.0 or newer) consumer.

kafka-python calls `metadata`, `assign` and `on_assignment` on the consumer's I/O thread, while the
application waits in `poll`. `assign` waits up to a second for the cluster, if the end offsets that
the leader knows are old; the others never do.
"""

from math import inf
from typing import Any, Final

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.abstract import RebalanceProtocol as ClientProtocol
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.adapters.kafka_python.cluster_access import KafkaAdminAccess, admin_settings
from assignor.adapters.kafka_python.port import (
    KafkaPythonPort,
    commit_existing_topics,
    guard_threads,
    join_one_at_a_time,
    keep_joins,
    log_silence,
    make_readable,
)
from assignor.adapters.kafka_python.records import mend_fetched_records
from assignor.adapters.kafka_python.wire import (
    consumer_version,
    group_member,
    owned_entries,
    to_wire,
)
from assignor.adapters.membership import EmbeddedMember

# Much less than the shortest session timeout of a broker's defaults, 6 s.
_PATIENCE_S: Final = 1.0


class StreamsAssignor(EmbeddedMember):
    """A Kafka Streams style assignor for one `KafkaConsumer`; one instance per consumer.

    Put it first into the consumer's `partition_assignment_strategy` and call `attach`, or have
    `streams_consumer` do both. With `rebalance_protocol="cooperative"` the consumer keeps its
    partitions through a rebalance, and gives up what moves right after it.
    """

    _port: KafkaPythonPort | None = None

    def attach(self, consumer: Any) -> None:
        """Connect to the consumer that this instance was given to, for rejoins and follow-ups.

        A static member is known by the consumer's `group_instance_id`. An admin client with the
        consumer's connection settings reads the cluster. A second call for the same consumer does
        nothing.

        Raises:
            TypeError: this is no kafka-python 3 consumer with a group id.
            ConfigError: the consumer does not prefer this instance, has another group id than the
                `application_id`, or another consumer is attached, or this assignor is closed.
        """
        if self._is_attached_to(consumer):
            return
        coordinator: Any = getattr(consumer, "_coordinator", None)
        if not callable(getattr(coordinator, "request_rejoin", None)):
            raise TypeError(
                f"{type(consumer).__name__} has no group coordinator; attach a kafka-python 3 "
                "KafkaConsumer that was made with a group_id"
            )
        group_id = coordinator.group_id
        if group_id is None:
            raise TypeError(
                f"{type(consumer).__name__} has group_id=None, so it is in no group; attach a"
                " KafkaConsumer that was made with a group_id"
            )
        config = getattr(consumer, "config", None) or {}
        listed = config.get("partition_assignment_strategy", [self])
        self._attach_to(consumer, group_id=group_id, listed=listed)
        if isinstance(consumer, KafkaConsumer):
            guard_threads(consumer, self.listener)
            mend_fetched_records(consumer)
        followups = self._membership.followups
        keep_joins(coordinator, followups.answer_replaced, self._membership.assignor_chosen)
        join_one_at_a_time(coordinator)
        make_readable(coordinator)
        commit_existing_topics(coordinator)
        self._port = KafkaPythonPort(consumer, coordinator)
        log_silence(coordinator, self._port.unheard_s)
        self._membership.connect(self._port)
        if config:
            self.client_id = str(config.get("client_id", ""))
            self.poll_limit_s = config.get("max_poll_interval_ms", inf) / 1000
            settings = admin_settings(config)
            self._membership.resources.cluster.patience_s = _PATIENCE_S
            self._membership.watch_cluster(lambda: KafkaAdminAccess(settings, group_id=group_id))

    @property
    def is_silent(self) -> bool:
        """Whether the consumer stopped its heartbeats, as it does when another process fenced it.

        kafka-python raises nothing then: it keeps its partitions, which the other process
        has as well.
        """
        return self._port is not None and self._port.is_silent()

    # What kafka-python calls

    def supported_protocols(self) -> list[ClientProtocol]:
        """How this member moves partitions; kafka-python asks once, when the consumer is made."""
        return [ClientProtocol.COOPERATIVE if self.is_cooperative else ClientProtocol.EAGER]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription for the next JoinGroup.

        Raises:
            ConfigError: no consumer is attached, or another one.
            MemberRefused: this member cannot go by the group's levels, or its subscription cannot
                be written; it does not join.
        """
        self._check_asked_by(attached=self._port is None or self._port.is_joining())
        user_data, core = self._membership.join(), self._membership.core
        if self._port is not None and not self.is_cooperative:
            self._port.drop_assignment()
        return ConsumerProtocolSubscription(
            version=consumer_version(core.leader_settings.release),
            topics=sorted(topics),
            user_data=user_data,
            owned_partitions=owned_entries(core.owned),
        )

    def assign(self, cluster: Any, members: list[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Return the leader's answers to all members.

        Raises:
            LeaderRefused: the emulated release ends with the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        group = [group_member(member) for member in members]
        answers = self._membership.decide(cluster, group)
        return {member_id: to_wire(answer) for member_id, answer in answers.items()}

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Take the answer of the leader; raises as `Membership.take` does."""
        self._membership.take(assignment.partitions(), assignment.user_data, generation)


# Not a base class: type checkers would accept any attribute of a class with an untyped base.
AbstractPartitionAssignor.register(StreamsAssignor)
