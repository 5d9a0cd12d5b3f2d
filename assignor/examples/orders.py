"""Orders joined with their customers, and queries over HTTP that any member answers.

rolling-bounce broker --port 9092 --topic customers:4 --topic orders:4 --topic bills:4
python -m assignor.examples.orders --port 8001    # state/8001; and again with 8002
python -m assignor.examples.orders --write customers ada '{"city": "London"}'
python -m assignor.examples.orders --write orders ada '{"order": 1, "amount": 30}'
curl localhost:8002/ada
"""

from typing import Any

import click
from kafka import KafkaProducer

from assignor import JSON, TEXT, SqliteStore, TaskState, Topology
from assignor.adapters.kafka_python import StreamsApplication

TOPOLOGY = (
    Topology()
    .add_source("read", topics=["customers", "orders"])
    .add_processor("join", parents=["read"])
    .add_sink("write", topic="bills", parents=["join"])
    .add_state_store("customers", processors=["join"])
    .add_state_store("orders", processors=["join"])
    .copartition("customers", "orders")
)
CUSTOMERS = SqliteStore("customers", key=TEXT, value=JSON)
ORDERS = SqliteStore("orders", key=TEXT, value=JSON)  # key: customer/order


def bill(key: bytes, state: TaskState) -> bytes:
    """Return the bill of a customer: both stores, joined."""
    name = key.decode()
    amounts = [order["amount"] for _, order in state[ORDERS].items(prefix=f"{name}/")]
    customer = state[CUSTOMERS].get(name)
    return JSON.encode({"customer": customer, "orders": len(amounts), "total": sum(amounts)})


def join(record: Any, state: TaskState) -> None:
    """Store a customer or an order, and write the customer's new bill."""
    name, value = record.key.decode(), JSON.decode(record.value)
    if record.topic == "customers":
        state[CUSTOMERS].put(name, value)
    else:
        state[ORDERS].put(f"{name}/{value['order']}", value)
    state.send("bills", key=record.key, value=bill(record.key, state))


@click.command()
@click.option("--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--port", default=8001, show_default=True, help="Port of queries; names its state.")
@click.option("--write", nargs=3, metavar="TOPIC NAME JSON", help="Write a record and exit.")
def main(bootstrap_server: str, port: int, write: tuple[str, ...]) -> None:
    """Join customers and orders, and answer queries."""
    if write:
        with KafkaProducer(bootstrap_servers=bootstrap_server) as producer:
            producer.send(write[0], key=write[1].encode(), value=write[2].encode())
        return
    with StreamsApplication(
        TOPOLOGY,
        join,
        stores=[CUSTOMERS, ORDERS],
        group_id="shop",
        bootstrap_servers=bootstrap_server,
        state_dir=f"state/{port}",
        endpoint=f"127.0.0.1:{port}",
        num_standby_replicas=1,
        tell=click.echo,
    ) as app:
        app.serve_queries(CUSTOMERS, bill)
        app.run()


if __name__ == "__main__":
    main()
