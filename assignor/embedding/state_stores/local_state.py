"""Copies of tasks on this machine: opened, counted for the leader, and removed when unused."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from assignor.embedding.errors import ChangelogLost, CopiesKept
from assignor.embedding.kept import KeptNote, check_none_kept, kept_notes, listed, write_note
from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.layout import StoreLayout, check_settings
from assignor.embedding.state_stores.replica import Replica
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
        CopiesKept: a copy is kept for the operator, of any task; the message says what to do.
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
        # Tasks with files here that no member has open, and had their whole state when closed.
        self._idle_whole: set[TaskId] = set()
        # Tasks that wait for another member of this process to close their files.
        self._waiting: set[TaskId] = set()
        try:
            if self._directory is not None:
                check_none_kept(self._directory.path)
                for task in self._directory.tasks():
                    if any(file.exists() for file in self._files(task)):
                        self._count(task)
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
            CopiesKept: copies in the directory are kept for the operator.
            StoreError: a table cannot be used.
        """
        directory = None
        if self._directory is not None:
            check_none_kept(self._directory.path)
            directory = self._directory.open_task(task, self._files(task))
            if directory is None:
                self._note_waiting(task)
                return None
        self._waiting.discard(task)
        self._forget(task)
        replicas: dict[str, Replica] = {}
        try:
            for name, store in sorted(self._layout.stores_of(task).items()):
                changelog = TopicPartition(self._layout.changelogs[name], task.partition)
                table = store.open_table(directory, changelog)
                replicas[name] = Replica(
                    name,
                    changelog,
                    table,
                    self._rebuild_after_s,
                    is_only_compacted=name not in self._layout.expiring,
                )
        except BaseException:
            self.close_copy(TaskCopy(task, replicas))
            raise
        return TaskCopy(task, replicas)

    def close_copy(self, copy: TaskCopy) -> None:
        """Close a copy, so that another member here can open it."""
        try:
            copy.close()
        finally:
            if self._directory is not None:
                self._directory.close_files(self._files(copy.task))

    def put_away(self, copy: TaskCopy) -> None:
        """Close a copy, and keep its files for a while."""
        offset_sum, is_whole = copy.offset_sum, copy.has_whole_task
        self.close_copy(copy)
        if self._files(copy.task):
            if is_whole:
                self._idle_whole.add(copy.task)
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
            if kept_notes(self._directory.path):
                return
            if self._directory.remove_task(task, files, unused_s=unused_s):
                _log.info("the state of task %s is removed: it moved to another member", task)

    def close(self) -> None:
        """Release the directory."""
        if self._directory is not None:
            self._directory.close()

    def keep(self, lost: ChangelogLost, copies: Iterable[TaskCopy]) -> CopiesKept:
        """Keep the copies of all tasks here that have lost a changelog; return the error for that.

        All stores of such a task are kept, also those whose changelogs have lost nothing: they fit
        together. Copies that lacked some of the state of their task are not kept.

        Args:
            lost: the changelogs.
            copies: those that this member has open.

        Raises:
            StoreError: a note cannot be written; the others are.
        """
        tasks = {copy.task for copy in copies if copy.has_whole_task} | self._idle_whole
        layout, failed = self._layout, list[StoreError]()
        for task in sorted(tasks):
            stores = layout.stores_of(task)
            if lost.topics.isdisjoint(layout.changelogs[name] for name in stores):
                continue
            topics = (t for t, part in layout.readers.items() if part == task.subtopology)
            note = KeptNote(
                why=str(lost), stores=tuple(sorted(stores)), topics=tuple(sorted(topics))
            )
            for file in self._files(task):
                if file.suffix == ".db" and file.exists():
                    try:
                        write_note(file, note)
                    except StoreError as error:
                        failed.append(error)
        if failed:
            raise failed[0] from lost
        notes = [] if self._directory is None else kept_notes(self._directory.path)
        return CopiesKept(f"{lost}; {listed(notes)}" if notes else str(lost))

    def _note_waiting(self, task: TaskId) -> None:
        if task not in self._waiting:
            self._waiting.add(task)
            _log.info(
                "task %s waits: another member of this process has its files open, or was not "
                "closed; close it",
                task,
            )

    def _count(self, task: TaskId) -> None:
        try:
            copy = self.open(task)
        except StoreError as error:
            # Reported again when the task is assigned here; until then other members can have it.
            _log.warning("%s", error)
            return
        if copy is not None:
            self.put_away(copy)

    def _forget(self, task: TaskId) -> None:
        self._idle_since_s.pop(task, None)
        self._idle_sums.pop(task, None)
        self._idle_whole.discard(task)

    def _files(self, task: TaskId) -> list[Path]:
        if self._directory is None:
            return []
        directory = self._directory.path / str(task)
        stores = self._layout.stores_of(task).values()
        return [file for store in stores for file in store.files(directory)]
