"""Copies of tasks on this machine: opened, counted for the leader, and removed when unused."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.layout import StoreLayout
from assignor.embedding.state_stores.replica import Replica
from assignor.errors import ConfigError
from assignor.logs import line_logger
from assignor.stores import StoreError
from encoding import TaskId, TopicPartition

_log = line_logger(__name__)

CLEANUP_DELAY_S: Final = 600.0
"""How long files of tasks are kept that this member has not; Kafka's `state.cleanup.delay.ms`."""


class LocalState:
    """Copies of tasks, in a state directory if a store has files.

    Args:
        layout: the stores.
        path: the state directory, which may be that of the assignor; None without one.
        cleanup_delay_s: how long files of tasks are kept that this member has not.

    Attributes:
        idle_sums: task -> sum of changelog offsets, of copies that are on disk and not open.

    Raises:
        ConfigError: a store has files, and there is no directory.
        StateDirectoryLocked: another process uses the directory.
        StoreError: the directory cannot be used.
    """

    def __init__(self, layout: StoreLayout, path: Path | None, cleanup_delay_s: float) -> None:
        self._layout = layout
        self._cleanup_delay_s = cleanup_delay_s
        self._idle_since_s: dict[TaskId, float] = {}
        self.idle_sums: Mapping[TaskId, int] = {}
        for name, store in sorted(layout.stores.items()):
            if path is None and store.files(Path()):
                raise ConfigError(f"store {name!r} is kept in files; set state_dir=")
        self._directory = None if path is None else LockedDirectory(path)
        for task in self._directory.tasks() if self._directory is not None else ():
            if any(file.exists() for file in self._files(task)):
                self._count(task)

    def open(self, task: TaskId) -> TaskCopy:
        """Return the copy of a task, with open tables.

        Raises:
            StoreError: a table cannot be used.
        """
        self._idle_since_s.pop(task, None)
        self.idle_sums = {other: n for other, n in self.idle_sums.items() if other != task}
        directory = None if self._directory is None else self._directory.task_dir(task)
        replicas: dict[str, Replica] = {}
        try:
            for name, store in self._layout.stores_of(task).items():
                changelog = TopicPartition(self._layout.changelogs[name], task.partition)
                table = store.open_table(directory, changelog)
                replicas[name] = Replica(name, changelog, table)
        except BaseException:
            TaskCopy(task, replicas).close()
            raise
        return TaskCopy(task, replicas)

    def put_away(self, copy: TaskCopy) -> None:
        """Close a copy, and keep its files for a while."""
        offset_sum = copy.offset_sum
        copy.close()
        if self._files(copy.task):
            self._idle_since_s[copy.task] = time.monotonic()
            self.idle_sums = {**self.idle_sums, copy.task: offset_sum}

    def remove_unused(self) -> None:
        """Remove files of copies that were put away long ago."""
        long_ago_s = time.monotonic() - self._cleanup_delay_s
        for task, since_s in sorted(self._idle_since_s.items(), key=lambda item: item[1]):
            if since_s > long_ago_s:
                return
            del self._idle_since_s[task]
            self.idle_sums = {other: n for other, n in self.idle_sums.items() if other != task}
            _log.info("the state of task %s is removed: it moved to another member", task)
            for file in self._files(task):
                file.unlink(missing_ok=True)
                with suppress(OSError):  # it has more files
                    file.parent.rmdir()

    def close(self) -> None:
        """Release the directory."""
        if self._directory is not None:
            self._directory.close()

    def _count(self, task: TaskId) -> None:
        try:
            copy = self.open(task)
        except StoreError as error:
            # Reported again when the task is assigned here; until then other members can have it.
            _log.warning("%s", error)
            return
        self.put_away(copy)

    def _files(self, task: TaskId) -> list[Path]:
        if self._directory is None:
            return []
        directory = self._directory.path / str(task)
        stores = self._layout.stores_of(task).values()
        return [file for store in stores for file in store.files(directory)]
