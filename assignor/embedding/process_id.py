"""The identity of a process, which outlives restarts, and the lock on its state directory.

A client that comes back with its process id gets its tasks back, since the leader knows where state
lies. Two processes with one id would be taken for one client, so the directory is locked for as
long as it is used. All consumers of one process share the claim.
"""

import json
import re
import threading
from pathlib import Path
from uuid import UUID, uuid4

from filelock import FileLock, Timeout

from assignor.embedding.errors import StateDirectoryLocked
from assignor.stores import StoreError, read_sealed, write_sealed
from encoding import TaskId

_FILE = "process"
_LOCK = "process.lock"
_MAGIC = b"SRPROC01"
_LIMIT = 4096
_FORMAT = 1
_TASK_DIR = re.compile(r"(\d{1,9})_(\d{1,9})")


class ProcessDirectory:
    """A claimed state directory; close it when the process's last consumer is closed.

    Attributes:
        path: the directory.
        process_id: the same as long as the directory exists.
        remembered_version: the assignment version last agreed, or None; a restarted member that
            writes it needs no rebalance for the version.
    """

    def __init__(self, path: str | Path) -> None:
        """Lock the directory and read the identity, or make one.

        Raises:
            StateDirectoryLocked: another process is in it.
            StoreError: it cannot be read or written, or its content is broken.
        """
        self.path = Path(path).resolve()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # One lock object per path and process: it counts, so that consumers can share it.
            self._lock = FileLock(self.path / _LOCK, is_singleton=True, thread_local=False)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StateDirectoryLocked(str(self.path)) from None
        except OSError as error:
            raise StoreError(f"state directory {self.path}: {error.strerror or error}") from error
        self._closed = False
        self._writing = threading.Lock()
        try:
            self.process_id, self.remembered_version = self._read()
        except StoreError:
            self.close()
            raise

    def remember(self, version: int) -> None:
        """Keep the assignment version that the group agreed on.

        Raises:
            StoreError: the disk refused.
        """
        with self._writing:
            if version != self.remembered_version and not self._closed:
                self._write(self.process_id, version)
                self.remembered_version = version

    def task_dir(self, task: object) -> Path:
        """The directory for a task's state (made if need be), as Kafka Streams names it: `0_1`."""
        place = self.path / str(task)
        place.mkdir(exist_ok=True)
        return place

    def tasks(self) -> tuple[TaskId, ...]:
        """Tasks that have a directory here, from this life or an earlier one, sorted."""
        found = (_TASK_DIR.fullmatch(place.name) for place in self.path.iterdir() if place.is_dir())
        return tuple(sorted(TaskId(int(one[1]), int(one[2])) for one in found if one is not None))

    def close(self) -> None:
        """Give the directory free, unless other consumers of this process are in it."""
        if not self._closed:
            self._closed = True
            self._lock.release()

    def _read(self) -> tuple[UUID, int | None]:
        place = self.path / _FILE
        body = read_sealed(place, _MAGIC, limit=_LIMIT)
        if body is None:
            made = uuid4()
            self._write(made, None)
            return made, None
        try:
            said = json.loads(body)
            version = said["remembered_version"]
            return UUID(said["process_id"]), None if version is None else int(version)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{place} names no process ({error}); delete it to start as a new process"
            ) from error

    def _write(self, process_id: UUID, version: int | None) -> None:
        said = {"format": _FORMAT, "process_id": str(process_id), "remembered_version": version}
        write_sealed(self.path / _FILE, _MAGIC, json.dumps(said).encode())
