"""The files of a state directory, in the formats of `persistent.metadata.version` (KIP-384).

Every file is read in any known format and written in the format of the configured version. The
greatest version ever written is recorded before the first file in a new format, which prevents an
accidental downgrade. `probing.persisted_formats` decides the version; this module does the I/O.
"""

from pathlib import Path
from typing import Final

import msgpack

from assignor.stores.checkpoints import (
    CHECKPOINT_LIMIT,
    CHECKPOINT_NAME,
    CHECKPOINT_REMEDY,
    Checkpoint,
    checkpoint_bytes,
    read_checkpoint,
)
from assignor.stores.errors import StoreError, store_errors
from assignor.stores.files import read_sealed, write_sealed
from assignor.stores.plans import PlanStore
from assignor.stores.process_file import (
    PROCESS_LIMIT,
    PROCESS_REMEDY,
    ProcessRecord,
    process_bytes,
    read_process,
)
from assignor.stores.reading import LATEST_MS, read_limited, whole_number
from assignor.stores.replacing import replace_file
from encoding import TaskId
from probing.persisted_formats import (
    PersistedDecision,
    PersistedNumbers,
    PersistedSettings,
    Store,
    Written,
    decide_persistent_version,
    format_to_write,
)

PROCESS_NAME: Final = "kafka-streams-process-metadata"
"""File name of the process id, as in Kafka Streams."""

WRITTEN_NAME: Final = "persistent-version"
_WRITTEN_MAGIC: Final = b"SRBpver1"
_WRITTEN_REMEDY: Final = (
    "restore it from a copy, or delete it after you set persistent.metadata.version to the greatest"
    " value that was ever used in this directory"
)


class StateStores:
    """The files of one state directory.

    Args:
        directory: path of the directory; the first write creates it.
        settings: the operator's settings.
        now_ms: milliseconds since 1970, recorded with a version that is written first.
        is_wire_raised: whether the wire version rises in the same step; only affects the warning.

    Raises:
        StoreError: the settings are rejected: unknown, below the message format, or below a version
            that was written here before; the message names the version and when it was written.

    Attributes:
        decision: the persistent version to write, and why.
    """

    def __init__(
        self,
        directory: str | Path,
        settings: PersistedSettings,
        *,
        now_ms: int,
        is_wire_raised: bool = False,
    ) -> None:
        self.directory = Path(directory)
        self._settings = settings
        self._written = self._read_written()
        self._raised_with_wire = is_wire_raised
        self.decision = self._decide(None)
        self._now_ms = now_ms

    @property
    def version(self) -> int:
        """The persistent version that is written."""
        return self.decision.version or 1

    @property
    def written(self) -> Written | None:
        """The greatest version that was ever written here, and when it was first written."""
        return self._written

    def follow(self, leader_version: int, *, now_ms: int) -> PersistedDecision:
        """Use the leader's version from now on, instead of the own setting; return the decision.

        Raises:
            StoreError: this release does not know the leader's version.
        """
        self._now_ms = now_ms
        self.decision = self._decide(leader_version)
        return self.decision

    # Stores

    def read_process(self) -> ProcessRecord | None:
        """Return the identity of the process; None if the file does not exist.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.directory / PROCESS_NAME
        with store_errors(str(path), problem="has no valid process id", remedy=PROCESS_REMEDY):
            data = read_limited(path, limit=PROCESS_LIMIT)
            return None if data is None else read_process(data, name=str(path))

    def write_process(self, record: ProcessRecord) -> None:
        """Write the identity of the process.

        Raises:
            StoreError: the file cannot be written.
        """
        data = process_bytes(record, self._format(Store.PROCESS_ID))
        replace_file(self.directory / PROCESS_NAME, data)

    def read_checkpoint(self, task: TaskId) -> Checkpoint | None:
        """Return the checkpoint of a task; None if the file does not exist.

        Raises:
            StoreError: the file is damaged.
        """
        path = self._checkpoint_path(task)
        with store_errors(str(path), problem="is not a valid checkpoint", remedy=CHECKPOINT_REMEDY):
            data = read_limited(path, limit=CHECKPOINT_LIMIT)
            return None if data is None else read_checkpoint(data, name=str(path))

    def write_checkpoint(self, task: TaskId, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a task.

        Raises:
            StoreError: the file cannot be written.
        """
        data = checkpoint_bytes(checkpoint, self._format(Store.CHECKPOINT))
        replace_file(self._checkpoint_path(task), data)

    def plans(self, directory: str | Path) -> PlanStore:
        """Return a plan store that writes snapshots in the format of this version.

        Raises:
            StoreError: the version cannot be recorded.
        """
        self._format(Store.PLAN)
        return PlanStore(directory, persistent_version=self.version)

    # Steps

    def _checkpoint_path(self, task: TaskId) -> Path:
        return self.directory / f"{task.subtopology}_{task.partition}" / CHECKPOINT_NAME

    def _decide(self, leader_version: int | None) -> PersistedDecision:
        decision = decide_persistent_version(
            PersistedNumbers(
                settings=self._settings,
                written=self._written,
                leader_version=leader_version,
                is_wire_raised=self._raised_with_wire,
            )
        )
        if decision.is_refused:
            raise StoreError(f"{self.directory}: {decision.why}")
        return decision

    def _format(self, store: Store) -> int:
        """Return the format to write, after recording the version if it is higher than before."""
        before = self._written or Written(version=0, at_ms=self._now_ms, setting=0)
        setting = max(before.setting or 0, self._settings.version)
        if before.version < self.version or before.setting != setting:
            is_new = before.version < self.version
            at_ms = self._now_ms if is_new else before.at_ms
            found = Written(version=max(before.version, self.version), at_ms=at_ms, setting=setting)
            body: bytes = msgpack.packb([found.version, found.at_ms, found.setting])
            write_sealed(self.directory / WRITTEN_NAME, _WRITTEN_MAGIC, body)
            self._written = found
        return format_to_write(store, self.version)

    def _read_written(self) -> Written | None:
        path = self.directory / WRITTEN_NAME
        with store_errors(str(path), problem="has no valid version", remedy=_WRITTEN_REMEDY):
            body = read_sealed(path, _WRITTEN_MAGIC, limit=PROCESS_LIMIT)
            if body is None:
                return None
            version, at_ms, setting = msgpack.unpackb(body)
            return Written(
                version=whole_number(version, what="version"),
                at_ms=whole_number(at_ms, what="time", most=LATEST_MS),
                setting=whole_number(setting, what="setting"),
            )
