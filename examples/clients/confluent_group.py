"""Two confluent-kafka consumers in one group that gets the tasks of a topology."""

import threading
from collections import Counter

from confluent_kafka import Producer, TopicPartition

from assignor import Topology
from assignor.adapters.confluent import Consumer
from system_tests.broker import BrokerConfig, running_broker

NAMES = ("one", "two")
READ: Counter[str] = Counter()
DONE = threading.Event()


def consume(name: str, servers: str) -> None:
    """Run one member; records are committed at intervals, and when partitions move."""

    def on_assign(_: Consumer, partitions: list[TopicPartition]) -> None:
        print(f"{name} gets {len(partitions)} partitions")

    topology = Topology().add_source("words", topics=["words"])
    config = {
        "bootstrap.servers": servers,
        "group.id": "words",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 200,
    }
    with Consumer(config, topology=topology) as consumer:
        consumer.subscribe(["words"], on_assign=on_assign)
        while not DONE.is_set():
            for message in consumer.consume(500, timeout=0.5):
                if message.error() is None:
                    READ[name] += 1


with running_broker(BrokerConfig(topics={"words": 4})) as broker:
    servers = ",".join(broker.bootstrap_servers)
    members = [threading.Thread(target=consume, args=(name, servers)) for name in NAMES]
    for thread in members:
        thread.start()
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for number in range(12_000):  # until both have read some
        producer.produce("words", b"hello", partition=number % 4)
        producer.poll(0)
        if all(READ[name] for name in NAMES) or DONE.wait(0.01):
            break
    DONE.set()
    for thread in members:
        thread.join()
    producer.flush()
for name in NAMES:
    print(f"{name} read {'records' if READ[name] else 'nothing'}")
