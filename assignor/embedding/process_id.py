"""The process id, which survives restarts, and the lock on the state directory.

A client that restarts with the same process id gets its tasks back, because the leader knows which
state it has. Two processes with the same id would count as one client, so the directory is locked
while it is in use. All consumers of a process share the lock.
"""

import math
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from filelock import FileLock, Timeout

from assignor.embedding.errors import StateDirectoryLocked
from assignor.stores import (
    PROCESS_NAME,
    ProcessRecord,
    StateStores,
    StoreError,
    check_links,
    check_no_link,
    read_reached,
    write_reached,
)
from encoding import TaskId, shown
from probing.persisted_formats import PersistedSettings
from probing.topologies import Reached

LOCK_NAME: Final = "process.lock"
"""File that is locked while a process uses the directory."""
_CONSERVATIVE = PersistedSettings()
_TASK_DIR = re.compile("([0-9]{1,9})_([0-9]{1,9})")


class _Files:
    """Files of one directory that users in this process have open, and when others were closed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # A user that was dropped without `close` has no files any more.
        self.users: WeakValueDictionary[Path, LockedDirectory] = WeakValueDictionary()
        self.closed_s: dict[Path, float] = {}


_files_lock: Final = threading.Lock()
_files: Final[WeakValueDictionary[Path, _Files]] = WeakValueDictionary()


class LockedDirectory:
    """A state directory that is locked for this process; its users each close it once.

    Each file of a task belongs to one user at a time.

    Attributes:
        path: the directory.
    """

    def __init__(self, path: str | Path) -> None:
        """Create the directory if it is missing, and lock it.

        Raises:
            StateDirectoryLocked: another process uses the directory.
            StoreError: the directory cannot be created or locked, it is a dangling symbolic link,
                or its lock is a link.
        """
        self.path = Path(path)
        try:
            check_links(self.path.absolute())
            self.path = self.path.resolve()
            self.path.mkdir(parents=True, exist_ok=True)
            check_no_link(self.path / LOCK_NAME)
            # A singleton per path and process: it counts its users, so that consumers share it.
            self._lock = FileLock(self.path / LOCK_NAME, is_singleton=True, thread_local=False)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StateDirectoryLocked(str(self.path)) from None
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreError(
                f"state directory {shown(str(self.path))}: it, or one of its parents, is a file; "
                "give another path, or remove the file"
            ) from error
        except (OSError, ValueError) as error:  # a ValueError: the path has a NUL
            why = getattr(error, "strerror", None) or error
            raise StoreError(f"state directory {shown(str(self.path))}: {why}") from error
        self._closed = False
        with _files_lock:
            self._files = _files.setdefault(self.path, _Files())

    def open_task(self, task: TaskId, files: Sequence[Path] = ()) -> Path | None:
        """Return the directory for a task's state, made if needed; named as in Kafka: `0_1`.

        Args:
            task: the task.
            files: of its state, which this user has until `close_files`.

        Returns:
            None: another user in this process has one of the files.

        Raises:
            StoreError: the directory cannot be made, or is a symbolic link.
        """
        place = self.path / str(task)
        with self._files.lock:
            if self._has_other_user(files):
                return None
            check_no_link(place)
            try:
                place.mkdir(exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"the directory {place} of task {task} cannot be made: "
                    f"{error.strerror or error}; remove what is there, or give this user the right"
                    " to write"
                ) from error
            self._files.users.update(dict.fromkeys(files, self))
        return place

    def close_files(self, files: Sequence[Path]) -> None:
        """Let other users have files; without effect on those that this user does not have."""
        with self._files.lock:
            for file in files:
                if self._files.users.get(file) is self:
                    del self._files.users[file]
                    self._files.closed_s[file] = time.monotonic()

    def is_open_elsewhere(self, files: Sequence[Path]) -> bool:
        """Return whether another user in this process has one of the files."""
        with self._files.lock:
            return self._has_other_user(files)

    def _has_other_user(self, files: Sequence[Path]) -> bool:
        return any(self._files.users.get(file, self) is not self for file in files)

    def remove_task(self, task: TaskId, files: Sequence[Path], *, unused_s: float) -> bool:
        """Remove files of a task, and its directory if it is empty then.

        Args:
            task: the task.
            files: to remove.
            unused_s: for how long no user may have had them.

        Returns:
            Whether they are removed: no user has one of them, nor has had it in that time.

        Raises:
            StoreError: a file cannot be removed.
        """
        users, closed_s = self._files.users, self._files.closed_s
        with self._files.lock:
            last_s = max((closed_s[file] for file in files if file in closed_s), default=-math.inf)
            is_used = any(file in users for file in files)
            if is_used or time.monotonic() - last_s < unused_s:
                return False
            for file in files:
                try:
                    file.unlink(missing_ok=True)
                except OSError as error:
                    raise StoreError(
                        f"state file {file} cannot be removed: {error.strerror or error}; remove it"
                    ) from error
            with suppress(OSError):  # it has more files, or is gone
                (self.path / str(task)).rmdir()
            for file in files:
                closed_s.pop(file, None)
        return True

    def tasks(self) -> tuple[TaskId, ...]:
        """Return the tasks that have a directory here, sorted, including those of earlier runs."""
        found = (_TASK_DIR.fullmatch(place.name) for place in self.path.iterdir() if place.is_dir())
        return tuple(
            sorted(TaskId(int(match[1]), int(match[2])) for match in found if match is not None)
        )

    def close(self) -> None:
        """Release the lock; other users in this process keep theirs."""
        if not self._closed:
            with self._files.lock:
                own = [file for file, user in self._files.users.items() if user is self]
            self.close_files(own)
            self._closed = True
            self._lock.release()


class ProcessDirectory(LockedDirectory):
    """A locked state directory with the process id; close it after the process's last consumer.

    Attributes:
        path: the directory.
        stores: its files, in the configured formats (KIP-384): process id, checkpoints and plans.
    """

    def __init__(self, path: str | Path, persisted: PersistedSettings = _CONSERVATIVE) -> None:
        """Lock the directory; read the process id, or create one.

        Raises:
            StateDirectoryLocked: another process uses the directory.
            StoreError: the directory cannot be read or written, its content is damaged, it is a
                dangling symbolic link, or the settings are below a version that was written in it
                before. The lock is released.
        """
        super().__init__(path)
        self._writing = threading.Lock()
        self._followed: int | None = None
        try:
            self.stores = StateStores(self.path, persisted, now_ms=_now_ms())
            self._record = self._read()
            self._reached: Mapping[bytes, Reached] = read_reached(self.path)
        except BaseException:
            self.close()
            raise

    @property
    def process_id(self) -> UUID:
        """The process id."""
        return self._record.process_id

    @property
    def remembered_version(self) -> int | None:
        """The assignment version that the group last agreed on; None before the first time."""
        return self._record.remembered_version

    def remember(self, version: int) -> None:
        """Write the assignment version that the group agreed on.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._writing:
            if version != self.remembered_version and not self._closed:
                record = replace(self._record, remembered_version=version)
                self.stores.write_process(record)
                self._record = record

    @property
    def reached(self) -> Mapping[bytes, Reached]:
        """Versions of the topology that forms of subtopologies have reached; see `OwnTopology`."""
        return self._reached

    def remember_reached(self, memory: Mapping[bytes, Reached]) -> None:
        """Write the reached versions, if they have changed.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._writing:
            if memory != self._reached and not self._closed:
                write_reached(self.path, memory)
                self._reached = dict(memory)

    def follow(self, persistent_version: int) -> None:
        """Write from now on in the formats of the leader's persistent version (KIP-384).

        Raises:
            StoreError: this release does not know the version, or a file cannot be written.
        """
        with self._writing:
            if persistent_version != self._followed and not self._closed:
                self.stores.follow(persistent_version, now_ms=_now_ms())
                self.stores.write_process(self._record)
                self._followed = persistent_version

    def _read(self) -> ProcessRecord:
        found = self.stores.read_process()
        if found is None:
            found = ProcessRecord(process_id=uuid4(), made_at_ms=_now_ms())
            self.stores.write_process(found)
        return found


def is_state_directory(path: Path) -> bool:
    """Return whether a directory has a process id, without writing to it."""
    return (path / PROCESS_NAME).is_file()


@contextmanager
def unchanged_memory(path: Path) -> Iterator[Mapping[bytes, Reached]]:
    """Yield the reached versions in a state directory that no process uses; nothing is written.

    Raises:
        StateDirectoryLocked: another process uses the directory.
        StoreError: the directory cannot be read, or the memory is damaged.
    """
    # A process that uses the directory has created the lock file.
    lock = LockedDirectory(path) if (path / LOCK_NAME).exists() else None
    try:
        yield read_reached(path)
    finally:
        if lock is not None:
            lock.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
