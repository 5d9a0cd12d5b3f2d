"""What a member asks of a kafka-python consumer, guards of that client, and workarounds.

kafka-python 3.0 discards a JoinGroup response that arrives between two calls of `poll`, and joins
anew; `keep_joins` has it kept for the next `poll`. kafka-python raises out of `poll` for bytes that
it cannot decode; `keep_joins` and `make_readable` replace them before it does.
"""

import time
import weakref
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor.adapters.consumer_state import deleted_topics
from assignor.adapters.kafka_python.records import begins_of
from assignor.adapters.membership import (
    Cancellable,
    in_a_thread,
    readable_metadata,
    unusable_answer,
)
from assignor.adapters.processing import check_may_close, check_not_processing
from assignor.adapters.silence import SilenceLog
from assignor.adapters.threads import OneThread, runs_on_io_thread
from encoding import TopicPartition

# The coordinator whose join asks its assignors for metadata, on the thread of its consumer.
_JOINING: ContextVar[Any] = ContextVar("joining", default=None)
# kafka-python's generation of a member that has not joined yet, or that the group removed.
_NO_GENERATION = -1
_UNKNOWN_PARTITION = 3
# How long a poll waits for a join that an interrupted one has begun, in ms, before it ends.
_LOOK_MS = 100
_NO_ANSWER: bytes = ConsumerProtocolAssignment(
    version=0, assigned_partitions=[], user_data=b""
).encode()


class KafkaPythonPort:
    """`ClientPort` of a `KafkaConsumer`.

    Args:
        consumer: in a group.
        coordinator: of the consumer.
    """

    def __init__(self, consumer: Any, coordinator: Any) -> None:
        # Weak: the client's I/O thread has this port, and would keep a consumer that was dropped.
        self._consumer = weakref.ref(consumer)
        self._coordinator = coordinator
        self._marks_joins = _mark_joins(coordinator)

    def is_joining(self) -> bool:
        """Whether the running call comes from a join of this consumer."""
        return not self._marks_joins or _JOINING.get() is self._coordinator

    def request_rejoin(self) -> None:
        """Have the consumer join again with its next poll."""
        self._coordinator.request_rejoin()

    def is_rebalancing(self) -> bool:
        """Whether the coordinator joins or waits for its answer."""
        return bool(self._coordinator.rebalance_in_progress())

    def is_silent(self) -> bool:
        """Whether the consumer counts as a member and sends no heartbeats, as after a fencing.

        A member that joins anew sends none either, and counts as one until it finds a coordinator.
        """
        coordinator = self._coordinator
        stable = getattr(coordinator, "stable", None)
        # kafka-python changes all three under its lock.
        with getattr(coordinator, "_lock", None) or nullcontext():
            joins = getattr(coordinator, "rejoining", False)
            sends = getattr(coordinator, "_heartbeat_enabled", True)
            return callable(stable) and bool(stable()) and not sends and not joins

    def unheard_s(self) -> float:
        """Seconds since a coordinator answered a member in a session; 0.0 within the timeout."""
        coordinator, heartbeat = self._coordinator, self._coordinator.heartbeat
        # A join is answered once all members have joined, and sends no heartbeats meanwhile.
        joins = coordinator.rebalance_in_progress() and coordinator.coordinator_id is not None
        if joins or not heartbeat.session_timeout_expired():
            return 0.0
        return time.monotonic() - float(max(heartbeat.last_receive, heartbeat.last_reset))

    def generation(self) -> int:
        """Generation of the last join; -1 if unknown."""
        known = getattr(self._coordinator, "_generation", None)
        return int(getattr(known, "generation_id", _NO_GENERATION))

    def member_id(self) -> str:
        """Member id of the last join; "" if unknown."""
        known = getattr(self._coordinator, "_generation", None)
        return str(getattr(known, "member_id", ""))

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """What the consumer is assigned now."""
        consumer = self._consumer()
        assigned = () if consumer is None else consumer.assignment()
        return tuple(TopicPartition(p.topic, p.partition) for p in assigned)

    def drop_assignment(self) -> None:
        """Have all partitions that come back read from their committed offsets.

        As other clients do in an eager rebalance: a listener whose tasks are revoked drops what is
        not committed. kafka-python 3 keeps the positions.
        """
        self._coordinator._subscription.assign_from_subscribed([])  # noqa: SLF001 no public way
        begins_of(self._consumer()).clear()

    def group_instance_id(self) -> str | None:
        """The consumer's `group_instance_id`."""
        instance_id: str | None = getattr(self._coordinator, "group_instance_id", None)
        return instance_id

    def start_timer(self, delay_s: float, call: Callable[[], None]) -> Cancellable:
        """Have `call` called on a thread of its own."""
        return in_a_thread(delay_s, call)


