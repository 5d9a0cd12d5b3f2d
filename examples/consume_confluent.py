"""confluent-kafka as the data plane: kafka-python is the member, librdkafka reads the records."""

import threading
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, TopicPartition
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Partition
from kafka.structs import OffsetAndMetadata

from assignor import Topology
from assignor.adapters.kafka_python import StreamsAssignor
from system_tests.broker import BrokerConfig, running_broker

READ, DONE = {"one": 0, "two": 0}, threading.Event()


class Reader(ConsumerRebalanceListener):  # type: ignore[misc] # the client is untyped
    """Reads what the member is assigned, all in one thread; librdkafka is no member itself."""

    def __init__(self, name: str, servers: str, member: KafkaConsumer) -> None:
        settings = {"bootstrap.servers": servers, "group.id": "words", "enable.auto.commit": False}
        self.client = Consumer({**settings, "auto.offset.reset": "earliest"})
        self.name, self.member, self.thread = name, member, ThreadPoolExecutor(max_workers=1)
        self.next: dict[Partition, OffsetAndMetadata] = {}
        self.thread.submit(self.read)

    def on_partitions_assigned(self, assigned: set[Partition]) -> None:
        """Read these too, from where the group has committed."""
        self.member.pause(*assigned)  # or it would fetch them as well
        added = [TopicPartition(*where) for where in assigned]
        self.thread.submit(self.client.incremental_assign, added).result()

    def on_partitions_revoked(self, revoked: set[Partition]) -> None:
        """Let the batch at hand end; then commit as the member that may."""
        gone = [TopicPartition(*where) for where in revoked]
        self.thread.submit(self.client.incremental_unassign, gone).result()
        self.member.commit_async({p: self.next.pop(p) for p in revoked if p in self.next})

    def read(self) -> None:
        """Read and process one batch; what the member wants done comes before the next."""
        for message in self.client.consume(100, timeout=0.2):
            READ[self.name] += 1
            where = Partition(message.topic(), message.partition())
            self.next[where] = OffsetAndMetadata(message.offset() + 1, "", -1)
        if not DONE.is_set():
            self.thread.submit(self.read)


def consume(name: str, servers: list[str]) -> None:
    """One member: cooperative, so that it is read for through rebalances."""
    topology = Topology().add_source("words", topics=["words"])
    assignor = StreamsAssignor(topology, application_id="words", rebalance_protocol="cooperative")
    member = KafkaConsumer(
        bootstrap_servers=servers,
        group_id="words",
        partition_assignment_strategy=[assignor],
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
    )
    assignor.attach(member)
    reader = Reader(name, ",".join(servers), member)
    member.subscribe(["words"], listener=reader)
    while not DONE.is_set():
        member.poll(timeout_ms=1000)
        member.commit_async(dict(reader.next))
    member.close()
    reader.thread.shutdown()
    reader.client.close()


with running_broker(BrokerConfig(topics={"words": 4})) as broker:
    members = [threading.Thread(target=consume, args=(n, broker.bootstrap_servers)) for n in READ]
    for thread in members:
        thread.start()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(4000):  # until both have read some
        producer.send("words", b"hello", partition=number % 4)
        if all(READ.values()) or DONE.wait(0.01):
            break
    DONE.set()
    for thread in members:
        thread.join()
    producer.close()
for name, count in READ.items():
    print(f"{name} read {'records' if count else 'nothing'}")
