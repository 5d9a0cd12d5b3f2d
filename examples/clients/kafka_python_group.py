"""Two kafka-python consumers in one group that get tasks, on an embedded broker."""

import threading

from kafka import KafkaProducer

from assignor import TasksListener, Topology
from assignor.adapters.kafka_python import commit_next, polled, streams_consumer
from assignor.rebalance import PartitionsByTask
from system_tests.broker import BrokerConfig, running_broker

RECORDS = 8
RUNNING: dict[str, int] = {}
PROCESSED: list[bytes] = []


class App(TasksListener):
    """Prints which tasks it runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Called on the client's thread after each rebalance."""
        tasks = ", ".join(map(str, active)) or "nothing yet"
        print(f"{self.name} runs {tasks}, and {len(standby)} standbys")
        RUNNING[self.name] = len(active)


def consume(name: str, bootstrap: list[str]) -> None:
    """Run one member: poll, process, commit."""
    with streams_consumer(
        Topology().add_source("words", topics=["words"]),
        group_id="word-count",
        bootstrap_servers=bootstrap,
        listener=App(name),
        heartbeat_interval_ms=200,
        session_timeout_ms=3000,
    ) as consumer:
        for batch in polled(consumer):
            for partition, records in batch.items():
                PROCESSED.extend(record.value for record in records)
                print(f"{name} processed {len(records)} of partition {partition.partition}")
            commit_next(consumer)
            if len(PROCESSED) >= RECORDS and all(map(RUNNING.get, ("one", "two"))):
                break


with running_broker(BrokerConfig(topics={"words": 4})) as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(RECORDS):
        producer.send("words", b"hello", partition=number % 4)
    producer.close()
    arguments = [(name, broker.bootstrap_servers) for name in ("one", "two")]
    members = [threading.Thread(target=consume, args=each) for each in arguments]
    for member in members:
        member.start()
    for member in members:
        member.join()
