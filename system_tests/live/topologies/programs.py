"""The member process that runs the old or the new program of a change of the topology."""

import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import UnknownTopicOrPartitionError

from assignor import Topology
from assignor.adapters.admin import GroupLevels
from assignor.adapters.kafka_python import ChangelogReader, StreamsAssignor, commit_next, polled
from assignor.embedding import RunningTasks
from assignor.observe import AnswersDecided, Observation
from encoding import TaskId, TopicPartition
from system_tests.json_lines import read_line
from system_tests.live.members.process import end_with_parent
from system_tests.topology_changes import ChangeKind, program

APP = "topology-change"
_LEADER_TRIES, _LEADER_PAUSE_S = 100, 0.1


OLD_ADD, OLD_REMOVE = program(ChangeKind.ADD, 1), program(ChangeKind.REMOVE, 1)
OLD_CHANGE, OLD_RENAME = program(ChangeKind.CHANGE, 1), program(ChangeKind.RENAME, 1)
"""The old programs, by the names that `assignor features downgrade-topology` is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """What a member process is started with, as a line of JSON on its standard input.

    Attributes:
        name: of the member.
        kind, version: which program it runs.
        servers: of the broker.
        state_dir: kept from the old program to the new one.
        process_id: likewise.
        cooperative: it gives up only what moves.
        follows: it looks at the group's levels every second.
        session_timeout_ms: of its consumer.
    """

    name: str
    kind: str
    version: int
    servers: str
    state_dir: str
    process_id: str
    cooperative: bool = False
    follows: bool = False
    session_timeout_ms: int = 6000


class Store:
    """A store of one partition: word -> count, and the offset of the last counted record."""

    def __init__(self, directory: Path, name: str, partition: int) -> None:
        self.changelog = TopicPartition(f"{APP}-{name}-changelog", partition)
        # By changelog, not by task: the next topology may number its tasks otherwise.
        self.db = sqlite3.connect(directory / f"{self.changelog.topic}-{partition}.db")
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
        """Count the records that are not counted yet, and write each count to the changelog."""
        sent = []
        for record in [row for row in records if row.offset >= self.next_input]:
            word = record.key.decode()
            found = self.db.execute("select count from counts where word = ?", [word]).fetchone()
            count = 1 + (found[0] if found else 0)
            self.put(word, count, record.offset)
            value = json.dumps({"count": count, "at": record.offset}).encode()
            topic, partition = self.changelog
            sent.append(producer.send(topic, value, record.key, partition=partition))
        self.save(max([future.get(30).offset + 1 for future in sent], default=self.position))

    needs_check = False

    def check_range(
        self, start: int, end: int, topic_id: UUID | None, asked_ms: int | None = None
    ) -> None:
        """Nothing deletes from these changelogs."""

    def restore(self, records: Sequence[Any]) -> None:
        """Apply records of the changelog."""
        for record in records:
            self.put(record.key.decode(), **json.loads(record.value))
        self.save(records[-1].offset + 1)

    def save(self, position: int) -> None:
        """Commit all changes to the disk."""
        self.db.execute("insert or replace into done values (0, ?)", [position])
        self.db.commit()
        self.position = position


class Counting(RunningTasks):
    """Counts what its tasks read, in the stores of their subtopologies."""

    def __init__(self, config: MemberConfig, topology: Topology) -> None:
        super().__init__(tell=lambda line: self.emit("told", line=line))
        self.parts = topology.subtopologies(APP)
        self.directory = Path(config.state_dir)
        self.stores: dict[tuple[str, int], Store] = {}
        self.name = config.name

    def emit(self, event: str, **fields: Any) -> None:
        """Write an event as a line of JSON."""
        sys.stdout.write(json.dumps({"member": self.name, "event": event, **fields}) + "\n")
        sys.stdout.flush()

    def on_error(self, why: str) -> None:
        """Report an error to the driver."""
        self.emit("error", why=why)

    def observe(self, observation: Observation) -> None:
        """Report to the driver that this member leads."""
        if isinstance(observation, AnswersDecided):
            self.emit("led", at=time.time())

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Changelog positions of the state that is open here, by task."""
        return {
            TaskId(part.id, partition): sum(
                self.stores[topic, partition].position for topic in part.changelog_topics
            )
            for part in self.parts
            for partition in {p for _, p in self.stores}
            if all((topic, partition) in self.stores for topic in part.changelog_topics)
        }

    def stores_of(self, task: TaskId) -> list[Store]:
        """The stores of a task, opened when they are first needed."""
        found = []
        for topic in self.parts[task.subtopology].changelog_topics:
            name = topic.removeprefix(f"{APP}-").removesuffix("-changelog")
            key = (topic, task.partition)
            if key not in self.stores:
                self.stores[key] = Store(self.directory, name, task.partition)
            found.append(self.stores[key])
        return found

    def work(self, batch: Any, reader: ChangelogReader, producer: Any) -> dict[Any, int]:
        """Restore new tasks and count a batch; return the offsets to commit."""
        fresh, _ = self.tasks()
        if fresh:
            _restore(reader, [s for task in fresh for s in self.stores_of(task)])
        done = {}
        with self.working(fresh) as active:
            by_topic = {
                (topic, task.partition): task
                for task in active
                for topic in self.parts[task.subtopology].source_topics
            }
            for partition, records in batch.items():
                task = by_topic.get((partition.topic, partition.partition))
                if task is not None:
                    for store in self.stores_of(task):
                        store.add(records, producer)
                    done[partition] = records[-1].offset + 1
        return done


def _restore(reader: ChangelogReader, stores: Sequence[Store]) -> None:
    """Read changelogs to their ends; their topics may be new, so that some have no leader yet."""
    for _ in range(_LEADER_TRIES):
        try:
            reader.read(stores, to_the_end=True)
        except UnknownTopicOrPartitionError:
            time.sleep(_LEADER_PAUSE_S)
        else:
            return
    reader.read(stores, to_the_end=True)


def run_member(config: MemberConfig, *, stop: threading.Event) -> None:
    """Run a member until `stop` is set."""
    topology = program(ChangeKind(config.kind), config.version)
    Path(config.state_dir).mkdir(parents=True, exist_ok=True)
    app = Counting(config, topology)
    assignor = StreamsAssignor(
        topology,
        application_id=APP,
        process_id=UUID(config.process_id),
        state_dir=Path(config.state_dir) / "process",
        listener=app,
        observer=app.observe,
        rebalance_protocol="cooperative" if config.cooperative else "eager",
        level_source=GroupLevels(config.servers, APP) if config.follows else None,
        level_poll_s=1.0,
    )
    settings: dict[str, Any] = {
        "bootstrap_servers": config.servers,
        "client_id": config.name,
        "group_id": APP,
        "session_timeout_ms": config.session_timeout_ms,
        "heartbeat_interval_ms": 100,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "metrics_enabled": False,
    }
    consumer = KafkaConsumer(
        *topology.source_topics(APP), **settings, partition_assignment_strategy=[assignor]
    )
    assignor.attach(consumer)
    reader = ChangelogReader(settings)
    producer = KafkaProducer(bootstrap_servers=config.servers, acks="all", metrics_enabled=False)
    app.emit("started", pid=os.getpid())
    for batch in polled(consumer, assignor, timeout_ms=200, stop=stop):
        commit_next(consumer, app.work(batch, reader, producer))
    for closable in (consumer, reader, producer, assignor):
        closable.close()


def main() -> int:
    """Run a member until SIGTERM, or until its parent ends."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    config = read_line(MemberConfig, sys.stdin.readline())
    end_with_parent(stop)
    run_member(config, stop=stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
