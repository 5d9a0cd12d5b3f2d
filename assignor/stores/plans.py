"""Group states and plans as files: columns of little-endian integers in a msgpack map.

A *snapshot* is the group state for which a leader requests a plan. A *plan* is the assignment for
one snapshot and carries its fingerprint. File sizes are linear in the group; a million tasks are
read in a fraction of a second. Format 1 writes eight bytes per number, format 2 as few as a column
needs (KIP-384). Both are read; a plan is written in the format of its snapshot.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgpack
import numpy as np

from assignor.config import config_from_mapping, setting_texts, setting_value
from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    BoolArray,
    GroupState,
    RacksByTask,
    TaskAssignment,
    is_ready,
    sentences,
    validate,
)
from assignor.stores.columns import column_bytes, read_column
from assignor.stores.errors import StoreError, store_errors
from assignor.stores.files import read_sealed_any, unseal_any, write_sealed
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from encoding import TaskId
from probing.persisted_formats import Store, format_to_write

_SNAPSHOT_MAGICS = {1: b"SRBsnap1", 2: b"SRBsnap2"}
_PLAN_MAGICS = {1: b"SRBplan1", 2: b"SRBplan2"}
_PROBLEM = "has a valid checksum but invalid content"
_REMEDY = "it is not used"
_NUMBER_MAX = (1 << 31) - 1
LIMIT = 1 << 31
_COLUMNS = ("owner", "copy_start", "copy_client", "copy_lag", "end_offset_sums", "threads")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupSnapshot:
    """A group state for which a leader requests a plan.

    Attributes:
        group: group id.
        state: the state to plan for.
        fingerprint: fingerprint of the state.
        format: file format in which it was written.
    """

    group: str
    state: GroupState
    fingerprint: Fingerprint
    format: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupPlan:
    """The assignment for one snapshot.

    Attributes:
        fingerprint: fingerprint of the snapshot.
        assignment: tasks and clients are indexes into the snapshot's state.
        ready: bool [T], whether the client of the active task was caught up in the snapshot.
        moves: bool [T], whether the active task ran elsewhere in the snapshot, or nowhere; None: a
            release wrote the file that did not know this.
        format: file format, the same as the snapshot's, because its leader reads the plan.
    """

    fingerprint: Fingerprint
    assignment: TaskAssignment
    ready: BoolArray
    moves: BoolArray | None = None
    format: int = 1


def plan_for(snapshot: GroupSnapshot, assignment: TaskAssignment) -> GroupPlan:
    """Return the plan that answers a snapshot with this assignment.

    Raises:
        StoreError: the assignment is not valid for the snapshot; the message says why.
    """
    wrong = validate(snapshot.state, assignment)
    if wrong:
        raise StoreError(f"the plan for group {snapshot.group} is not valid: {sentences(wrong)}")
    ready = is_ready(snapshot.state, assignment.active)
    return GroupPlan(
        fingerprint=snapshot.fingerprint,
        assignment=assignment,
        ready=ready,
        moves=assignment.active != snapshot.state.owner,
        format=snapshot.format,
    )


class PlanStore:
    """Snapshots and plans under one directory, with a subdirectory per group.

    Args:
        directory: directory that a group's leaders share with the planning job.
        persistent_version: `persistent.metadata.version`; decides the format of snapshots.
    """

    def __init__(self, directory: str | Path, *, persistent_version: int = 1) -> None:
        self.directory = Path(directory)
        self.format = format_to_write(Store.PLAN, persistent_version)

    def snapshot_path(self, group: str) -> Path:
        """Return the path of a group's snapshot."""
        return self._folder(group) / "state.bin"

    def plan_path(self, group: str) -> Path:
        """Return the path of a group's plan."""
        return self._folder(group) / "plan.bin"

    def write_snapshot(self, group: str, state: GroupState) -> Fingerprint:
        """Write the snapshot of a group, replacing an earlier one; return its fingerprint.

        Raises:
            StoreError: the file cannot be written.
        """
        fingerprint = fingerprint_of(state)
        body = _packed(_snapshot_map(group, state, self.format))
        write_sealed(self.snapshot_path(group), _SNAPSHOT_MAGICS[self.format], body)
        return fingerprint

    def read_snapshot(self, group: str) -> GroupSnapshot | None:
        """Return the snapshot of a group; None if there is none.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.snapshot_path(group)
        found = read_sealed_any(path, _SNAPSHOT_MAGICS, limit=LIMIT)
        return None if found is None else _snapshot_of(*found, name=str(path))

    def write_plan(self, group: str, plan: GroupPlan) -> None:
        """Write the plan of a group.

        Raises:
            StoreError: the file cannot be written.
        """
        write_sealed(self.plan_path(group), _PLAN_MAGICS[plan.format], _packed(_plan_map(plan)))

    def read_plan(self, group: str) -> GroupPlan | None:
        """Return the plan of a group; None if there is none.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.plan_path(group)
        found = read_sealed_any(path, _PLAN_MAGICS, limit=LIMIT)
        return None if found is None else _plan_of(*found, name=str(path))

    def _folder(self, group: str) -> Path:
        # A group id may contain any character; the quoted name stays inside the directory.
        return self.directory / quote(group, safe="").replace(".", "%2E")


