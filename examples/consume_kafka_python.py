"""Two kafka-python consumers in one group, tasks instead of partitions, on an embedded broker."""

import threading

from kafka import KafkaConsumer, KafkaProducer

from assignor import PartitionsByTask, TasksListener, Topology
from assignor.adapters.kafka_python import StreamsAssignor
from system_tests.broker import BrokerConfig, running_broker


class App(TasksListener):
    """Says which tasks it runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Called on the client's thread after each rebalance."""
        tasks = ", ".join(map(str, active)) or "nothing yet"
        print(f"{self.name} runs {tasks}, and {len(standby)} standbys")


def consume(name: str, bootstrap: list[str], stop: threading.Event) -> None:
    """One member: poll a second or more, process, commit."""
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
    while not stop.is_set():
        for partition, records in consumer.poll(timeout_ms=1000).items():
            print(f"{name} processed {len(records)} of partition {partition.partition}")
    consumer.close()


with running_broker(BrokerConfig(topics={"words": 4})) as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(8):
        producer.send("words", b"hello", partition=number % 4)
    producer.close()
    done = threading.Event()
    arguments = [(name, broker.bootstrap_servers, done) for name in ("one", "two")]
    members = [threading.Thread(target=consume, args=each) for each in arguments]
    for member in members:
        member.start()
    done.wait(4)
    done.set()
    for member in members:
        member.join()