def _mark_joins(coordinator: Any) -> bool:
    """Have `_JOINING` set while a coordinator asks for metadata; return whether it can be."""
    ask: Callable[[], Any] | None = getattr(coordinator, "group_protocols", None)
    if ask is None:
        return False

    def marked() -> Any:
        token = _JOINING.set(coordinator)
        try:
            return ask()
        finally:
            _JOINING.reset(token)

    coordinator.group_protocols = marked
    return True


def guard_threads(consumer: Any, listener: object) -> None:
    """Have `poll` refuse a second thread, and `poll` and `commit` a process forked since then.

    Functions that process records into state stores are refused, too. `close` does nothing in such
    a process: it would wait for a thread that is in the parent. A consumer of `streams_consumer`
    does the same by itself.
    """
    if isinstance(getattr(consumer, "_polling", None), OneThread):
        return
    polling = OneThread()
    unguarded_poll, unguarded_commit = consumer.poll, consumer.commit
    unguarded_close = consumer.close

    def poll(*arguments: Any, **options: Any) -> Any:
        check_not_processing(listener, "poll")
        with polling:
            return unguarded_poll(*arguments, **options)

    def commit(*arguments: Any, **options: Any) -> Any:
        polling.check_process()
        check_not_processing(listener, "commit")
        return unguarded_commit(*arguments, **options)

    def close(*arguments: Any, **options: Any) -> None:
        if not polling.is_forked:
            check_closing_thread(consumer, listener)
            unguarded_close(*arguments, **options)

    consumer._polling = polling  # noqa: SLF001 as `streams_consumer` keeps it
    consumer.poll, consumer.commit, consumer.close = poll, commit, close


def check_closing_thread(consumer: Any, listener: object) -> None:
    """Check that no function that processes records, and no listener calls this.

    kafka-python cannot close on its I/O thread, on which listeners run: it would be half closed,
    and stay in the group. Tasks are revoked only after the batch that is processed.

    Raises:
        RuntimeError: one of them does.
    """
    check_may_close(listener)
    if runs_on_io_thread(consumer):
        raise RuntimeError(
            "close was called in a listener, an observer or a hook, on the client's I/O thread, "
            "where it would wait for itself; call it where poll is called"
        )


