"""The loops of this project over scripted clients, with a member that goes through events."""

import asyncio
from contextlib import ExitStack, suppress
from unittest import mock

from kafka.errors import KafkaError
from kafka.structs import TopicPartition as KafkaPartition

from assignor.adapters import aiokafka as aiokafka_adapter
from assignor.adapters import kafka_python as kafka_adapter
from assignor.adapters.kafka_python import application
from assignor.adapters.membership.driver import Driver
from tests.assignor.adapters.contract import aiokafka, kafka_python
from tests.assignor.adapters.contract.calls import Deserializer
from tests.assignor.adapters.contract.cluster import Boom, Stop
from tests.assignor.adapters.contract.member import INTERVAL_S, METADATA_S, POLL_S, REQUEST_S, Run
from tests.assignor.adapters.contract.others import count, tasks
from tests.assignor.adapters.reports.logs import COUNTING, COUNTS, GROUP, TOPOLOGY
from tests.assignor.embedding.state_stores.logs import Access

_SETTINGS = {
    "group_id": GROUP,
    "bootstrap_servers": "memory:1",
    "max_poll_interval_ms": round(INTERVAL_S * 1000),
    "session_timeout_ms": 30_000,
    "request_timeout_ms": round(REQUEST_S * 1000),
    "metadata_max_age_ms": round(METADATA_S * 1000),
    "value_deserializer": Deserializer(),
}


class _WaitsError(Exception):
    """Another thread waits for the loop to end."""


class Polled(Run):
    """`polled` and `commit_next` of kafka-python."""

    has_stores, has_ids, has_sizes = False, True, True

    def start(self):
        settings = _SETTINGS | kafka_python.settings(self.cluster, self.note_commit)
        self.consumer = self.make(auto_offset_reset=self.reset, **settings)
        self._is_due = False
        poll = self.consumer.poll

        def polling(*arguments, **options):
            self._is_due = True
            return self.after_poll(poll(*arguments, **options))

        commit = self.consumer.commit

        def committing(*arguments, **options):
            since_s = self.clock.monotonic()
            try:
                return commit(*arguments, **options)
            finally:
                self.check_answered(since_s)

        self.consumer.poll, self.consumer.commit = polling, committing
        self.consumer._scripted_clock = self.clock
        kafka_python.join(self.consumer, self._once)
        self.assign(self.assigned, frozenset())

    def make(self, **settings):
        self.ended = Stop(self.clock)
        with mock.patch.object(Driver, "watch_cluster"):
            return kafka_adapter.streams_consumer(TOPOLOGY, **settings)

    def _once(self):
        """Let one event happen in each call of `poll`, which looks several times."""
        is_due, self._is_due = self._is_due, False
        if is_due:
            self.before_poll()

    def assign(self, partitions, gone, *, is_lost=False):
        if self.stores is not None:
            if gone:
                give_up = self.stores.on_tasks_lost if is_lost else self.stores.on_tasks_revoked
                give_up(tasks(gone), {})
            self.stores.on_tasks_assigned(tasks(partitions), {})
        if not self.consumer._closed and self.consumer.subscription():
            kafka_python.assign(self.consumer, partitions)

    def _own(self, number):
        return [p for p in self.consumer.assignment() if p.partition == number]

    def fail_listener(self):
        """Have the client's own listener raise, as its coordinator does once it has the answer."""
        try:
            self.fails()
        except Boom as error:
            raise KafkaError("User rebalance callback throws an error") from error

    def pause(self, number):
        self.consumer.pause(*self._own(number))

    def resume(self, number):
        self.consumer.resume(*self._own(number))

    def positions(self):
        found = self.consumer._subscription.all_consumed_offsets()
        return {partition.partition: at.offset for partition, at in found.items()}

    def loop(self):
        polled = kafka_adapter.polled(self.consumer, timeout_ms=POLL_S * 1000, stop=self.ended)
        for batch in polled:
            for partition, records in batch.items():
                for record in records:
                    self.handle(partition.partition, record.offset, record.value)
            self.check_left()
            kafka_adapter.commit_next(self.consumer)

    def seek(self, number, offset):
        self.consumer.seek(KafkaPartition("in", number), offset)

    def set_stop(self):
        self.ended.set()

    def close(self):
        self.consumer.close()

    def close_elsewhere(self):
        self.consumer.close()

    def end(self):
        self.consumer.close()


