"""A state directory whose formats move only when they are told to (KIP-384).

Every file is read in any known format and written in that of `persistent.metadata.version`; what
was raised and written is remembered before the first raised byte, so that nobody goes back by
accident. `probing.persisted_formats` decides; here the files are.
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
from assignor.stores.errors import StoreError, understood
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
"""As Kafka Streams calls it."""

WRITTEN_NAME: Final = "persistent-version"
_WRITTEN_MAGIC: Final = b"SRBpver1"
_WRITTEN_REMEDY: Final = (
    "restore it from a copy, or delete it after you set persistent.metadata.version to the greatest"
    " value that was ever used in this directory"
)


class StateStores:
    """The stores of one state directory.

    Args:
        directory: where; made with the first write.
        settings: what the operator set.
        now_ms: milliseconds since 1970, to remember when a version was first written.
        is_wire_raised: the wire version goes up in the same step; only for the warning.

    Raises:
        StoreError: the settings are refused: unknown, below the message format, or below what was
            written here before; the message says what, and when.

    Attributes:
        decision: which persistent version is written, and why.
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
        """The greatest version that was ever written here, and since when."""
        return self._written

    def follow(self, leader_version: int, *, now_ms: int) -> PersistedDecision:
        """Write from now on what the group's leader writes, whatever the own setting says.

        Raises:
            StoreError: the leader's version is unknown here.
        """
        self._now_ms = now_ms
        self.decision = self._decide(leader_version)
        return self.decision

    # Stores

    def read_process(self) -> ProcessRecord | None:
        """The identity of the process, or None.

        Raises:
            StoreError: the file is broken.
        """
        path = self.directory / PROCESS_NAME
        with understood(str(path), problem="names no process", remedy=PROCESS_REMEDY):
            data = read_limited(path, limit=PROCESS_LIMIT)
            return None if data is None else read_process(data, name=str(path))

    def write_process(self, record: ProcessRecord) -> None:
        """Keep the identity of the process.

        Raises:
            StoreError: the disk refused.
        """
        data = process_bytes(record, self._format(Store.PROCESS_ID))
        replace_file(self.directory / PROCESS_NAME, data)

    def read_checkpoint(self, task: TaskId) -> Checkpoint | None:
        """The checkpoint of a task, or None.

        Raises:
            StoreError: the file is broken.
        """
        path = self._checkpoint_path(task)
        with understood(str(path), problem="is no checkpoint", remedy=CHECKPOINT_REMEDY):
            data = read_limited(path, limit=CHECKPOINT_LIMIT)
            return None if data is None else read_checkpoint(data, name=str(path))

    def write_checkpoint(self, task: TaskId, checkpoint: Checkpoint) -> None:
        """Keep how far a task's state is.

        Raises:
            StoreError: the disk refused.
        """
        data = checkpoint_bytes(checkpoint, self._format(Store.CHECKPOINT))
        replace_file(self._checkpoint_path(task), data)

    def plans(self, directory: str | Path) -> PlanStore:
        """A plan store that writes snapshots in the format of this version.

        Raises:
            StoreError: the disk refused.
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
        """The format to write, remembered first where it is a step up."""
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
        with understood(str(path), problem="tells no version", remedy=_WRITTEN_REMEDY):
            body = read_sealed(path, _WRITTEN_MAGIC, limit=PROCESS_LIMIT)
            if body is None:
                return None
            version, at_ms, setting = msgpack.unpackb(body)
            return Written(
                version=whole_number(version, what="version"),
                at_ms=whole_number(at_ms, what="time", most=LATEST_MS),
                setting=whole_number(setting, what="setting"),
            )