def read_snapshot(data: bytes, *, name: str) -> GroupSnapshot:
    """Return the snapshot in the bytes of a file.

    Raises:
        StoreError: the file is damaged.
    """
    return _snapshot_of(*unseal_any(_SNAPSHOT_MAGICS, data, name=name), name=name)


def _packed(value: dict[str, Any]) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def _print_map(fingerprint: Fingerprint) -> list[bytes]:
    return [fingerprint.members, fingerprint.topology, fingerprint.lags_epoch]


def _snapshot_map(group: str, state: GroupState, file_format: int) -> dict[str, Any]:
    columns = {name: getattr(state, name) for name in _COLUMNS} | {
        "subtopology": state.subtopology,
        "partition": [task.partition for task in state.tasks],
        "stateful": state.stateful,
        "stalled": state.copy_stalled,
    }
    return {
        "group": group,
        "clients": list(state.clients),
        "racks": list(state.racks),
        "tags": [list(map(list, tags)) for tags in state.tags],
        "config": setting_texts(state.config),
        **{name: column_bytes(column, file_format) for name, column in columns.items()},
        "weights": None if state.weights is None else state.weights.astype("<f8").tobytes(),
        "partition_racks": _racks_out(state.partition_racks),
        "changelog_racks": _racks_out(state.changelog_racks),
    }


def _racks_out(racks: RacksByTask | None) -> list[list[list[str] | None]] | None:
    if racks is None:
        return None
    return [[None if names is None else sorted(names) for names in parts] for parts in racks]


def _racks_in(racks: list[list[list[str] | None]] | None) -> RacksByTask | None:
    if racks is None:
        return None
    return tuple(tuple(None if row is None else frozenset(row) for row in parts) for parts in racks)


def _snapshot_of(file_format: int, body: bytes, *, name: str) -> GroupSnapshot:
    with store_errors(name, problem=_PROBLEM, remedy=_REMEDY):
        given = msgpack.unpackb(body)
        columns: dict[str, Any] = {key: read_column(given[key], file_format) for key in _COLUMNS}
        subtopology, partition, stateful, stalled = (
            read_column(given[key], file_format)
            for key in ("subtopology", "partition", "stateful", "stalled")
        )
        texts = given["config"]
        state = GroupState(
            tasks=tuple(
                TaskId(*ids) for ids in zip(subtopology.tolist(), partition.tolist(), strict=True)
            ),
            stateful=stateful.astype(np.bool_),
            subtopology=subtopology,
            clients=tuple(given["clients"]),
            copy_stalled=stalled.astype(np.bool_),
            racks=tuple(given["racks"]),
            tags=tuple(tuple((key, value) for key, value in tags) for tags in given["tags"]),
            config=config_from_mapping({k: setting_value(k, v) for k, v in texts.items()}),
            weights=None if given["weights"] is None else np.frombuffer(given["weights"], "<f8"),
            partition_racks=_racks_in(given["partition_racks"]),
            changelog_racks=_racks_in(given["changelog_racks"]),
            **columns,
        )
        _check_snapshot(given["group"], state)
        return GroupSnapshot(
            group=given["group"],
            state=state,
            fingerprint=fingerprint_of(state),
            format=file_format,
        )