class Application(Polled):
    """`StreamsApplication`, and with it `run_tasks` of kafka-python."""

    has_stores = has_slices = True
    has_sizes = False
    fail_listener = Run.fail_listener

    def make(self, **settings):
        self.ended = Stop(self.clock)
        with ExitStack() as stack:
            access = Access(self.cluster, lambda _: None)
            for where, name, to in (
                (Driver, "watch_cluster", lambda *_: None),
                (application, "KafkaChangelogs", lambda **_: access),
            ):
                stack.enter_context(mock.patch.object(where, name, to))
            self.app = kafka_adapter.StreamsApplication(
                COUNTING, self._handle, stores=[COUNTS], **settings
            )
        self.app._closing = Stop(self.clock)
        self.stores = self.app.stores
        return self.app.consumer

    def _handle(self, record, state):
        count(record, state)
        self.handle(record.partition, record.offset, record.value)

    def loop(self):
        self.app.run(self.ended)

    def close(self):
        self.app.close()

    def close_elsewhere(self):
        """Call `close` on another thread, which waits for the end of the loop."""
        with (
            mock.patch.object(self.app._running, "acquire", side_effect=_WaitsError),
            suppress(_WaitsError),
        ):
            self.app.close()
        self.note_stop()

    def end(self):
        self.app.close()
        self.stores = None


class Aiokafka(Run):
    """`polled` and `commit_next` of aiokafka."""

    has_stores, has_sizes = False, True

    def start(self):
        self._runner = asyncio.Runner(loop_factory=lambda: aiokafka.Loop(self.clock))
        self._runner.run(self._start())

    async def _start(self):
        self.ended = asyncio.Event()
        self.stores = self.new_stores() if self.has_stores else None
        listener = {} if self.stores is None else {"listener": self.stores}
        settings = {name: _SETTINGS[name] for name in _SETTINGS if name != "value_deserializer"}
        with mock.patch.object(Driver, "watch_cluster"):
            self.consumer = aiokafka_adapter.streams_consumer(
                COUNTING if self.has_stores else TOPOLOGY, **settings, **listener
            )
        await aiokafka.join(
            self.consumer,
            self.cluster,
            self.note_commit,
            auto_offset_reset=self.reset,
            value_deserializer=Deserializer(),
        )
        self.consumer._started += [self.consumer._coordinator, self.consumer._fetcher]
        getmany, commit = self.consumer.getmany, self.consumer.commit

        async def committing(*arguments):
            since_s = self.clock.monotonic()
            try:
                return await commit(*arguments)
            finally:
                self.check_answered(since_s)

        async def polling(*arguments, **options):
            self.before_poll()
            return self.after_poll(await getmany(*arguments, **options))

        self.consumer.getmany, self.consumer.commit = polling, committing
        self.assign(self.assigned, frozenset())

    def assign(self, partitions, gone, *, is_lost=False):
        if self.stores is not None:
            if gone:
                give_up = self.stores.on_tasks_lost if is_lost else self.stores.on_tasks_revoked
                give_up(tasks(gone), {})
            self.stores.on_tasks_assigned(tasks(partitions), {})
        # All begin at committed offsets: what was passed over after the last commit comes again.
        self.passed_here = set()
        if not self.consumer._closed and self.consumer.subscription():
            self.give_up(partitions)
            aiokafka.assign(self.consumer, partitions)

    def pause(self, number):
        self.consumer.pause(*(p for p in self.consumer.assignment() if p.partition == number))

    def resume(self, number):
        self.consumer.resume(*(p for p in self.consumer.assignment() if p.partition == number))

    def loop(self):
        self._runner.run(self._poll())

    async def _poll(self):
        polled = aiokafka_adapter.polled(
            self.consumer, timeout_ms=round(POLL_S * 1000), stop=self.ended
        )
        async for batch in polled:
            for partition, records in batch.items():
                for record in records:
                    self.handle(partition.partition, record.offset, record.value)
            self.check_left()
            await aiokafka_adapter.commit_next(self.consumer)

    def seek(self, number, offset):
        partition = next(p for p in self.consumer.assignment() if p.partition == number)
        self._runner.run(self._seek(partition, offset))

    async def _seek(self, partition, offset):
        self.consumer.seek(partition, offset)

    def set_stop(self):
        self.ended.set()

    def close(self):
        """Begin to close, in a task of its own: the caller is no coroutine."""
        self._closing = asyncio.ensure_future(self.consumer.stop())

    close_elsewhere = close

    def end(self):
        self._runner.run(self.consumer.stop())
        self._runner.close()
        if self.stores is not None:
            self.stores.close()


class AiokafkaTasks(Aiokafka):
    """`run_tasks` of aiokafka."""

    has_stores = has_slices = True
    has_sizes = False

    async def _poll(self):
        await aiokafka_adapter.run_tasks(
            self.consumer,
            self.stores,
            self._handle,
            timeout_ms=round(POLL_S * 1000),
            stop=self.ended,
        )

    _handle = Application._handle


LOOPS = {
    "kafka-python polled": Polled,
    "StreamsApplication": Application,
    "aiokafka polled": Aiokafka,
    "aiokafka run_tasks": AiokafkaTasks,
}
