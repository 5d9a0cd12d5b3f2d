"""The assignor inside an aiokafka consumer.

aiokafka calls `metadata`, `assign` and `on_assignment` on its event loop, from one task that joins
the group. What is raised there, but for `KafkaError`, ends that task and with it the consumer for
good, so nothing is; and answers that aiokafka itself would end with are held back before it sees
them.

aiokafka moves partitions eagerly, and decodes for a leader neither owned partitions, nor
generations, nor instance ids. Those of our members ride in their own bytes; what cooperative
members of any kind own is read from the bytes that aiokafka decodes (KIP-429).

Keep a call of `getmany` or `getone` pending: a member that fetches nothing for
`max_poll_interval_ms` leaves the group, standby tasks or not.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from assignor.adapters.aiokafka.cluster_access import AIOKafkaAccess, access_settings
from assignor.adapters.membership import (
    Cancellable,
    EmbeddedAssignor,
    FollowupTimer,
    readable_metadata,
    unusable_answer,
)
from assignor.errors import ConfigError
from assignor.rebalance import (
    GroupMember,
    by_topic,
    read_consumer_subscription,
)
from encoding import DecodeError, TopicPartition

# aiokafka's generation of a member that fell out of the group.
_NO_GENERATION = -1
_NO_ANSWER: bytes = ConsumerProtocolMemberAssignment(0, [], b"").encode()


class _Consumer:
    """What the shared steps can ask of an `AIOKafkaConsumer`; it has a coordinator once started."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    @property
    def coordinator(self) -> Any:
        return getattr(self._consumer, "_coordinator", None)

    def request_rejoin(self) -> None:
        if self.coordinator is not None:
            self.coordinator.request_rejoin()

    def is_rebalancing(self) -> bool:
        joins = getattr(self.coordinator, "_performed_join_prepare", True)
        asked = getattr(self.coordinator, "_rejoin_needed_fut", None)
        return bool(joins) or (asked is not None and bool(asked.done()))

    def has_lost_membership(self) -> bool:
        return bool(getattr(self.coordinator, "generation", 0) == _NO_GENERATION)

    def generation(self) -> int:
        return int(getattr(self.coordinator, "generation", _NO_GENERATION))

    def owned_partitions(self) -> Iterable[TopicPartition]:
        return ()  # eager: all is given up before a member joins


class _LoopTimers:
    """`StartTimer` on the consumer's event loop, asked from there or from any other thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def remember_loop(self) -> None:
        """The consumer joins on its loop, so that is where other threads' calls go."""
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    def start(self, delay_s: float, call: Callable[[], None]) -> Cancellable:
        try:
            return asyncio.get_running_loop().call_later(delay_s, call)
        except RuntimeError:  # no loop in this thread
            later = _Later(delay_s, call)
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(later.begin)
            return later


class _Later:
    """A call that a thread asked the loop for."""

    def __init__(self, delay_s: float, call: Callable[[], None]) -> None:
        self._delay_s, self._call, self._cancelled = delay_s, call, False

    def begin(self) -> None:
        if not self._cancelled:
            asyncio.get_running_loop().call_later(self._delay_s, self._run)

    def cancel(self) -> None:
        self._cancelled = True

    def _run(self) -> None:
        if not self._cancelled:
            self._call()