def keep_joins(
    coordinator: Any, on_answer: Callable[[str], None], on_choice: Callable[[str], None]
) -> None:
    """Have a JoinGroup response that arrives between two calls of `poll` taken by the next one.

    kafka-python discards it and joins anew, which costs the whole group a rebalance, and all
    rebalances of a member that always works between its polls. As in the Java client, an answer is
    kept as long as the member is in the generation of that answer, and the session cannot have
    ended. The next `poll` looks for it whatever the join was for.

    An answer that kafka-python cannot take becomes one without partitions and user data, and
    `on_answer` is called with the reason, or "" for every other answer. `on_choice` is
    called with the name of the assignor that the group chose.
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
        # If metadata or topics changed, that reason is gone once the leader has decided. Without
        # this call the next `poll` would not take the answer.
        coordinator.request_rejoin()
        if last is not None:
            generation, answer, since = last
            # An answer that was taken has ended the rebalance.
            waits = coordinator.rebalance_in_progress()
            is_member = getattr(coordinator, "_generation", None) == generation
            if waits and is_member and time.monotonic() - since < session_s:
                return answer
        answer = await join()
        protocol = getattr(getattr(coordinator, "_generation", None), "protocol", None)
        if protocol is not None:
            on_choice(protocol)
        why = unusable_answer(answer, ConsumerProtocolAssignment.decode, _subscribed(coordinator))
        on_answer(why)
        if why:
            answer = _NO_ANSWER
        kept = getattr(coordinator, "_generation", None), answer, time.monotonic()
        return answer

    coordinator._do_join_and_sync_async = join_or_take  # noqa: SLF001 the client has no hook for it


def join_one_at_a_time(coordinator: Any) -> None:
    """Begin no second join while the first one runs: the call returns False then.

    An interrupt ends the wait of the thread that polls, while the client's event loop continues the
    join. The next `poll` of kafka-python begins another one: each sends JoinGroup requests of its
    own, each takes the answer, and what one sets is undone by the others.
    """
    join: Callable[..., Awaitable[bool]] | None = getattr(coordinator, "join_group_async", None)
    if join is None:
        return
    is_joining = False

    async def join_alone(timeout_ms: float | None = None) -> bool:
        nonlocal is_joining
        if is_joining:
            wait_ms = _LOOK_MS if timeout_ms is None else min(timeout_ms, _LOOK_MS)
            await coordinator._net.sleep(wait_ms / 1000)  # noqa: SLF001 no public way
            return False
        is_joining = True
        try:
            return await join(timeout_ms=timeout_ms)
        finally:
            is_joining = False

    coordinator.join_group_async = join_alone


def log_silence(coordinator: Any, unheard_s: Callable[[], float]) -> None:
    """Have it logged that no broker answers heartbeats for a session timeout, and the end of it."""
    beat: Callable[[], Awaitable[None]] | None = getattr(coordinator, "_do_heartbeat", None)
    if beat is None:
        return
    silence, session_s = SilenceLog(unheard_s), coordinator.config["session_timeout_ms"] / 1000

    async def beat_and_look() -> None:
        net = coordinator._net  # noqa: SLF001 no public way
        timer = net.call_later(session_s, silence.look)
        try:
            await beat()
        finally:
            net.cancel(timer)
        silence.look()

    coordinator._do_heartbeat = beat_and_look  # noqa: SLF001 as above


def make_readable(coordinator: Any) -> None:
    """Replace metadata that kafka-python, which decodes it unguarded, would raise for as leader."""
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


def commit_existing_topics(coordinator: Any) -> None:
    """Have a commit succeed without the offsets of partitions that do not exist (KAFKA-10355).

    kafka-python sends a commit again until its time is over while one partition is unknown. Here
    the metadata are asked for at the first such answer; what they do not have either is left out,
    until they have it: the topic may then be another one.
    """
    handle = getattr(coordinator, "_handle_offset_commit_response", None)
    send = getattr(coordinator, "_send_offset_commit_request", None)
    if handle is None or send is None:
        return
    missing: set[tuple[str, int]] = set()
    deleted = deleted_topics(coordinator)

    def handle_existing(offsets: Any, send_time: float, response: Any) -> Any:
        cluster = coordinator._cluster  # noqa: SLF001 as below
        for topic in response.topics:
            known = cluster.partitions_for_topic(topic.name) or ()
            unknown = [p for p in topic.partitions if p.error_code == _UNKNOWN_PARTITION]
            gone = [p for p in unknown if p.partition_index not in known]
            topic.partitions = [p for p in topic.partitions if p not in gone]
            missing.update((topic.name, p.partition_index) for p in gone)
            if gone:
                deleted.log(topic.name)
            elif unknown:
                cluster.request_update()
        return handle(offsets, send_time, response)

    def send_existing(offsets: Any) -> Any:
        known = coordinator._cluster.partitions_for_topic  # noqa: SLF001 as below
        missing.difference_update([p for p in missing if p[1] in (known(p[0]) or ())])
        return send({p: at for p, at in offsets.items() if tuple(p) not in missing})

    coordinator._handle_offset_commit_response = handle_existing  # noqa: SLF001 no hook for it
    coordinator._send_offset_commit_request = send_existing  # noqa: SLF001 as above


def _subscribed(coordinator: Any) -> frozenset[str] | None:
    """Return the topics of the consumer, or None where they are not known."""
    topics = getattr(getattr(coordinator, "_subscription", None), "subscription", None)
    return None if topics is None else frozenset(topics)
