"""Two kafka-python consumers in one group that get tasks, on an embedded broker."""

import threading

from kafka import KafkaConsumer, KafkaProducer

from assignor import PartitionsByTask, TasksListener, Topology
from assignor.adapters.kafka_python import StreamsAssignor
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
    """Run one member: poll and process; the client commits offsets."""
    topology = Topology().add_source("words", topics=["words"])
    assignor = StreamsAssignor(topology, application_id="word-count", listener=App(name))
    consumer = KafkaConsumer(
        "words",
        bootstrap_servers=bootstrap,
        group_id="word-count",
        partition_assignment_strategy=[assignor],
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        session_timeout_ms=3000,
    )
    assignor.attach(consumer)
    while len(PROCESSED) < RECORDS or not all(map(RUNNING.get, ("one", "two"))):
        for partition, records in consumer.poll(timeout_ms=1000).items():
            PROCESSED.extend(record.value for record in records)
            print(f"{name} processed {len(records)} of partition {partition.partition}")
    consumer.close()


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
