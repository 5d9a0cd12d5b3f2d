"""What aiokafka's coordinator would end with or hides, and when it joins.

What is raised in aiokafka's join task, but for `KafkaError`, ends that task and with it the
consumer for good; `CoordinatorHooks` replaces answers and metadata that aiokafka would raise for.
aiokafka decodes for a leader neither owned partitions, nor generations, nor instance ids. Those of
native members are in their own bytes; what cooperative members of any kind own is read from the
bytes that aiokafka decodes (KIP-429).

A commit that is under way while the group rebalances is answered with ILLEGAL_GENERATION. aiokafka
then forgets its member id and joins as a new member; the group waits for the old one until its
session ends, and moves its tasks. `CoordinatorHooks` has the join decide instead, as Kafka's client
does.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from assignor.adapters.aiokafka.blocking import log_blocked_loop
from assignor.adapters.aiokafka.offset_fetch import raise_group_errors
from assignor.adapters.aiokafka.port import HEARD, AiokafkaPort
from assignor.adapters.consumer_state import deleted_topics
from assignor.adapters.membership import readable_metadata, unusable_answer
from assignor.adapters.silence import SilenceLog
from assignor.embedding import error_text, fatal_reason
from assignor.logs import line_logger
from assignor.rebalance import read_consumer_subscription
from encoding import DecodeError, TopicPartition

_log = line_logger(__name__)

_NO_ANSWER: bytes = ConsumerProtocolMemberAssignment(0, [], b"").encode()
# Generation and member id with which the commit of this task was sent; None: it is no commit.
_COMMITTED_AS: ContextVar[tuple[int, str] | None] = ContextVar("committed_as", default=None)


class CoordinatorHooks:
    """Reads joins and answers before aiokafka's coordinator decodes them.

    Args:
        port: of the consumer.
        on_answer: called with the reason why an answer cannot be taken, or "".
        pause_work: as `TasksListener.pause_work`; it raises nothing.
    """

    def __init__(
        self,
        port: AiokafkaPort,
        on_answer: Callable[[str], None],
        pause_work: Callable[[], None],
    ) -> None:
        self._port = port
        self._on_answer = on_answer
        self._pause_work = pause_work
        self._hooked: Any = None
        self._joined: dict[str, bytes] = {}

    def install(self) -> None:
        """Hook the consumer's coordinator, once; it exists from the first join on."""
        coordinator = self._port.coordinator
        if coordinator is None or coordinator is self._hooked:
            return
        self._hooked = coordinator
        complete = coordinator._on_join_complete  # noqa: SLF001 there is no public hook
        perform = coordinator._perform_assignment  # noqa: SLF001 as above

        async def checked(generation: int, member_id: str, protocol: str, answer: bytes) -> None:
            decode = ConsumerProtocolMemberAssignment.decode
            why = (
                unusable_answer(answer, decode, _subscribed(coordinator))
                if answer
                else "the leader sent this member no answer"
            )
            self._on_answer(why)
            if why:
                # Taken by `on_assignment` as an answer that cannot be read, and asked for again.
                answer = _NO_ANSWER
            await complete(generation, member_id, protocol, answer)

        async def readable(response: Any) -> Any:
            # aiokafka decodes metadata unguarded.
            decode = ConsumerProtocolMemberMetadata.decode
            response.members = [
                (*member[:-1], readable_metadata(bytes(member[-1]), decode))
                for member in response.members
            ]
            self._joined = {member[0]: member[-1] for member in response.members}
            return await perform(response)

        coordinator._on_join_complete = checked  # noqa: SLF001 as above
        coordinator._perform_assignment = readable  # noqa: SLF001 as above
        self._join_between_batches(coordinator)
        self._keep_membership(coordinator)
        raise_group_errors(coordinator)
        count_polls(coordinator)
        _keep_heartbeats(coordinator, SilenceLog(self._port.unheard_s))

    def _join_between_batches(self, coordinator: Any) -> None:
        """Have the member join, and give up its tasks, only while the application has no batch.

        Heartbeats continue meanwhile. The group waits for `max_poll_interval_ms` at most.
        """
        join = getattr(coordinator, "ensure_active_group", None)
        if join is None:
            return

        async def joined(subscription: Any, previous: Any) -> Any:
            # Once tasks are given up, the application has no batch until the next assignment.
            begins = not coordinator._performed_join_prepare  # noqa: SLF001 as above
            if begins and not await self._port.until_idle(self._pause_work):
                return None  # asked again, unless the coordinator closes
            return await join(subscription, previous)

        coordinator.ensure_active_group = joined

    def _keep_membership(self, coordinator: Any) -> None:
        """Have no answer to a commit end the membership that a join has renewed, or renews now."""
        commit = getattr(coordinator, "_do_commit_offsets", None)
        reset = getattr(coordinator, "reset_generation", None)
        if commit is None or reset is None:
            return

        def membership() -> tuple[int, str]:
            return coordinator.generation, coordinator.member_id

        async def marked(assignment: Any, offsets: Any) -> None:
            token = _COMMITTED_AS.set(membership())
            try:
                await commit(assignment, offsets)
            except KafkaError:
                # aiokafka commits in a task of its own, which nobody awaits once the caller has
                # been cancelled, as by a time limit.
                if (task := asyncio.current_task()) is not None:
                    task.add_done_callback(_take_error)
                raise
            finally:
                _COMMITTED_AS.reset(token)

        def reset_unless_renewed() -> None:
            sent_as = _COMMITTED_AS.get()
            is_renewed = self._port.is_rebalancing() or sent_as != membership()
            if sent_as is None or not is_renewed:
                reset()

        coordinator._do_commit_offsets = marked  # noqa: SLF001 as above
        coordinator.reset_generation = reset_unless_renewed

    def owned_by(self, member_id: str) -> tuple[TopicPartition, ...] | None:
        """Return what a member owns by the bytes that it joined with; None: they do not name it."""
        return owned_in(self._joined.get(member_id))


