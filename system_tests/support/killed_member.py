"""A member that counts words, and ends itself with SIGKILL at a step that is given by its number.

`python -m system_tests.support.killed_member SERVERS STATE_DIR STEP` ends when the input is counted
that exists at its start, if it gets so far; step 0 never comes. It prints the name of each step.

It is a static member, so that the next process gets its tasks at once.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition

from assignor import JSON, TEXT, SqliteStore, TaskState, TaskStores, Topology
from assignor.adapters.kafka_python import KafkaChangelogs, StreamsAssignor, commit_next, polled
from assignor.embedding import NewRecord
from assignor.embedding.state_stores.records import Writes
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import Progress, StateTable
from encoding import TopicPartition as Partition

GROUP: Final = "killed"
WORDS: Final = "words"
TOPOLOGY: Final = (
    Topology()
    .add_source("read", topics=[WORDS])
    .add_processor("count", parents=["read"])
    .add_state_store("by-letter", processors=["count"])
    .add_state_store("by-word", processors=["count"])
)


class Steps:
    """Counts steps; the process is killed at one of them."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._taken = 0

    def __call__(self, name: str) -> None:
        """Take a step."""
        self._taken += 1
        sys.stdout.write(f"{self._taken} {name}\n")
        if self._taken == self._last:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)


class _Changelogs(KafkaChangelogs):
    """Changelogs whose writes are steps; a kill may come between two records of one write."""

    def __init__(self, step: Steps, servers: str) -> None:
        super().__init__(bootstrap_servers=servers)
        self._step = step

    def append(self, records: Sequence[NewRecord]) -> Sequence[int]:
        if not records:
            return []
        self._step("before produce")
        offsets = [*super().append(records[:1])]
        if len(records) > 1:
            self._step("between two produced records")
            offsets += super().append(records[1:])
        self._step("after produce")
        return offsets

    def flush(self) -> None:
        self._step("before outputs")
        super().flush()


class _Table(SqliteTable):
    """A file whose writes are steps."""

    def __init__(self, path: Path, changelog: Partition, step: Steps) -> None:
        super().__init__(path, changelog)
        self._step = step

    def apply(self, writes: Writes, progress: Progress) -> None:
        self._step("before the transaction of a file")
        super().apply(writes, progress)
        self._step("after the transaction of a file")

    def _write_progress(self, connection: Connection, progress: Progress) -> None:
        self._step("in the transaction of a file")
        super()._write_progress(connection, progress)


class _Store(SqliteStore[str, int]):
    step: Steps

    def open_table(self, directory: Path | None, changelog: Partition) -> StateTable:
        return _Table(self.files(directory or Path())[0], changelog, self.step)


def main() -> int:
    """Count words until the input is counted, or until the step."""
    servers, state_dir, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    step = _Store.step = Steps(last)
    words = _Store("by-word", key=TEXT, value=JSON)
    letters = _Store("by-letter", key=TEXT, value=JSON)

    def count(record: Any, state: TaskState) -> None:
        step("before a record")
        word = record.value.decode()
        state[words].put(word, state[words].get(word, 0) + 1)
        state[letters].put(word[0], state[letters].get(word[0], 0) + 1)
        state.send("out", key=word.encode())

    stores = TaskStores(
        TOPOLOGY,
        [words, letters],
        application_id=GROUP,
        access=_Changelogs(step, servers),
        state_dir=state_dir,
    )
    assignor = StreamsAssignor(TOPOLOGY, application_id=GROUP, listener=stores, state_dir=state_dir)
    consumer = KafkaConsumer(
        WORDS,
        bootstrap_servers=servers,
        group_id=GROUP,
        group_instance_id="only",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=60_000,
        max_poll_records=8,
        partition_assignment_strategy=[assignor],
    )
    assignor.attach(consumer)
    partitions = [TopicPartition(WORDS, n) for n in sorted(consumer.partitions_for_topic(WORDS))]
    ends = consumer.end_offsets(partitions)
    done = {partition: consumer.committed(partition) or 0 for partition in partitions}
    for batch in polled(consumer, assignor, timeout_ms=200):
        if batch:
            step("after read")
        offsets = stores.process(batch, count)
        if offsets:
            step("before commit")
            commit_next(consumer, offsets)
            step("after commit")
        done |= offsets
        if not stores.waiting and stores.active and all(done[p] >= ends[p] for p in partitions):
            break
    consumer.close()
    stores.close()
    assignor.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
