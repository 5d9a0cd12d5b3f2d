"""Copies of tasks on this machine: opened, counted for the leader, and removed when unused."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from assignor.embedding.errors import CopiesKept, MemberStopped
from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.layout import StoreLayout, check_settings
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.sqlite import KEPT
from assignor.embedding.state_stores.tables import rebuild_after_s
from assignor.errors import ConfigError
from assignor.logs import line_logger
from assignor.stores import StoreError
from encoding import TaskId, TopicPartition, shown

_log = line_logger(__name__)

CLEANUP_DELAY_S: Final = 600.0
"""How long files of tasks are kept that this member has not; Kafka's `state.cleanup.delay.ms`."""


class LocalState:
    """Copies of tasks, in a state directory if a store has files.

    Args:
        layout: the stores.
        state_dir: the state directory, which may be that of the assignor; None without one.
        cleanup_delay_s: how long files of tasks are kept that this member has not.
        delete_retention_ms: how long changelogs keep tombstones.

    Raises:
        ConfigError: a store has files, and there is no directory; or a value is wrong.
        StateDirectoryLocked: another process uses the directory.
        StoreError: the directory cannot be used.
        MemberStopped: a copy is kept for the operator; the message says what he does.
    """

    def __init__(
        self,
        layout: StoreLayout,
        state_dir: str | Path | None,
        cleanup_delay_s: float,
        delete_retention_ms: int,
    ) -> None:
        check_settings(
            state_dir=state_dir,
            cleanup_delay_s=cleanup_delay_s,
            delete_retention_ms=delete_retention_ms,
        )
        self._layout = layout
        self._cleanup_delay_s = cleanup_delay_s
        self._rebuild_after_s = rebuild_after_s(delete_retention_ms)
        self._idle_since_s: dict[TaskId, float] = {}
        self._idle_sums: dict[TaskId, int] = {}
        for name, store in sorted(layout.stores.items()):
            if state_dir is None and store.files(Path()):
                raise ConfigError(f"store {name!r} is kept in files; set state_dir=")
        self._directory = None if state_dir is None else LockedDirectory(state_dir)
        kept: list[MemberStopped] = []
        try:
            for task in self._directory.tasks() if self._directory is not None else ():
                if any(file.exists() for file in self._files(task)):
                    self._count(task, kept)
            CopiesKept.raise_if(kept)
        except BaseException:
            self.close()
            raise

    def check_shared(self, directory: LockedDirectory | None) -> None:
        """Check that a member has the directory of the files, if there are any.

        Raises:
            ConfigError: it has another one or none, and would get other tasks after a restart.
        """
        own = None if self._directory is None else self._directory.path
        given = None if directory is None else directory.path
        if own is not None and given != own:
            raise ConfigError(
                f"these state stores have state_dir={shown(repr(str(own)))}, and the consumer has "
                f"{shown(repr(str(given))) if given else 'none'}; give both the same"
            )

    @property
    def idle_sums(self) -> Mapping[TaskId, int]:
        """Task -> sum of changelog offsets, of copies on disk that no member here has open."""
        if self._directory is None:
            return {}
        elsewhere = self._directory.is_open_elsewhere
        found = self._idle_sums.items()
        return {task: total for task, total in found if not elsewhere(self._files(task))}

    def open(self, task: TaskId) -> TaskCopy | None:
        """Return the copy of a task, with open tables; None while another member here has it open.

        Raises:
            CopiesKept: some are kept for the operator.
            StoreError: a table cannot be used.
        """
        directory = None
        if self._directory is not None:
            directory = self._directory.open_task(task, self._files(task))
            if directory is None:
                return None
        self._forget(task)
        replicas: dict[str, Replica] = {}
        kept: list[MemberStopped] = []
        try:
            for name, store in sorted(self._layout.stores_of(task).items()):
                changelog = TopicPartition(self._layout.changelogs[name], task.partition)
                try:
                    table = store.open_table(directory, changelog)
                except MemberStopped as error:
                    kept.append(error)
                    continue
                replicas[name] = Replica(name, changelog, table, self._rebuild_after_s)
            CopiesKept.raise_if(kept)
        except BaseException:
            self.close_copy(TaskCopy(task, replicas))
            raise
        return TaskCopy(task, replicas)

    def close_copy(self, copy: TaskCopy) -> None:
        """Close a copy, so that another member here can open it."""
        copy.close()
        if self._directory is not None:
            self._directory.close_files(self._files(copy.task))

    def put_away(self, copy: TaskCopy) -> None:
        """Close a copy, and keep its files for a while."""
        offset_sum = copy.offset_sum
        self.close_copy(copy)
        if self._files(copy.task):
            self._idle_since_s[copy.task] = time.monotonic()
            self._idle_sums[copy.task] = offset_sum

    def remove_unused(self) -> None:
        """Remove files of copies that were put away long ago, and are not used by others here.

        Raises:
            StoreError: a file cannot be removed.
        """
        if self._directory is None:
            return
        long_ago_s = time.monotonic() - self._cleanup_delay_s
        for task, since_s in sorted(self._idle_since_s.items(), key=lambda item: item[1]):
            if since_s > long_ago_s:
                return
            # A member here that has used the task since then removes it later.
            self._forget(task)
            unused_s, files = self._cleanup_delay_s, self._files(task)
            if any(file.with_name(file.name + KEPT).exists() for file in files):
                continue
            if self._directory.remove_task(task, files, unused_s=unused_s):
                _log.info("the state of task %s is removed: it moved to another member", task)

    def close(self) -> None:
        """Release the directory."""
        if self._directory is not None:
            self._directory.close()

    def _count(self, task: TaskId, kept: list[MemberStopped]) -> None:
        try:
            copy = self.open(task)
        except CopiesKept as error:
            kept += error.errors
            return
        except StoreError as error:
            # Reported again when the task is assigned here; until then other members can have it.
            _log.warning("%s", error)
            return
        if copy is not None:
            self.put_away(copy)

    def _forget(self, task: TaskId) -> None:
        self._idle_since_s.pop(task, None)
        self._idle_sums.pop(task, None)

    def _files(self, task: TaskId) -> list[Path]:
        if self._directory is None:
            return []
        directory = self._directory.path / str(task)
        stores = self._layout.stores_of(task).values()
        return [file for store in stores for file in store.files(directory)]
