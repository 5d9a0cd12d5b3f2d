"""A word count with state that survives its process: start several members and kill one.

    python -m system_tests.broker --port 9092 --topic words:4
    python -m examples.word_count --state-dir state/one     # and again with state/two, state/three
    python -m examples.word_count --say "to be or not to be"

Each task counts one partition in SQLite. It writes each count, with its input offset, to a
changelog that standbys read. Records that are read twice are ignored, so counts stay exact.
"""

import json
import signal
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from assignor import Topology
from assignor.adapters.kafka_python import ChangelogReader, StreamsAssignor, commit_next, polled
from assignor.embedding import RunningTasks
from encoding import RebalanceError, TaskId, TopicPartition

APP, WORDS = "word-count", "words"
TOPOLOGY = (
    Topology()
    .add_source("read", topics=[WORDS])
    .add_processor("count", parents=["read"])
    .add_state_store("counts", processors=["count"])
)


class Counts:
    """The state of one task; `position` is the next record of its changelog."""

    def __init__(self, directory: Path, task: TaskId) -> None:
        self.changelog = TopicPartition(f"{APP}-counts-changelog", task.partition)
        self.db = sqlite3.connect(directory / "counts.db")
        self.db.execute("create table if not exists counts (word primary key, count, at)")
        self.db.execute("create table if not exists done (id primary key, position)")
        [(self.position,)] = self.db.execute("select coalesce(max(position), 0) from done")
        [(self.next_input,)] = self.db.execute("select coalesce(max(at) + 1, 0) from counts")

    def put(self, word: str, count: int, at: int) -> None:
        """Store a count, unless a later one is stored."""
        self.db.execute(
            "insert into counts values (:word, :count, :at) on conflict do update"
            " set count = :count, at = :at where at < :at",
            {"word": word, "count": count, "at": at},
        )
        self.next_input = max(self.next_input, at + 1)

    def add(self, records: list[Any], producer: Any) -> None:
        """Count the words of records that are not counted yet."""
        sent, (topic, partition) = [], self.changelog
        for record in [row for row in records if row.offset >= self.next_input]:
            word = record.key.decode()
            found = self.db.execute("select count from counts where word = ?", [word]).fetchone()
            count = 1 + (found[0] if found else 0)
            self.put(word, count, record.offset)
            value = json.dumps({"count": count, "at": record.offset}).encode()
            sent.append(producer.send(topic, value, record.key, partition=partition))
            click.echo(f"0_{partition} {word} {count}")
        self.save(max([future.get(30).offset + 1 for future in sent], default=self.position))

    def restore(self, records: list[Any]) -> None:
        """Apply records of the changelog."""
        for record in records:
            self.put(record.key.decode(), **json.loads(record.value))
        self.save(records[-1].offset + 1)

    def save(self, position: int) -> None:
        """Commit all changes to the disk."""
        self.db.execute("insert or replace into done values (0, ?)", [position])
        self.db.commit()
        self.position = position


class App(RunningTasks):
    """Gets rebalances on the client's thread, processes records on the main thread."""

    stores: Mapping[TaskId, Counts] = {}

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Changelog position of each task's state, for the leader."""
        return {task: store.position for task, store in self.stores.items()}

    def work(self, batch: Any, home: Any, reader: ChangelogReader, producer: Any) -> dict[Any, int]:
        """Restore new tasks, count a batch, update standbys; return the offsets to commit."""
        fresh, standby = self.tasks()
        new = {*home.tasks(), *fresh, *standby} - self.stores.keys()
        self.stores = {**self.stores, **{task: Counts(home.task_dir(task), task) for task in new}}
        if fresh:
            behind = reader.read([self.stores[task] for task in fresh], to_the_end=True)
            click.echo(f"took over {' '.join(map(str, sorted(fresh)))}, {behind} records behind")
        with self.working(fresh) as active:
            own_records = {
                p: found for p, found in batch.items() if TaskId(0, p.partition) in active
            }
            for partition, records in own_records.items():
                self.stores[TaskId(0, partition.partition)].add(records, producer)
        reader.read(self.stores[task] for task in standby)
        return {partition: records[-1].offset + 1 for partition, records in own_records.items()}


def run(state_dir: Path, **settings: Any) -> None:
    """Run a member of the group until SIGTERM or SIGINT."""
    app, stop = App(tell=click.echo), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    assignor = StreamsAssignor(
        TOPOLOGY, application_id=APP, state_dir=state_dir, listener=app, num_standby_replicas=1
    )
    consumer = KafkaConsumer(WORDS, **settings, partition_assignment_strategy=[assignor])
    assignor.attach(consumer)
    reader = ChangelogReader(settings)
    producer = KafkaProducer(bootstrap_servers=settings["bootstrap_servers"], acks="all")
    for batch in polled(consumer, assignor, stop=stop):
        commit_next(consumer, app.work(batch, assignor.directory, reader, producer))
    for closable in (consumer, reader, producer, assignor):
        closable.close()


@click.command()
@click.option("--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--state-dir", type=Path, default=Path("state"), show_default=True)
@click.option("--session-ms", default=6000, show_default=True, help="Session timeout in ms.")
@click.option("--say", metavar="WORDS", help="Write these words and exit.")
def main(bootstrap_server: str, state_dir: Path, session_ms: int, say: str | None) -> None:
    """Count the words of topic `words`."""
    servers = {"bootstrap_servers": bootstrap_server}
    times = {"session_timeout_ms": session_ms, "heartbeat_interval_ms": session_ms // 5}
    try:
        if say is None:
            begin = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
            return run(state_dir, group_id=APP, **servers, **times, **begin)
        with KafkaProducer(**servers) as producer:
            for word in say.split():
                producer.send(WORDS, key=word.encode())
    except (KafkaError, RebalanceError) as error:
        raise click.ClickException(str(error) or type(error).__name__) from error


if __name__ == "__main__":
    main()
