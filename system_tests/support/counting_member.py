"""A member of a counting application that kills itself at a named step of its work.

`python -m system_tests.support.counting_member` reads a `CountingConfig` from its standard input.
It counts words, and their first letters, in two stores on disk, and writes each word to a topic.
The parts are those of an application; each of their steps is reported to `Steps` before the next.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assignor import JSON, TEXT, SqliteStore, TaskState, TaskStores, Topology
from assignor.adapters.application import signals_as
from assignor.adapters.kafka_python import KafkaChangelogs, run_tasks, streams_consumer
from assignor.embedding import NewRecord
from assignor.embedding.state_stores.records import COMMIT_KEY, OWNER_KEY, Writes
from assignor.embedding.state_stores.tables import NO_CHANGES, Progress, StateTable
from encoding import TaskId, TopicPartition
from system_tests.json_lines import read_line
from system_tests.live.members.process import ask_kernel_to_end_with_parent

GROUP: Final = "counting"
WORDS: Final = "words"
OUTPUT: Final = "counted"
LETTERS: Final = "by-letter"
COUNTS: Final = "by-word"
TOPOLOGY: Final = (
    Topology()
    .add_source("read", topics=[WORDS])
    .add_processor("count", parents=["read"])
    .add_state_store(LETTERS, processors=["count"])
    .add_state_store(COUNTS, processors=["count"])
)
STEPS: Final = (
    "after poll",
    "after the first put",
    "before flush",
    "after flush",
    "before commit record",
    "commit record in one changelog of two",
    "after commit record",
    "one write sent",
    "after writes",
    "after checkpoint of by-letter",
    "after checkpoint of by-word",
    "before commit",
    "after commit",
    "before owner record",
    "owner record in one changelog of two",
    "after owner record",
    "before restoring by-letter",
    "after restoring by-letter",
    "after restoring by-word",
    "before following by-letter",
    "after following by-letter",
    "after following by-word",
)
"""All steps, in the order of a batch of input, a takeover and a standby."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingConfig:
    """The configuration of a member process: one line of JSON on its standard input.

    Attributes:
        bootstrap_servers: of the broker.
        state_dir: the directory of its state.
        step: one of `STEPS`, at which it kills itself; None: it runs until SIGTERM.
        session_timeout_ms: after which the coordinator notices the kill.
    """

    bootstrap_servers: str
    state_dir: str
    step: str | None = None
    session_timeout_ms: int = 2500


class Steps:
    """Kills this process at one step.

    Args:
        step: its name; None: never.

    Attributes:
        step: as given.
    """

    def __init__(self, step: str | None) -> None:
        self.step = step

    def __call__(self, name: str) -> None:
        """End the process, as by `kill -9`, if this is the step."""
        if name == self.step:
            os.write(sys.stdout.fileno(), f"killed {name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)


class _Changelogs(KafkaChangelogs):
    """Changelogs whose writes are steps."""

    def __init__(self, reached: Steps, servers: str) -> None:
        super().__init__(bootstrap_servers=servers)
        self._reached = reached

    def flush(self) -> None:
        if not self._producer.unflushed:
            return super().flush()
        self._reached("before flush")
        super().flush()
        return self._reached("after flush")

    def append(self, records: Sequence[NewRecord]) -> Sequence[int]:
        kinds = {COMMIT_KEY: "commit record", OWNER_KEY: "owner record"}
        kind = kinds.get(records[0].key, "writes") if records else "nothing"
        self._reached(f"before {kind}")
        if kind == "writes":
            self._first(records, "one write sent")
        else:
            self._first(records, f"{kind} in one changelog of two")
        offsets = super().append(records)
        self._reached(f"after {kind}")
        return offsets

    def _first(self, records: Sequence[NewRecord], step: str) -> None:
        """Where the process ends at this step: write the first record, and end."""
        if self._reached.step == step:
            super().append(records[:1])
            self._reached(step)


class _Table:
    """A table whose writes are steps."""

    def __init__(
        self, table: StateTable, store: str, role: Callable[[], str], reached: Steps
    ) -> None:
        self._table, self._store, self._role, self._reached = table, store, role, reached

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def apply(
        self, writes: Writes, progress: Progress, unowned: Mapping[bytes, bool] = NO_CHANGES
    ) -> None:
        """Store writes and progress."""
        step = f"{self._role()} {self._store}" if writes else "nothing"
        self._reached(f"before {step}")
        self._table.apply(writes, progress, unowned)
        self._reached(f"after {step}")


class Member:
    """The application, with a process of its own.

    Args:
        config: of the process.
    """

    def __init__(self, config: CountingConfig) -> None:
        self._reached = Steps(config.step)
        self._letters, self._counts = self._store(LETTERS), self._store(COUNTS)
        self._stores = TaskStores(
            TOPOLOGY,
            [self._letters, self._counts],
            application_id=GROUP,
            access=_Changelogs(self._reached, config.bootstrap_servers),
            state_dir=config.state_dir,
            tell=lambda sentence: print(sentence, flush=True),  # noqa: T201 read by the test
        )
        self._consumer = streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=config.bootstrap_servers,
            listener=self._stores,
            state_dir=config.state_dir,
            num_standby_replicas=1,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.session_timeout_ms // 5,
            max_poll_records=20,
        )
        poll, commit = self._consumer.poll, self._consumer.commit

        def stepped_poll(*arguments: Any, **options: Any) -> Any:
            batch = poll(*arguments, **options)
            if batch:
                self._reached("after poll")
            return batch

        def stepped_commit(*arguments: Any, **options: Any) -> None:
            self._reached("before commit")
            commit(*arguments, **options)
            self._reached("after commit")

        consumer: Any = self._consumer
        consumer.poll, consumer.commit = stepped_poll, stepped_commit

    def run(self) -> None:
        """Count until SIGTERM."""
        ended = threading.Event()
        with signals_as(ended.set):
            try:
                run_tasks(self._consumer, self._stores, self._count, timeout_ms=200, stop=ended)
            finally:
                self._consumer.close()
                self._stores.close()

    def _count(self, record: Any, state: TaskState) -> None:
        word = record.key.decode()
        state.send(OUTPUT, key=record.key)
        counts, letters = state[self._counts], state[self._letters]
        counts.put(word, counts.get(word, 0) + 1)
        self._reached("after the first put")
        letters.put(word[0], letters.get(word[0], 0) + 1)

    def _store(self, name: str) -> SqliteStore[str, Any]:
        member = self

        class Stepped(SqliteStore[str, Any]):
            def open_table(self, directory: Path | None, changelog: TopicPartition) -> StateTable:
                table = SqliteStore.open_table(self, directory, changelog)
                task = TaskId(0, changelog.partition)
                return _Table(table, name, lambda: member.role(task), member._reached)

        return Stepped(name, key=TEXT, value=JSON)

    def role(self, task: TaskId) -> str:
        """Return what a write to a copy of this task is for."""
        if task not in self._stores.active:
            return "following"
        return "restoring" if task in self._stores.restoring_tasks() else "checkpoint of"


def main() -> int:
    """Run the member that standard input describes."""
    ask_kernel_to_end_with_parent()
    Member(read_line(CountingConfig, sys.stdin.readline())).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