def _take_error(task: asyncio.Task[Any]) -> None:
    """Have asyncio not log the error of a task that nobody awaits."""
    if not task.cancelled():
        task.exception()


def _keep_heartbeats(coordinator: Any, silence: SilenceLog) -> None:
    """Begin the heartbeats again that one unexpected answer has ended, within a session timeout.

    aiokafka begins them with the next join only, and the member asks for none: `getmany` raises the
    same error at every call, and the group removes the member.
    """
    beat, send = (
        getattr(coordinator, name, None) for name in ("_heartbeat_routine", "_do_heartbeat")
    )
    if beat is None or send is None:
        return

    async def heard() -> bool:
        session_s = coordinator._session_timeout_ms / 1000  # noqa: SLF001 as above
        timer = asyncio.get_running_loop().call_later(session_s, silence.look)
        try:
            is_heard = bool(await send())
        finally:
            timer.cancel()
        if is_heard:
            setattr(coordinator, HEARD, time.monotonic())
        silence.look()
        return is_heard

    async def beat_again() -> None:
        setattr(coordinator, HEARD, time.monotonic())
        while True:
            try:
                with log_blocked_loop(coordinator):
                    await beat()
            except KafkaError as error:
                silent_s = time.monotonic() - getattr(coordinator, HEARD)
                is_silent = silent_s > coordinator._session_timeout_ms / 1000  # noqa: SLF001 as above
                if is_silent or fatal_reason(error) is not None:
                    raise
                _log.warning("a heartbeat failed (%s); the next one follows", error_text(error))
            else:
                return

    coordinator._do_heartbeat = heard  # noqa: SLF001 as above
    coordinator._heartbeat_routine = beat_again  # noqa: SLF001 as above


def commit_existing_topics(consumer: Any) -> None:
    """Have a commit succeed without the offsets of partitions that do not exist (KAFKA-10355).

    aiokafka sends a commit again for ever while one partition is unknown. Here the metadata are
    asked for after such an answer; what they do not have either is left out.
    """
    coordinator = getattr(consumer, "_coordinator", None)
    if coordinator is None or hasattr(coordinator, "_commit_all"):
        return
    raise_group_errors(coordinator)  # before the first join, too
    commit = coordinator._commit_all = coordinator._do_commit_offsets  # noqa: SLF001 no hook for it
    client = consumer._client  # noqa: SLF001 as above; the consumer itself may be dropped
    gone: set[Any] = set()
    deleted = deleted_topics(coordinator)

    def is_unknown(partition: Any) -> bool:
        return partition.partition not in (
            client.cluster.partitions_for_topic(partition.topic) or ()
        )

    async def commit_existing(assignment: Any, offsets: Mapping[Any, Any]) -> None:
        gone.intersection_update(filter(is_unknown, tuple(gone)))
        try:
            await commit(assignment, {p: at for p, at in offsets.items() if p not in gone})
        except UnknownTopicOrPartitionError:
            await client.force_metadata_update()
            found = set(filter(is_unknown, offsets)) - gone
            if not found:
                raise
            gone.update(found)
            for partition in sorted(found):
                deleted.log(partition.topic)
            await commit(assignment, {p: at for p, at in offsets.items() if p not in gone})

    coordinator._do_commit_offsets = commit_existing  # noqa: SLF001 as above


def count_polls(holder: Any) -> None:
    """Have a member leave after `max_poll_interval_ms` without a poll, also after one that failed.

    aiokafka takes a call that has raised, or was cancelled, for one that is under way, for ever: a
    member that processes nothing any more would keep its tasks.

    Args:
        holder: consumer or coordinator, before the first poll.
    """
    subscription: Any = getattr(holder, "_subscription", None)
    count = getattr(subscription, "fetch_context", None)
    if count is None or hasattr(subscription, "_count_polls"):
        return
    subscription._count_polls = count  # noqa: SLF001 no hook for it

    @contextmanager
    def counted() -> Iterator[None]:
        counting = count()
        counting.__enter__()
        try:
            yield
        finally:
            counting.__exit__(None, None, None)  # aiokafka counts down after no error alone

    subscription.fetch_context = counted


def owned_in(joined: bytes | None) -> tuple[TopicPartition, ...] | None:
    """Return the partitions that a member's metadata names as owned; None: it cannot be read."""
    try:
        return None if joined is None else read_consumer_subscription(joined).owned_partitions
    except DecodeError:
        return None


def _subscribed(coordinator: Any) -> frozenset[str]:
    subscription = getattr(getattr(coordinator, "_subscription", None), "subscription", None)
    return frozenset(getattr(subscription, "topics", ()))
