"""Rates of state stores: put with changelog, beside plain sqlite3, and restoration.

`python -m benchmarks.clients.state_stores [--records 20000]` runs on the embedded broker. A record
is one put of a new key in a batch of 500. Plain sqlite3 writes the batches without a changelog,
a plain KafkaProducer without a store.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from kafka import KafkaProducer

from assignor import BYTES, DictStore, SqliteStore, TaskId, TaskStores, TopicPartition, Topology
from assignor.adapters.kafka_python import KafkaChangelogs
from system_tests.broker import BrokerConfig, running_broker

BATCH = 500
TASK, WORDS = TaskId(0, 0), TopicPartition("words", 0)
TOPOLOGY = (
    Topology()
    .add_source("read", topics=["words"])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)
Record = namedtuple("Record", "offset timestamp key value")  # noqa: PYI024 as the client's own


def opened(servers, kind, folder):
    """An active task that is restored, its store, and the seconds that this took."""
    store = kind("counts", key=BYTES, value=BYTES)
    access = KafkaChangelogs(bootstrap_servers=servers)
    stores = TaskStores(TOPOLOGY, [store], application_id="app", access=access, state_dir=folder)
    stores.on_tasks_assigned({TASK: (WORDS,)}, {})
    began = time.perf_counter()
    while stores.waiting:
        stores.process({}, print)
    return stores, store, time.perf_counter() - began


def put_rate(servers, kind, folder, batches):
    """Records per second that are processed into a store and its changelog."""
    stores, store, _ = opened(servers, kind, folder)

    def put(record, state):
        state[store].put(record.key, record.value)

    began = time.perf_counter()
    for batch in batches:
        stores.process({WORDS: batch}, put)
    took = time.perf_counter() - began
    stores.close()
    return sum(map(len, batches)) / took


def plain_rate(path, batches):
    """Records per second of sqlite3 with the same settings and transactions."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute("create table items (key blob primary key, value blob) without rowid")
    began = time.perf_counter()
    for batch in batches:
        connection.execute("begin immediate")
        for record in batch:
            connection.execute("replace into items values (?, ?)", (record.key, record.value))
        connection.execute("commit")
    took = time.perf_counter() - began
    connection.close()
    return sum(map(len, batches)) / took


def producer_rate(servers, batches):
    """Records per second of a KafkaProducer that waits for each batch."""
    began = time.perf_counter()
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for batch in batches:
            sent = [producer.send("plain", record.value, record.key) for record in batch]
            for each in sent:
                each.get(30)
    return sum(map(len, batches)) / (time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    count = parser.parse_args().records
    rows = [Record(n, n, f"key-{n:08}".encode(), bytes(100)) for n in range(count)]
    batches = [rows[at : at + BATCH] for at in range(0, count, BATCH)]
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates["plain sqlite3, put"] = plain_rate(folder / "plain.db", batches)
        for kind in (SqliteStore, DictStore):
            topics = {"words": 1, "plain": 1, "app-counts-changelog": 1}
            with running_broker(BrokerConfig(topics=topics)) as broker:
                servers = broker.bootstrap_servers
                rates["plain KafkaProducer, send"] = producer_rate(servers, batches)
                own = folder / kind.__name__
                rates[f"{kind.__name__}, put and changelog"] = put_rate(servers, kind, own, batches)
                stores, store, took = opened(servers, kind, folder / f"{kind.__name__}-restored")
                assert sum(1 for _ in stores[TASK][store].items()) == count
                stores.close()
                rates[f"{kind.__name__}, restore"] = count / took
    for what, rate in rates.items():
        print(f"{what}: {rate:,.0f} records/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
