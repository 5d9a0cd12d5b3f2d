"""The calls of a script on each client, real or scripted, and what an application sees of them."""

import asyncio

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import OFFSET_BEGINNING, KafkaException
from confluent_kafka import TopicPartition as Position
from kafka import TopicPartition as KafkaPartition
from kafka import serializer

from assignor import UnreadableRecord
from assignor.adapters.aiokafka.records import name_unreadable_records
from assignor.adapters.kafka_python.bounded import BoundedConsumer
from tests.assignor.adapters.contract.cluster import POISON, TOPIC

POLL_S = 0.2


def deserialized(value):
    if value.startswith(POISON):
        raise ValueError("poison")
    return value


class Deserializer(serializer.Deserializer):
    """A deserializer of both clients that have one."""

    def __call__(self, value):
        return deserialized(value)

    def deserialize(self, topic, headers, data):
        return deserialized(data)


def described(error):
    """Return what an application sees of an error."""
    if isinstance(error, UnreadableRecord):
        return "unreadable", error.partition, error.offset
    return "error", type(error).__name__


class KafkaPython:
    """Calls of a script on a `KafkaConsumer`."""

    def __init__(self, **settings):
        self.consumer = BoundedConsumer(
            group_id="app",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            value_deserializer=Deserializer(),
            **settings,
        )

    def assign(self, *numbers):
        self.consumer.assign([KafkaPartition(TOPIC, number) for number in numbers])

    def poll(self, most):
        try:
            batch = self.consumer.poll(timeout_ms=POLL_S * 1000, max_records=most)
        except Exception as error:  # noqa: BLE001 it is part of the trace
            return [described(error)]
        return [("record", p.partition, r.offset) for p, found in batch.items() for r in found]

    def positions(self):
        found = self.consumer._subscription.all_consumed_offsets()
        return {partition.partition: at.offset for partition, at in found.items()}

    def seek(self, number, offset):
        self.consumer.seek(KafkaPartition(TOPIC, number), offset)

    def pause(self, number):
        self.consumer.pause(KafkaPartition(TOPIC, number))

    def resume(self, number):
        self.consumer.resume(KafkaPartition(TOPIC, number))

    def commit(self):
        self.consumer.commit()

    def close(self):
        self.consumer.close()


class Aiokafka:
    """Calls of a script on an `AIOKafkaConsumer`."""

    def __init__(self, loop_factory, begin, **settings):
        self._runner = asyncio.Runner(loop_factory=loop_factory)

        async def start():
            consumer = AIOKafkaConsumer(
                group_id="app",
                enable_auto_commit=False,
                fetch_max_wait_ms=100,
                value_deserializer=Deserializer(),
                **settings,
            )
            await begin(consumer)
            name_unreadable_records(consumer)
            return consumer

        self.consumer = self._runner.run(start())

    def _call(self, function, *arguments):
        async def call():
            return function(*arguments)

        return self._runner.run(call())

    def assign(self, *numbers):
        self._call(self.consumer.assign, [AioPartition(TOPIC, number) for number in numbers])

    def poll(self, most):
        get = self.consumer.getmany(timeout_ms=POLL_S * 1000, max_records=most)
        try:
            batch = self._runner.run(get)
        except Exception as error:  # noqa: BLE001 it is part of the trace
            return [described(error)]
        return [("record", p.partition, r.offset) for p, found in batch.items() for r in found]

    def positions(self):
        found = self.consumer._subscription.subscription.assignment.all_consumed_offsets()
        return {partition.partition: at.offset for partition, at in found.items()}

    def seek(self, number, offset):
        self._call(self.consumer.seek, AioPartition(TOPIC, number), offset)

    def pause(self, number):
        self._call(self.consumer.pause, AioPartition(TOPIC, number))

    def resume(self, number):
        self._call(self.consumer.resume, AioPartition(TOPIC, number))

    def commit(self):
        self._runner.run(self.consumer.commit())

    def close(self):
        self._runner.run(self.consumer.stop())
        self._runner.close()


class Confluent:
    """Calls of a script on librdkafka's consumer, made as the facade makes them."""

    def __init__(self, kind, servers):
        self.consumer = kind(
            {
                "bootstrap.servers": servers,
                "group.id": "app",
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 100,
                "log_level": 0,
            }
        )
        self._read, self._committed = set(), {}

    def assign(self, *numbers):
        begins = self._committed
        gone = [Position(TOPIC, n) for n in sorted(self._read - {*numbers})]
        new = [
            Position(TOPIC, n, begins.get(n, OFFSET_BEGINNING))
            for n in sorted({*numbers} - self._read)
        ]
        if gone:
            self.consumer.incremental_unassign(gone)
        if new:
            self.consumer.incremental_assign(new)
        self._read = {*numbers}

    def poll(self, most):
        found = set()
        for message in self.consumer.consume(most or 100, POLL_S):
            error, place = message.error(), (message.partition(), message.offset())
            found.add(("record", *place) if error is None else ("error", error.name(), *place))
        return sorted(found)

    def positions(self):
        found = self.consumer.position([Position(TOPIC, n) for n in sorted(self._read)])
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def seek(self, number, offset):
        to = Position(TOPIC, number, offset)
        try:
            self.consumer.seek(to)
        except KafkaException:  # nothing is fetched
            self.consumer.incremental_unassign([to])
            self.consumer.incremental_assign([to])

    def pause(self, number):
        self.consumer.pause([Position(TOPIC, number)])

    def resume(self, number):
        self.consumer.resume([Position(TOPIC, number)])

    def commit(self):
        self._committed |= self.positions()

    def close(self):
        self.consumer.close()
