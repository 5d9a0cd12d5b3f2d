"""Promises for any bytes of a persisted file: its reader returns a value or raises `StoreError`.

The first byte of an input selects the reader, the rest is the file. Mutations nearly always break a
file's checksum. So each reader of a file with a checksum has a second target that gets the body
only and adds a valid checksum.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID

from assignor.config import AssignmentConfig
from assignor.levels.log import FeatureLog, LogFormat, Note, format_log
from assignor.placement import ClientInput, GroupState, group_state, sticky
from assignor.stores import (
    Checkpoint,
    FolderDisk,
    PlanStore,
    ProcessRecord,
    StoreError,
    plan_for,
    read_snapshot,
    seal,
)
from assignor.stores.checkpoints import checkpoint_bytes, read_checkpoint
from assignor.stores.offload import why_not
from assignor.stores.process_file import process_bytes, read_process
from encoding import TaskId, TopicPartition
from probing.features import PERSISTENT_METADATA, TASK_PLACEMENT, LevelRange

__all__ = ["check_store_file", "store_file_seeds"]

GROUP = "g"
ID = UUID(int=42)
LEVELS = {PERSISTENT_METADATA: 2}
RECORDS = f"{0:020}.records"
SNAPSHOT = f"{1:020}.snapshot"


class MemoryDisk:
    """A folder in memory, with the interface that `FeatureLog` needs."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def names(self) -> list[str]:
        """Names of all files, sorted."""
        return sorted(self.files)

    def read(self, name: str, limit: int) -> bytes:
        """All bytes of a file."""
        if len(self.files[name]) > limit:
            raise StoreError(f"{name} is too large")
        return self.files[name]

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file."""
        self.files[name] = data

    def append(self, name: str, data: bytes) -> None:
        """Append to a file."""
        self.files[name] = self.files.get(name, b"") + data

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.files.pop(name, None)


def _group() -> GroupState:
    tasks = [TaskId(0, partition) for partition in range(4)]
    owners = {"a": tasks[:3], "b": tasks[3:]}
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(process_id=name, active_tasks=frozenset(own), lags=dict.fromkeys(own, -1))
            for name, own in owners.items()
        ],
        config=AssignmentConfig(num_standby_replicas=1),
        end_offset_sums=dict.fromkeys(tasks, 1_000_000),
    )


def _log_files() -> dict[str, bytes]:
    disk = MemoryDisk()
    format_log(disk, LogFormat(log_id="a1", levels=LEVELS, at_ms=5))
    log = FeatureLog(disk)
    for number in range(3):
        log.register(f"m{number}", {TASK_PLACEMENT: LevelRange(min=1, max=1 + number)})
    files = dict(disk.files)
    log.change({TASK_PLACEMENT: 2}, Note(at_ms=5, who="ada", why="try it"))
    newest = max(name for name in disk.files if name.endswith(".snapshot"))
    return {**files, SNAPSHOT: disk.files[newest]}


_STATE = _group()
_LOG = _log_files()
_FOLDER = tempfile.TemporaryDirectory(prefix="store-files-")  # removed when the process ends
_PLANS = PlanStore(_FOLDER.name, persistent_version=2)


def _snapshot(data: bytes) -> None:
    snapshot = read_snapshot(data, name="state.bin")
    plan_for(snapshot, sticky(snapshot.state))


def _plan(data: bytes) -> None:
    path = _PLANS.plan_path(GROUP)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    plan = _PLANS.read_plan(GROUP)
    if plan is not None:
        why_not(_STATE, plan)


def _log(name: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        disk = MemoryDisk()
        disk.files = {key: _LOG[key] for key in ("format.bin", RECORDS)} | {name: data}
        before = dict(disk.files)
        try:
            log = FeatureLog(disk)
        except StoreError:
            if disk.files != before:
                raise AssertionError("a log that is refused was changed") from None
            raise
        log.register("m9", {TASK_PLACEMENT: LevelRange(min=1, max=2)})
        if FeatureLog(disk, is_reader=True).state != log.state:
            raise AssertionError("a log that was opened is not read again")

    return read


def _sealed(read: Callable[[bytes], object], magic: bytes) -> Callable[[bytes], object]:
    return lambda body: read(seal(magic, body))


_RAW: dict[str, Callable[[bytes], object]] = {
    "process": lambda data: read_process(data, name="process"),
    "checkpoint": lambda data: read_checkpoint(data, name="checkpoint"),
    "snapshot": _snapshot,
    "plan": _plan,
    "log format": _log("format.bin"),
    "log records": _log(RECORDS),
    "log snapshot": _log(SNAPSHOT),
}
_BODIES: dict[str, tuple[str, bytes]] = {
    "process body": ("process", b"SRPROC01"),
    "checkpoint body": ("checkpoint", b"SRBchkp2"),
    "snapshot body": ("snapshot", b"SRBsnap2"),
    "plan body": ("plan", b"SRBplan2"),
    "log format body": ("log format", b"SRBflog1"),
    "log snapshot body": ("log snapshot", b"SRBfsna1"),
}
_READERS = {**_RAW, **{name: _sealed(_RAW[raw], magic) for name, (raw, magic) in _BODIES.items()}}


def check_store_file(data: bytes) -> None:
    """Read bytes as a stored file; anything but a value or `StoreError` is a finding."""
    readers = tuple(_READERS.values())
    if data:
        with suppress(StoreError):
            readers[data[0] % len(readers)](data[1:])


def store_file_seeds() -> Iterator[tuple[str, bytes]]:
    """Name and bytes of a valid file for each reader, equal at every run."""
    record = ProcessRecord(process_id=ID, made_at_ms=5, remembered_version=11)
    checkpoint = Checkpoint(offsets={TopicPartition("a", 1): 35}, end_offset_sum=50)
    _PLANS.write_snapshot(GROUP, _STATE)
    snapshot = _PLANS.read_snapshot(GROUP)
    if snapshot is None:
        raise AssertionError("a snapshot that was written is read")
    _PLANS.write_plan(GROUP, plan_for(snapshot, sticky(_STATE)))
    disk = FolderDisk(_PLANS.plan_path(GROUP).parent)
    files = {
        "process": process_bytes(record, 3),
        "checkpoint": checkpoint_bytes(checkpoint, 2),
        "snapshot": disk.read("state.bin", 1 << 20),
        "plan": disk.read("plan.bin", 1 << 20),
        "log format": _LOG["format.bin"],
        "log records": _LOG[RECORDS],
        "log snapshot": _LOG[SNAPSHOT],
    }
    position = {name: bytes([index]) for index, name in enumerate(_READERS)}
    yield "process as text", position["process"] + process_bytes(record, 2)
    yield "checkpoint as text", position["checkpoint"] + checkpoint_bytes(checkpoint, 1)
    for name, data in files.items():
        yield name, position[name] + data
    for name, (raw, _) in _BODIES.items():
        yield name, position[name] + files[raw][16:-16]
