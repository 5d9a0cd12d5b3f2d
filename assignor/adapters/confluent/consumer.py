"""`confluent_kafka.Consumer` whose group assigns the tasks of a topology. See the package."""

import logging
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Unpack, cast

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.checked_reader import CheckedReader, in_turn, reader_reaches
from assignor.adapters.confluent.commits import Commits
from assignor.adapters.confluent.errors import check_timeout, refused
from assignor.adapters.confluent.events import Change, Mailbox
from assignor.adapters.confluent.member import ConfluentMember
from assignor.adapters.confluent.offsets import (
    assignable,
    check_not_read,
    checked_offsets,
    offset_after,
    partition_of,
    read_one,
    refuse_foreign,
)
from assignor.adapters.confluent.reader import ReaderWatch
from assignor.adapters.confluent.serving import RebalanceCallback, Serving
from assignor.adapters.confluent.settings import divided
from assignor.adapters.confluent.topics import (
    ConsumerKeywords,
    check_options,
    new_assignor,
    subscribed_topics,
    with_keyword_settings,
)
from assignor.adapters.dropped import release_if_dropped
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.topology import Topology

_consume: Final = confluent_kafka.Consumer.consume


class Consumer(CheckedReader):
    """A `confluent_kafka.Consumer` in a group that assigns the tasks of a topology.

    Methods, configuration and errors are those of confluent-kafka; docs/clients.md lists the
    differences. One thread polls; every other method may be called from any thread of the process.

    Args:
        config: of `confluent_kafka.Consumer`; `group.id` and `bootstrap.servers` are needed. As
            there, settings may be keywords: `Consumer(**config, topology=topology)`.
        topology: what the application processes.
        topologies: several versions of the topology instead, for a program that can run each.
        application_id: the group id, and so the prefix of internal topics; leave it out.
        logger: librdkafka's log goes here, as in confluent-kafka.
        options: of `StreamsAssignor`: `num_standby_replicas`, `listener`, `state_dir` and others.
            `rebalance_protocol` is "cooperative" by default. A `listener` is called by `poll`.

    Raises:
        KafkaException: a setting is refused, by librdkafka or since the member cannot have it.
        ValueError: group.id is missing.
        TopologyError, ConfigError, StateDirectoryLocked, StoreError: as `StreamsAssignor`.
    """

    _mailbox = Mailbox()  # of an instance that was never set up: it is closed

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        /,
        *,
        topology: Topology | None = None,
        topologies: Sequence[Topology] | None = None,
        application_id: str | None = None,
        logger: logging.Logger | None = None,
        **options: Unpack[ConsumerKeywords],
    ) -> None:
        settings = divided(with_keyword_settings(config, cast("dict[str, Any]", options)))
        self._settings = settings
        check_options(options, application_id=application_id, group_id=settings.group_id)
        self._mailbox = Mailbox()
        self._commits = Commits(settings, self._mailbox)
        self._serving = Serving(
            settings, self._mailbox, self._commits, lambda: self._member.is_lost
        )
        self._turns, self._polling = self._serving.turns, self._serving.polling
        self._checked_positions = self._serving.input.positions
        reader = self._mailbox.reader_settings(settings.reader)
        if logger is not None:
            reader["logger"] = logger
        super().__init__(reader)
        self._assignor = new_assignor(topology, topologies, options, settings, self._mailbox)
        self._topologies = tuple(topologies or filter(None, [topology]))
        watch = ReaderWatch(settings, self._mailbox, reader_reaches(weakref.ref(self)))
        self._member = ConfluentMember(
            settings, self._assignor, self._mailbox, self._commits, watch
        )
        self._is_open = True
        self._dropped = release_if_dropped(self, _abandoned, self._member, self._assignor)

    @property
    def assignor(self) -> StreamsAssignor:
        """The assignor of this consumer: its tasks, host map, failures and levels."""
        return self._assignor

    # The group

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Join the group.

        Args:
            topics: the topology's source topics; its repartition topics may be left out.
            on_assign: called by `poll` with new partitions, before their first record; it may set
                offsets and call `incremental_assign` (`assign`, if eager).
            on_revoke: called by `poll` with partitions to give up; they are given up when it has
                returned, and commits in it count.
            on_lost: as `on_revoke`, for partitions that other members have already.

        Raises:
            KafkaException: a topic is not in the topology, is missing, is given twice, or is read
                already.
            TypeError: topics are no list of names, or a callback is not callable.
        """
        self._check_open()
        given = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        for name, callback in given.items():
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} expects a callable")
        wanted = subscribed_topics(self._topologies, self._settings.group_id, topics)
        fatal = self._member.fatal
        if fatal is not None:
            raise refused(KafkaError._FATAL, f"Failed to set subscription: {fatal.str()}")
        check_not_read(self._serving.read - self._serving.owned, wanted)
        self._serving.callbacks = dict(zip(Change, given.values(), strict=True))
        self._mailbox.has_polled = True
        self._member.subscribe(wanted)

    def unsubscribe(self) -> None:
        """Leave the group; `poll` calls `on_revoke` for all partitions."""
        self._check_open()
        self._member.subscribe(())

    def memberid(self) -> str | None:  # type: ignore[override] # the stub leaves None out
        """Return the member id that the coordinator gave, or None."""
        self._check_open()
        return self._member.member_id

    def consumer_group_metadata(self) -> Any:
        """Refuse: no generation would fence the offsets of a transaction of librdkafka."""
        self._check_open()
        raise refused(
            KafkaError._UNSUPPORTED_FEATURE,
            "transactions are not supported: librdkafka is in no group here, so its transactional "
            "producer would commit offsets without fencing; commit through this consumer",
        )

    # Records

    def poll(self, timeout: float = -1) -> Message | None:
        """Return a record, an error, or None after `timeout` seconds; call back for rebalances."""
        self._check_not_processing("poll")
        check_timeout(timeout)
        # The short way: a record has been fetched, and there is nothing else to do.
        mailbox = self._mailbox
        mailbox.has_polled = True
        if not (mailbox.events or self._turns.waiting or self._polling.is_busy):
            try:
                messages = read_one(self, 0.0)
            except RuntimeError:  # closed
                raise
            except BaseException as error:
                self._serving.interrupted(self, error)
                raise
            if mailbox.closes:
                self._serving.give_back(self, messages)
            taken = self._serving.input.take(self, messages)
            if taken or timeout == 0:
                return next(iter(taken), None)
        read = partial(read_one, self)
        return next(iter(self._serving.read_within(self, timeout, read)), None)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to `num_messages` records and errors; call back for rebalances."""
        self._check_open("consume")
        return self._serving.read_within(self, timeout, partial(_consume, self, num_messages))

    # Partitions

    @in_turn
    def assign(self, partitions: list[Position]) -> None:
        """Read these partitions only; refused while a cooperative group assigns partitions."""
        self._check_not_cooperative("assign")
        wanted = assignable(partitions, self._member.topics, self._serving.owned)
        with self._serving.removing(self, self._serving.read - wanted):
            super().assign(self._begins(self._commits.stored, partitions))
        self._serving.add(partitions)

    @in_turn
    def unassign(self) -> None:
        """Read nothing; refused while a cooperative group assigns partitions."""
        self._check_not_cooperative("unassign")
        with self._serving.removing(self, self._serving.read):
            super().unassign()

    @in_turn
    def incremental_assign(self, partitions: list[Position]) -> None:
        """Read these partitions too, also those that are no part of the group's topics."""
        assignable(partitions, self._member.topics, self._serving.owned)
        super().incremental_assign(self._begins(self._commits.stored, partitions))
        self._serving.assigns += 1
        self._serving.add(partitions)

    @in_turn
    def incremental_unassign(self, partitions: list[Position]) -> None:
        """Stop reading these partitions."""
        with self._serving.removing(self, map(partition_of, checked_offsets(partitions))):
            super().incremental_unassign(partitions)

    @in_turn
    def seek(self, partition: Position) -> None:
        """Go on with this offset.

        Raises:
            KafkaException: the partition is not read.
        """
        where = partition_of(partition)
        self._serving.input.forget([where])
        try:
            super().seek(partition)
        except KafkaException as error:
            # librdkafka does not seek before it has begun to fetch.
            is_early = error.args[0].code() in {KafkaError._STATE, KafkaError._UNKNOWN_PARTITION}
            if not is_early or not self._serving.begin_at(partition):
                raise
            if where in self._serving.read:
                super().incremental_unassign([partition])
                super().incremental_assign([partition])
        self._serving.input.sought(partition)

    @in_turn
    def store_offsets(
        self, message: Message | None = None, offsets: list[Position] | None = None
    ) -> None:
        """Store the offset after a record, or these offsets, for the next commit."""
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if (stored := offsets if message is None else [offset_after(message, "store")]) is None:
            raise ValueError("expected either message or offsets")
        # One argument: below 2.13 librdkafka's method refuses two, also if one is None.
        super().store_offsets(offsets=stored)
        self._commits.stored.store(stored)

    def commit(  # type: ignore[override] # the stub's overloads say the same of each case
        self,
        message: Message | None = None,
        offsets: list[Position] | None = None,
        asynchronous: bool = True,  # noqa: FBT001, FBT002 as in confluent-kafka
        **renamed: bool,
    ) -> list[Position] | None:
        """Commit the offset after a record, these offsets, or what is stored, as the member.

        Args:
            message: a record.
            offsets: offsets of the next records.
            asynchronous: return None at once; the end is passed to `on_commit` by `poll`.
            renamed: `async`, the old name of `asynchronous`.

        Returns:
            The offsets, each with its error, or None.

        Raises:
            KafkaException: nothing was committed.
            TypeError: an unknown keyword.
        """
        if unknown := sorted(renamed.keys() - {"async"}):
            raise TypeError(f"{unknown[0]!r} is an invalid keyword argument for this function")
        self._check_open("commit")
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            wanted = [offset_after(message, "commit")]
        elif offsets is not None:
            wanted = checked_offsets(offsets)
        else:
            wanted = self._serving.newer(self, self._serving.read)
        foreign = refuse_foreign(wanted, self._member.topics, self._serving.owned)
        if bool(renamed.get("async", asynchronous)):
            self._commits.submit(wanted, is_async=True, refusal=foreign)
            return None
        return self._commits.wait(wanted, refusal=foreign)

    # The end

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Authenticate new connections with these, librdkafka's and the member's."""
        super().set_sasl_credentials(username, password)
        self._member.set_sasl_credentials(username, password)

    def close(self) -> None:
        """Give everything up with `on_revoke`, commit, leave the group and end the threads.

        In a callback it takes effect when the callback has returned; then `poll` raises. While
        another thread polls, that thread closes the consumer: its `poll` raises "Consumer closed".

        Raises:
            Exception: what a callback raised; the consumer is closed nevertheless.
            RuntimeError: this is a thread of the member.
        """
        if not self._is_open or self._polling.is_forked or self._serving.closes_later():
            return
        self._member.check_may_wait()
        if self._serving.is_closed_by_poll(lambda: self._is_open):
            return
        try:
            self._member.close()
            failure = self._serving.serve_until(self, lambda: self._member.is_closed)
            self._is_open = False
            self._dropped.detach()
            super().close()
        finally:
            if not self._is_open:
                self._mailbox.events.clear()
                self._assignor.close()
            self._polling.release()
        if failure is not None:
            raise failure

    def _check_not_cooperative(self, method: str) -> None:
        if self._member.topics and self._assignor.is_cooperative:
            raise refused(
                KafkaError._STATE,
                f"Failed to {method}: changes to the current assignment must be made using "
                "incremental_assign() or incremental_unassign() when rebalance protocol type is "
                "COOPERATIVE",
            )


def _abandoned(member: ConfluentMember, assignor: StreamsAssignor) -> None:
    """End what a consumer leaves behind that was not closed."""
    member.abandon()
    assignor.close()
