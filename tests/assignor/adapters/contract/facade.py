"""The loops over the confluent facade: its own consumer class, over a scripted reader and group."""

import logging
from contextlib import ExitStack, suppress
from functools import partial
from types import SimpleNamespace
from unittest import mock

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position

from assignor import MemberStopped, UnreadableRecord
from assignor.adapters.confluent import Consumer, offsets, processing, run_tasks
from assignor.adapters.confluent import consumer as facade
from assignor.adapters.confluent.events import Call, Change, Rebalanced
from tests.assignor.adapters.contract.cluster import TOPIC, Metadata, Stop
from tests.assignor.adapters.contract.confluent import Reader, reader_of
from tests.assignor.adapters.contract.loops import LOOPS
from tests.assignor.adapters.contract.member import INTERVAL_S, METADATA_S, POLL_S, REQUEST_S, Run
from tests.assignor.adapters.contract.others import count, tasks
from tests.assignor.adapters.reports.logs import COUNTING, GROUP, TOPOLOGY

_log = logging.getLogger(__name__)
_COMMIT_S = 5.0
UNREADABLE = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION})
_RETRIED = frozenset({KafkaError.REBALANCE_IN_PROGRESS, KafkaError.NOT_COORDINATOR})


class _Member:
    """A member of a scripted group, in the place of `ConfluentMember`."""

    fatal, is_lost, is_closed, member_id, topics = None, False, False, "member", frozenset()
    _consumer = handover = None

    def __init__(self, settings, assignor, mailbox, commits, watch):
        commits.committer.connect = lambda _: None
        self._mailbox, self.owned = mailbox, lambda: ()

    def subscribe(self, topics):
        self.topics = frozenset(topics)

    def connect(self):
        """It is connected."""

    check_may_wait = abandon = connect

    def close(self):
        """Have everything given up, and leave then."""

        def served():
            self.is_closed = True

        owned = tuple(sorted(self.owned()))
        self._mailbox.post(Rebalanced(change=Change.REVOKED, partitions=owned, served=served))


class FacadeTasks(Run):
    """`run_tasks` of confluent-kafka."""

    # The member knows topics by their ids.
    release, deserializes, has_ids = (2, 14), False, True
    has_slices, commits_itself, is_fenced = True, False, False

    def start(self):
        self.ended = Stop(self.clock)
        self.stores = self.new_stores() if self.has_stores else None
        reader = reader_of(self.cluster, self.release)
        kind = type("Scripted", (Consumer, reader), {})
        config = {
            "bootstrap.servers": "memory:1",
            "group.id": GROUP,
            "enable.auto.commit": self.commits_itself,
            "auto.offset.reset": "error" if self.reset == "none" else self.reset,
            "max.poll.interval.ms": round(INTERVAL_S * 1000),
            "session.timeout.ms": 30_000,
            "socket.timeout.ms": round(REQUEST_S * 1000),
            "check.crcs": True,
        }
        listener = {} if self.stores is None else {"listener": self.stores}
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(facade, "ConfluentMember", _Member))
            self.consumer = kind(
                config, topology=COUNTING if self.has_stores else TOPOLOGY, **listener
            )
        self.metadata = Metadata(self.cluster, METADATA_S)
        self.consumer._member._consumer = SimpleNamespace(_cluster=self.metadata)
        self.consumer._member.owned = lambda: self.consumer._serving.owned
        self.consumer._commits.committer.submit = self._commit
        self.consumer._mailbox.wait = self.clock.wait
        for name in ("consume", "poll"):
            setattr(self.consumer, name, self._polling(getattr(self.consumer, name)))
        self.consumer.subscribe([TOPIC])
        self.assign(self.assigned, frozenset())

    def _polling(self, poll):
        def polling(*arguments):
            if self.is_polling:
                return poll(*arguments)
            self.is_polling = True
            try:
                self.before_poll()
                return self.after_poll(poll(*arguments))
            finally:
                self.is_polling = False

        self.is_polling = False
        return polling

    def _commit(self, commit):
        """Commit as the member does, which retries until the deadline of the commit."""
        wanted = {(each.topic, each.partition): each.offset for each in commit.valid}
        while True:
            if self.is_fenced:
                codes = dict.fromkeys(wanted, KafkaError.UNKNOWN_MEMBER_ID)
            else:
                codes = self.cluster.commit(wanted, self.note_commit)
            if codes is None:
                self.clock.wait(REQUEST_S)
            elif not _RETRIED & {*codes.values()}:
                commit.finish({p: KafkaError(code) if code else None for p, code in codes.items()})
                return
            if self.clock.monotonic() >= commit.deadline_s:
                commit.fail(KafkaError(KafkaError.REQUEST_TIMED_OUT, "no broker answers"))
                return
            self.clock.sleep(0.05)

    def assign(self, partitions, gone, *, is_lost=False):
        mailbox, owned = self.consumer._mailbox, self.consumer._serving.owned
        if gone:
            change = Change.LOST if is_lost else Change.REVOKED
            # The group has removed a member that has lost them, until it joins again.
            self.is_fenced = is_lost
            partitions_gone = tuple(sorted(gone))
            mailbox.post(
                Rebalanced(change=change, partitions=partitions_gone, served=self._joins_again)
            )
            if self.stores is not None:
                name = "on_tasks_lost" if is_lost else "on_tasks_revoked"
                give_up = getattr(self.stores, name)
                mailbox.post(Call(call=lambda: give_up(tasks(gone), {})))
            if not is_lost:  # the group waits for it
                self.consumer._serving.serve(self.consumer)
        new = tuple(sorted(partitions - (owned - gone)))
        if self.stores is not None:
            mailbox.post(Call(call=lambda: self.stores.on_tasks_assigned(tasks(partitions), {})))
        if new:
            known = {
                each: Position(*each, self.cluster.committed[each])
                for each in new
                if each in self.cluster.committed
            }
            self.consumer._commits.stored.fetched(new, known)
            mailbox.post(Rebalanced(change=Change.ASSIGNED, partitions=new, served=lambda: None))

    def fail_listener(self):
        call = partial(self.consumer.assignor.listener._call, self.fails)
        self.consumer._mailbox.post(Call(call=call))

    def _joins_again(self):
        self.is_fenced = False

    def loop(self):
        with self._own_methods():
            run_tasks(self.consumer, self.stores, self._handle, timeout=POLL_S, stop=self.ended)

    def _own_methods(self):
        """Have calls of librdkafka's class, which pass over subclasses, reach the reader."""
        stack = ExitStack()

        def consume(consumer, most, wait_s):
            """Read; then another thread calls `close` while this one polls, if it is to."""
            found = list(Reader.consume(consumer, most, wait_s))
            if found and self.closes_in_poll:
                self.closes_in_poll, consumer._mailbox.closes = False, True
            return found

        def read_one(consumer, wait_s):
            return consume(consumer, 1, wait_s)

        def refresh_metadata(consumer, end_s):
            self.metadata.ask()

        stack.enter_context(mock.patch.object(facade, "_consume", consume))
        stack.enter_context(mock.patch.object(processing, "refresh_metadata", refresh_metadata))
        for module in (facade, offsets):
            stack.enter_context(mock.patch.object(module, "read_one", read_one))
        return stack

    def _handle(self, message, state):
        count(message, state)
        self.handle(message.partition(), message.offset(), message.value())

    def seek(self, number, offset):
        self.consumer.seek(Position(TOPIC, number, offset))

    def pause(self, number):
        self.consumer.pause([Position(TOPIC, number)])

    def resume(self, number):
        if self.consumer._is_open:
            self.consumer.resume([Position(TOPIC, number)])

    def numbers_of(self, polled):
        found = polled if isinstance(polled, list) else [polled]
        return {each.partition() for each in found if each is not None and each.error() is None}

    def set_stop(self):
        self.ended.set()

    def close(self):
        self.consumer.close()

    close_elsewhere = close

    def close_in_poll(self):
        self.closes_in_poll = True

    def end(self):
        with self._own_methods():
            self.consumer.close()
        self.metadata.is_closed = True
        if self.stores is not None:
            self.stores.close()


