"""The identity of a process, which outlives restarts, and the lock on its state directory.

A client that comes back with its process id gets its tasks back, since the leader knows where state
lies. Two processes with one id would be taken for one client, so the directory is locked for as
long as it is used. All consumers of one process share the claim.
"""

import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

from filelock import FileLock, Timeout

from assignor.embedding.errors import StateDirectoryLocked
from assignor.stores import ProcessRecord, StateStores, StoreError, check_links
from encoding import TaskId
from probing.persisted_formats import PersistedSettings

_LOCK = "process.lock"
_CONSERVATIVE = PersistedSettings()
_TASK_DIR = re.compile("([0-9]{1,9})_([0-9]{1,9})")


class ProcessDirectory:
    """A claimed state directory; close it when the process's last consumer is closed.

    Attributes:
        path: the directory.
        stores: what is persisted here, in the formats that are set (KIP-384): checkpoints and the
            routing view besides the identity.
    """

    def __init__(self, path: str | Path, persisted: PersistedSettings = _CONSERVATIVE) -> None:
        """Lock the directory and read the identity, or make one.

        Raises:
            StateDirectoryLocked: another process is in it.
            StoreError: it cannot be read or written, its content is broken, it is a symbolic link
                that leads nowhere, or the settings are below what was written in it before. The
                lock is released again.
        """
        check_links(Path(path).absolute())
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
        self._followed: int | None = None
        try:
            self.stores = StateStores(self.path, persisted, now_ms=_now_ms())
            self._record = self._read()
        except BaseException:
            self.close()
            raise

    @property
    def process_id(self) -> UUID:
        """Who the process is."""
        return self._record.process_id

    @property
    def remembered_version(self) -> int | None:
        """The assignment version last agreed."""
        return self._record.remembered_version

    def remember(self, version: int) -> None:
        """Keep the assignment version that the group agreed on.

        Raises:
            StoreError: the disk refused.
        """
        with self._writing:
            if version != self.remembered_version and not self._closed:
                record = replace(self._record, remembered_version=version)
                self.stores.write_process(record)
                self._record = record

    def follow(self, persistent_version: int) -> None:
        """Write the formats of the version that the group's leader finalized (KIP-384).

        Raises:
            StoreError: this release does not know it, or the disk refused.
        """
        with self._writing:
            if persistent_version != self._followed and not self._closed:
                self.stores.follow(persistent_version, now_ms=_now_ms())
                self.stores.write_process(self._record)
                self._followed = persistent_version

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

    def _read(self) -> ProcessRecord:
        found = self.stores.read_process()
        if found is None:
            found = ProcessRecord(process_id=uuid4(), made_at_ms=_now_ms())
            self.stores.write_process(found)
        return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
