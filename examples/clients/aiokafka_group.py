"""Two aiokafka consumers in one group that get tasks, on an embedded broker."""

import asyncio

from aiokafka import AIOKafkaProducer

from assignor import TasksListener, Topology
from assignor.adapters.aiokafka import commit_next, polled, streams_consumer
from assignor.rebalance import PartitionsByTask
from system_tests.broker import BrokerConfig, EmbeddedBroker

RECORDS = 8
RUNNING: dict[str, int] = {}
PROCESSED: list[bytes] = []


class App(TasksListener):
    """Prints which tasks it runs; called on the event loop, so it must not block."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Called after each rebalance."""
        tasks = ", ".join(map(str, active)) or "nothing yet"
        print(f"{self.name} runs {tasks}, and {len(standby)} standbys")
        RUNNING[self.name] = len(active)


async def consume(name: str, bootstrap: list[str]) -> None:
    """Run one member: poll, process, commit."""
    async with streams_consumer(
        Topology().add_source("words", topics=["words"]),
        group_id="word-count",
        bootstrap_servers=bootstrap,
        listener=App(name),
        heartbeat_interval_ms=200,
        session_timeout_ms=3000,
    ) as consumer:
        async for batch in polled(consumer):
            for partition, records in batch.items():
                PROCESSED.extend(record.value for record in records)
                print(f"{name} processed {len(records)} of partition {partition.partition}")
            await commit_next(consumer)
            if len(PROCESSED) >= RECORDS and all(map(RUNNING.get, ("one", "two"))):
                break


async def main() -> None:
    """Write a few records and process them with two members."""
    async with EmbeddedBroker(BrokerConfig(topics={"words": 4})) as broker:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                await producer.send_and_wait("words", b"hello", partition=number % 4)
        members = [consume(name, broker.bootstrap_servers) for name in ("one", "two")]
        await asyncio.gather(*members)


asyncio.run(main())
