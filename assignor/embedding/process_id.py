"""The process id, which survives restarts, and the lock on the state directory.

A client that restarts with the same process id gets its tasks back, because the leader knows which
state it has. Two processes with the same id would count as one client, so the directory is locked
while it is in use. All consumers of a process share the lock.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

from filelock import FileLock, Timeout

from assignor.embedding.errors import StateDirectoryLocked
from assignor.stores import (
    PROCESS_NAME,
    ProcessRecord,
    StateStores,
    StoreError,
    check_links,
    read_reached,
    write_reached,
)
from encoding import TaskId
from probing.persisted_formats import PersistedSettings
from probing.topologies import Reached

_LOCK = "process.lock"
_CONSERVATIVE = PersistedSettings()
_TASK_DIR = re.compile("([0-9]{1,9})_([0-9]{1,9})")


class LockedDirectory:
    """A state directory that is locked for this process; its users each close it once.

    Attributes:
        path: the directory.
    """

    def __init__(self, path: str | Path) -> None:
        """Create the directory if it is missing, and lock it.

        Raises:
            StateDirectoryLocked: another process uses the directory.
            StoreError: the directory cannot be created or locked, or it is a dangling symbolic
                link.
        """
        check_links(Path(path).absolute())
        self.path = Path(path).resolve()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # A singleton per path and process: it counts its users, so that consumers share it.
            self._lock = FileLock(self.path / _LOCK, is_singleton=True, thread_local=False)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StateDirectoryLocked(str(self.path)) from None
        except OSError as error:
            raise StoreError(f"state directory {self.path}: {error.strerror or error}") from error
        self._closed = False

    def task_dir(self, task: object) -> Path:
        """Return the directory for a task's state, created if needed; named as in Kafka: `0_1`."""
        place = self.path / str(task)
        place.mkdir(exist_ok=True)
        return place

    def tasks(self) -> tuple[TaskId, ...]:
        """Return the tasks that have a directory here, sorted, including those of earlier runs."""
        found = (_TASK_DIR.fullmatch(place.name) for place in self.path.iterdir() if place.is_dir())
        return tuple(
            sorted(TaskId(int(match[1]), int(match[2])) for match in found if match is not None)
        )

    def close(self) -> None:
        """Release the lock; other users in this process keep theirs."""
        if not self._closed:
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
    lock = LockedDirectory(path) if (path / _LOCK).exists() else None
    try:
        yield read_reached(path)
    finally:
        if lock is not None:
            lock.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
