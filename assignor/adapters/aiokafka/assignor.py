"""The assignor inside an aiokafka consumer.

aiokafka calls `metadata`, `assign` and `on_assignment` on its event loop, from one task that joins
the group. It moves partitions eagerly.

Keep a call of `getmany` or `getone` pending: a member that fetches nothing for
`max_poll_interval_ms` leaves the group, standby tasks or not.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from assignor.adapters.aiokafka.cluster_access import AIOKafkaAccess, access_settings
from assignor.adapters.aiokafka.coordinator import CoordinatorHooks
from assignor.adapters.aiokafka.port import AiokafkaPort
from assignor.adapters.membership import (
    UNKNOWN_GENERATION,
    EmbeddedMember,
    MemberKeywords,
    check_listed,
)
from assignor.errors import ConfigError
from assignor.rebalance import GroupMember, by_topic


class StreamsAssignor(EmbeddedMember):
    """A Kafka Streams style assignor for one `AIOKafkaConsumer`; one instance per consumer.

    Give it to the consumer as its only `partition_assignment_strategy` and call `attach` before the
    consumer starts, or have `streams_consumer` do both. `rebalance_protocol="cooperative"` is
    refused, since aiokafka moves partitions eagerly.
    """

    _port: AiokafkaPort | None = None
    _hooks: CoordinatorHooks | None = None

    def _check_options(self, options: MemberKeywords) -> None:
        if options.get("rebalance_protocol") == "cooperative":
            raise ConfigError(
                "aiokafka consumers move partitions eagerly; leave rebalance_protocol out, or take "
                "kafka-python for cooperative members, which may be in one group with eager ones"
            )

    def attach(self, consumer: Any) -> None:
        """Connect to the consumer that this instance was given to; call it before `start`.

        A static member is known by the consumer's `group_instance_id`. Clients that reach the
        cluster as the consumer does read the cluster, on a thread of their own. A second call for
        the same consumer does nothing.

        Raises:
            TypeError: this is no aiokafka consumer with a group id.
            ConfigError: the consumer has other assignors too (aiokafka joins once for each), or not
                this instance, or another group id than the `application_id`; or another consumer
                is attached, or this assignor is closed.
        """
        if self._is_attached_to(consumer):
            return
        listed = getattr(consumer, "_partition_assignment_strategy", None)
        group_id = getattr(consumer, "_group_id", None)
        if listed is None or group_id is None:
            raise TypeError(
                f"{type(consumer).__name__} is in no group; attach an AIOKafkaConsumer that was "
                "made with a group_id"
            )
        check_listed(self, listed)
        if len(listed) > 1:
            raise ConfigError(
                f"the consumer has {len(listed)} assignors; give it this one alone, since aiokafka "
                "sends a JoinGroup for each of them"
            )
        self._attach_to(consumer, group_id=group_id, listed=listed)
        self._port = AiokafkaPort(consumer)
        client = getattr(consumer, "_client", None)
        self.client_id = getattr(client, "_client_id", self.client_id)
        self.poll_limit_s = getattr(consumer, "_max_poll_interval_ms", inf) / 1000
        driver, reporter = self._driver, self._driver.reporter
        self._hooks = CoordinatorHooks(
            self._port,
            driver.answer_replaced,
            lambda: reporter.guarded(reporter.listener.pause_work),
        )
        driver.connect(self._port)
        settings = access_settings(consumer)
        if settings is not None:
            driver.watch_cluster(lambda: AIOKafkaAccess(settings, group_id=group_id))

    # What aiokafka calls

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription for the next JoinGroup.

        Raises:
            ConfigError: no consumer is attached, or another one.
            MemberRefused: this member cannot go by the group's levels, or its subscription cannot
                be written; it does not join.
        """
        self._check_asked_by(attached=self._port is None or self._port.is_joining())
        if self._port is not None and self._hooks is not None:
            self._port.remember_loop()
            self._driver.reporter.guarded(self._hooks.install)
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._driver.join())

    def assign(
        self, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the leader's answers to all members; aiokafka turns errors into a `KafkaError`.

        Raises:
            LeaderRefused: the emulated release ends with the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        if self._port is not None:
            self._driver.reporter.guarded(self._port.ask_for_topics)
        group = [
            GroupMember(
                member_id=member_id,
                user_data=bytes(metadata.user_data or b""),
                owned_partitions=None if self._hooks is None else self._hooks.owned_by(member_id),
            )
            for member_id, metadata in sorted(members.items())
        ]
        return {
            member_id: ConsumerProtocolMemberAssignment(
                1, by_topic(answer.partitions), answer.user_data
            )
            for member_id, answer in self._driver.decide(cluster, group).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Take the answer of the leader; raises as `Driver.take` does."""
        generation = UNKNOWN_GENERATION if self._port is None else self._port.generation()
        self._driver.take(assignment.partitions(), assignment.user_data, generation)


# Not a base class: type checkers would accept any attribute of a class with an untyped base.
AbstractPartitionAssignor.register(StreamsAssignor)