class FacadePolled(FacadeTasks):
    """An application's own loop over the facade; the thread of the member, not here, warns."""

    has_stores = names_slow = reads_again = has_slices = commits_again = False

    def pause_for(self, number, seconds):
        """Pause nothing: a pause only passes the time in which nobody has asked for the topic's id.

        The facade knows it from its first poll without records, or a second after its first one.
        """

    def fail_listener(self):
        """Have `on_assign` raise, which this poll calls."""
        serving, callbacks = self.consumer._serving, self.consumer._serving.callbacks

        def fails(*_):
            serving.callbacks = callbacks
            self.fails()

        if self.consumer._is_open:
            serving.callbacks = {Change.ASSIGNED: fails}

    def shut_down(self):
        """Stop: it is for the application to ask the assignor."""
        self.stop()

    def commit(self, message):
        with suppress(KafkaException):  # another member has the partition, or no broker answers
            self.consumer.commit(message=message, asynchronous=False)

    def loop(self):
        with self._own_methods():
            while not self.ended.is_set():
                message = self.consumer.poll(POLL_S)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    self.handle(message.partition(), message.offset(), message.value())
                    self.commit(message)
                elif error.code() in UNREADABLE:
                    raise UnreadableRecord(TOPIC, message.partition(), message.offset(), str(error))
                elif error.fatal() or error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise MemberStopped(str(error))
                else:
                    _log.warning("%s", error)


class FacadePositions(FacadePolled):
    """The same, with commits of what was returned."""

    def commit(self, message):
        with suppress(KafkaException):  # nothing is new
            self.consumer.commit(asynchronous=False)


class FacadeAutomatic(FacadePolled):
    """The same, with commits by the consumer itself, of what was returned."""

    commits_itself = commits_delivered = commits_again = True

    def start(self):
        super().start()
        self._commit_on_time(self.consumer)

    def _commit_on_time(self, consumer):
        """Do what the member's thread does until its consumer is closed."""
        if consumer._is_open:
            consumer._commits.interval_over()
            self.clock.later(_COMMIT_S, lambda: self._commit_on_time(consumer))

    def commit(self, message):
        """The consumer does."""


class OlderTasks(FacadeTasks):
    """`run_tasks` with confluent-kafka up to 2.13.0."""

    release = (2, 13, 0)


class OlderPositions(FacadePositions):
    """The facade up to 2.13.0."""

    release = (2, 13, 0)


LOOPS |= {
    "confluent run_tasks": FacadeTasks,
    "confluent poll": FacadePolled,
    "confluent poll, positions": FacadePositions,
    "confluent poll, automatic": FacadeAutomatic,
    "confluent run_tasks, 2.13": OlderTasks,
    "confluent poll, positions, 2.13": OlderPositions,
}