def _check_snapshot(group: object, state: GroupState) -> None:
    """Check that the columns fit each other; later code relies on it.

    Raises:
        ValueError: a length, a number or a name is invalid; the message says which.
    """
    if not all(isinstance(name, str) for name in (group, *state.clients)):
        raise ValueError("the group id or a client id is not a string")
    tasks, clients, copies = len(state.tasks), len(state.clients), len(state.copy_client)
    lengths = {
        "owner": (state.owner, tasks),
        "stateful": (state.stateful, tasks),
        "end_offset_sums": (state.end_offset_sums, tasks),
        "copy_start": (state.copy_start, tasks + 1),
        "copy_lag": (state.copy_lag, copies),
        "stalled": (state.copy_stalled, copies),
        "threads": (state.threads, clients),
        "racks": (state.racks, clients),
        "tags": (state.tags, clients),
        "weights": (state.weights, tasks),
        "partition_racks": (state.partition_racks, tasks),
        "changelog_racks": (state.changelog_racks, tasks),
    }
    for column, (values, length) in lengths.items():
        if values is not None and len(values) != length:
            raise ValueError(f"{column} has {len(values)} entries instead of {length}")
    for column, numbers, low, high in (
        ("owner", state.owner, -1, clients - 1),
        ("copy_client", state.copy_client, 0, clients - 1),
        ("copy_lag", state.copy_lag, LAG_RUNNING, LAG_UNKNOWN),
        ("threads", state.threads, 0, _NUMBER_MAX),
        ("copy_start", state.copy_start[[0, -1]] - [0, copies], 0, 0),
        ("copy_start", np.diff(state.copy_start), 0, copies),
    ):
        if len(numbers) and not low <= int(numbers.min()) <= int(numbers.max()) <= high:
            raise ValueError(f"{column} has a number outside {low} to {high}")
    in_order = all(earlier < later for earlier, later in pairwise(state.tasks))
    if not in_order or not all(earlier < later for earlier, later in pairwise(state.clients)):
        raise ValueError("tasks or clients are not sorted, or occur twice")


def _plan_map(plan: GroupPlan) -> dict[str, Any]:
    pairs = np.array(plan.assignment.standbys, dtype=np.int64).reshape(-1, 2)
    warm = np.array(plan.assignment.warmups, dtype=np.int64).reshape(-1, 2)
    columns = {
        "active": plan.assignment.active,
        "standby_task": pairs[:, 0],
        "standby_client": pairs[:, 1],
        "warmup_task": warm[:, 0],
        "warmup_client": warm[:, 1],
        "ready": plan.ready,
    } | ({} if plan.moves is None else {"moves": plan.moves})
    return {
        "fingerprint": _print_map(plan.fingerprint),
        "followup": plan.assignment.followup,
        **{name: column_bytes(column, plan.format) for name, column in columns.items()},
    }


def _plan_of(file_format: int, body: bytes, *, name: str) -> GroupPlan:
    with store_errors(name, problem=_PROBLEM, remedy=_REMEDY):
        given = msgpack.unpackb(body)
        members, topology, epoch = (_digest(part) for part in given["fingerprint"])
        ready = read_column(given["ready"], file_format).astype(np.bool_)
        moves = None
        if "moves" in given:
            moves = read_column(given["moves"], file_format).astype(np.bool_)
        assignment = TaskAssignment(
            active=read_column(given["active"], file_format),
            standbys=_pairs(given, "standby", file_format),
            warmups=_pairs(given, "warmup", file_format),
            followup=bool(given["followup"]),
        )
        for column, values in (("ready", ready), ("moves", moves)):
            if values is not None and len(values) != len(assignment.active):
                entries = f"{len(values)} entries instead of {len(assignment.active)}"
                raise ValueError(f"{column} has {entries}")
        return GroupPlan(
            fingerprint=Fingerprint(members=members, topology=topology, lags_epoch=epoch),
            assignment=assignment,
            ready=ready,
            moves=moves,
            format=file_format,
        )


def _digest(given: object) -> bytes:
    if not isinstance(given, bytes):
        raise TypeError(f"a fingerprint is {given!r:.40}, not bytes")
    return given


def _pairs(given: dict[str, Any], kind: str, file_format: int) -> tuple[tuple[int, int], ...]:
    task, client = (
        read_column(given[f"{kind}_{side}"], file_format) for side in ("task", "client")
    )
    return tuple(sorted(zip(task.tolist(), client.tolist(), strict=True)))
