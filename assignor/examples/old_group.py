"""A group of members that behave like an old Kafka Streams release, to try commands on.

It counts orders; its state is as large as the changelog that it writes at its first start.

python -m assignor.examples.old_group --release 3.1 --members 3    on the broker at localhost:9092
"""

import threading
from contextlib import suppress

import click
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from assignor import Topology
from assignor.adapters.kafka_python import StreamsAssignor, polled

TOPOLOGY = Topology().add_source("read", topics=["orders"])
TOPOLOGY.add_processor("count", parents=["read"])
TOPOLOGY.add_state_store("totals", processors=["count"])
CHANGELOG = "shop-totals-changelog"
RECORDS = 500  # of each task


def write_state(server: str) -> None:
    """Fill the changelog, if the broker has the topic and it is empty."""
    consumer = KafkaConsumer(bootstrap_servers=server)
    partitions = sorted(consumer.partitions_for_topic(CHANGELOG) or ())
    ends = consumer.end_offsets([TopicPartition(CHANGELOG, number) for number in partitions])
    consumer.close()
    if any(ends.values()):
        return
    producer = KafkaProducer(bootstrap_servers=server)
    for number in partitions:
        for order in range(RECORDS):
            producer.send(CHANGELOG, b"%d" % order, b"customer-%d" % order, partition=number)
    producer.flush()
    producer.close()


def member(name: str, release: str, pin: str | None, server: str, stop: threading.Event) -> None:
    """Run one member of the group `shop` until `stop` is set."""
    assignor = StreamsAssignor(TOPOLOGY, application_id="shop", release=release, upgrade_from=pin)
    settings = {"group_id": "shop", "client_id": name, "bootstrap_servers": server}
    consumer = KafkaConsumer("orders", **settings, partition_assignment_strategy=[assignor])
    assignor.attach(consumer)
    for _ in polled(consumer, assignor, stop=stop):
        pass
    consumer.close()
    assignor.close()


@click.command()
@click.option("--release", default="3.1", show_default=True, help="x.y, x.y.z or native.")
@click.option("--upgrade-from", "pin", help="The pin of the last member.")
@click.option("--members", type=click.IntRange(1, 8), default=3, show_default=True)
@click.option("--bootstrap-server", "server", default="localhost:9092", show_default=True)
def main(release: str, pin: str | None, members: int, server: str) -> None:
    """Run the members until Ctrl-C."""
    write_state(server)
    stop = threading.Event()
    names = [f"process-{letter}" for letter in "abcdefgh"[:members]]
    rows = [(name, release, pin if name == names[-1] else None, server, stop) for name in names]
    threads = [threading.Thread(target=member, args=row) for row in rows]
    for thread in threads:
        thread.start()
    click.echo(f"{members} members of release {release} in group shop; Ctrl-C ends them")
    with suppress(KeyboardInterrupt):
        stop.wait()
    stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