class StreamsAssignor(EmbeddedAssignor, AbstractPartitionAssignor):  # type: ignore[misc] # untyped
    """A Kafka Streams style assignor for one `AIOKafkaConsumer`; one instance per consumer.

    Settings are those of `EmbeddedAssignor`.

    Raises:
        ConfigError: also for `rebalance_protocol="cooperative"`, which aiokafka has not.
    """

    name = EmbeddedAssignor.name

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        if settings.get("rebalance_protocol", "eager") != "eager":
            raise ConfigError(
                "aiokafka consumers move partitions eagerly; leave rebalance_protocol out, or take "
                "kafka-python for cooperative members, which may be in one group with eager ones"
            )
        super().__init__(*arguments, **settings)
        self._consumer: _Consumer | None = None
        self._timers = _LoopTimers()
        self._watched: Any = None
        self._joined: dict[str, bytes] = {}

    def attach(self, consumer: Any) -> None:
        """Connect to the consumer that this instance was given to; call it before `start`.

        A static member is known by the consumer's `group_instance_id`. The cluster is looked at
        with clients that reach it as the consumer does, on a thread of their own.

        Raises:
            TypeError: this is no aiokafka consumer with a group id.
            ConfigError: the consumer has other assignors too; aiokafka joins once for each.
        """
        listed = getattr(consumer, "_partition_assignment_strategy", None)
        if listed is None or getattr(consumer, "_group_id", None) is None:
            raise TypeError(
                f"{type(consumer).__name__} is in no group; attach an AIOKafkaConsumer that was "
                "made with a group_id"
            )
        if list(listed) != [self]:
            raise ConfigError(
                f"the consumer has {len(listed)} assignors; give it this one alone, since aiokafka "
                "sends a JoinGroup for each of them"
            )
        client = self._consumer = _Consumer(consumer)
        self._connect(
            client,
            FollowupTimer(client.request_rejoin, client.is_rebalancing, self._timers.start),
            getattr(consumer, "_group_instance_id", None),
        )
        settings, group_id = access_settings(consumer), consumer._group_id  # noqa: SLF001 not shown
        if settings is not None:
            self._watch_cluster(lambda: AIOKafkaAccess(settings, group_id=group_id))

    # What aiokafka calls

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """The subscription for the next JoinGroup.

        Raises:
            MemberRefused: this member cannot go by the group's levels; it does not join.
        """
        self._timers.remember_loop()
        self._guarded(self._watch_coordinator)
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._join())

    def assign(
        self, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """The leader's answers to all members; aiokafka raises a `KafkaError` for what this raises.

        Raises:
            LeaderRefused: the emulated release dies of the versions in the group.
            TaskAssignmentError: the topology does not fit the topics; the message says how.
        """
        group = [
            GroupMember(
                member_id=member_id,
                user_data=bytes(metadata.user_data or b""),
                owned_partitions=_owned(self._joined.get(member_id)),
            )
            for member_id, metadata in sorted(members.items())
        ]
        return {
            member_id: ConsumerProtocolMemberAssignment(
                1, by_topic(answer.partitions), answer.user_data
            )
            for member_id, answer in self._decide(cluster, group).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Take the answer of the leader; never raises."""
        coordinator = None if self._consumer is None else self._consumer.coordinator
        generation = getattr(coordinator, "generation", _NO_GENERATION)
        self._take(assignment.partitions(), assignment.user_data, generation)

    # What aiokafka would end with, or hides

    def _watch_coordinator(self) -> None:
        """Look at joins and answers before the coordinator; it exists from the first join on."""
        coordinator = None if self._consumer is None else self._consumer.coordinator
        if coordinator is None or coordinator is self._watched:
            return
        self._watched = coordinator
        complete = coordinator._on_join_complete  # noqa: SLF001 there is no public hook
        perform = coordinator._perform_assignment  # noqa: SLF001 as above

        async def checked(generation: int, member_id: str, protocol: str, answer: bytes) -> None:
            decode = ConsumerProtocolMemberAssignment.decode
            why = (
                unusable_answer(answer, decode, _subscribed(coordinator))
                if answer
                else "the leader sent this member no answer"
            )
            if why:
                self._report(why)
                # Taken by `on_assignment` as an answer that cannot be read, and asked for again.
                answer = _NO_ANSWER
            await complete(generation, member_id, protocol, answer)

        async def overheard(response: Any) -> Any:
            # aiokafka decodes them unguarded.
            decode = ConsumerProtocolMemberMetadata.decode
            response.members = [
                (*one[:-1], readable_metadata(bytes(one[-1]), decode)) for one in response.members
            ]
            self._joined = {member[0]: member[-1] for member in response.members}
            return await perform(response)

        coordinator._on_join_complete = checked  # noqa: SLF001 as above
        coordinator._perform_assignment = overheard  # noqa: SLF001 as above


def _owned(joined: bytes | None) -> tuple[TopicPartition, ...] | None:
    """What a member owns, by the bytes that it joined with; None where they do not say."""
    try:
        return None if joined is None else read_consumer_subscription(joined).owned_partitions
    except DecodeError:
        return None


def _subscribed(coordinator: Any) -> frozenset[str]:
    subscription = getattr(getattr(coordinator, "_subscription", None), "subscription", None)
    return frozenset(getattr(subscription, "topics", ()))
