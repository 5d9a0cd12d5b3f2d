"""kafka-python as the group member, confluent-kafka (librdkafka) as the reader of records."""

import threading
from collections import Counter

from kafka import KafkaConsumer, KafkaProducer

from assignor import Topology
from assignor.adapters.confluent import ConfluentReader
from assignor.adapters.kafka_python import StreamsAssignor, polled
from system_tests.broker import BrokerConfig, running_broker

NAMES = ("one", "two")
READ: Counter[str] = Counter()
DONE = threading.Event()


def consume(name: str, servers: list[str]) -> None:
    """Run one member; it is cooperative, so reading continues during rebalances."""
    topology = Topology().add_source("words", topics=["words"])
    assignor = StreamsAssignor(topology, application_id="words", rebalance_protocol="cooperative")
    member = KafkaConsumer(
        bootstrap_servers=servers,
        group_id="words",
        partition_assignment_strategy=[assignor],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
    )
    assignor.attach(member)
    reader = ConfluentReader(member, lambda records: READ.update({name: len(records)}))
    member.subscribe(["words"], listener=reader)
    for _ in polled(member, assignor, stop=DONE):
        reader.commit()
    member.close()
    reader.close()


with running_broker(BrokerConfig(topics={"words": 4})) as broker:
    members = [threading.Thread(target=consume, args=(n, broker.bootstrap_servers)) for n in NAMES]
    for thread in members:
        thread.start()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(12_000):  # until both have read some
        producer.send("words", b"hello", partition=number % 4)
        if all(READ[name] for name in NAMES) or DONE.wait(0.01):
            break
    DONE.set()
    for thread in members:
        thread.join()
    producer.close()
for name in NAMES:
    print(f"{name} read {'records' if READ[name] else 'nothing'}")
