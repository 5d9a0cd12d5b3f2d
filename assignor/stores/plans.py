"""Group states and plans as files: columns of little-endian integers in a msgpack map.

A *snapshot* is the group state for which a leader requests a plan. A *plan* is the assignment for
one snapshot and carries its fingerprint. File sizes are linear in the group; a million tasks are
read in a fraction of a second. Format 1 writes eight bytes per number, format 2 as few as a column
needs (KIP-384). Both are read; a plan is written in the format of its snapshot.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgpack
import numpy as np

from assignor.placement import BoolArray, GroupState, TaskAssignment, is_ready, sentences, validate
from assignor.stores.columns import column_bytes, read_column
from assignor.stores.errors import StoreError, store_errors
from assignor.stores.files import read_sealed_any, unseal_any, write_sealed
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from assignor.stores.reading import check_no_link
from assignor.stores.snapshot_file import (
    PROBLEM,
    REMEDY,
    GroupSnapshot,
    snapshot_map,
    snapshot_of,
)
from encoding import shown
from encoding.primitives import has_half_pair
from probing.persisted_formats import Store, format_to_write

_SNAPSHOT_MAGICS = {1: b"SRBsnap1", 2: b"SRBsnap2"}
_PLAN_MAGICS = {1: b"SRBplan1", 2: b"SRBplan2"}
LIMIT = 1 << 31
_NUMBER = 8
_PLAN_BYTES = 4096  # of a plan without its columns


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
        snapshot = snapshot_map(group, state, self.format)
        _write(self.snapshot_path(group), _SNAPSHOT_MAGICS[self.format], snapshot)
        return fingerprint

    def read_snapshot(self, group: str) -> GroupSnapshot | None:
        """Return the snapshot of a group; None if there is none.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.snapshot_path(group)
        found = read_sealed_any(path, _SNAPSHOT_MAGICS, limit=LIMIT)
        return None if found is None else snapshot_of(*found, name=str(path))

    def write_plan(self, group: str, plan: GroupPlan) -> None:
        """Write the plan of a group.

        Raises:
            StoreError: the file cannot be written.
        """
        _write(self.plan_path(group), _PLAN_MAGICS[plan.format], _plan_map(plan))

    def read_plan(self, group: str, *, state: GroupState | None = None) -> GroupPlan | None:
        """Return the plan of a group; None if there is none.

        Args:
            group: group id.
            state: of the group; a plan with more standbys than its settings allow is not read.

        Raises:
            StoreError: the file is damaged, or larger than a plan for `state`.
        """
        path = self.plan_path(group)
        most = None if state is None else _most_standbys(state)
        tasks = 0 if state is None else len(state.tasks)
        limit = LIMIT if most is None else _PLAN_BYTES + _NUMBER * (3 * tasks + 4 * most)
        found = read_sealed_any(path, _PLAN_MAGICS, limit=limit)
        return None if found is None else _plan_of(*found, name=str(path), most=most)

    def _folder(self, group: str) -> Path:
        # A group id may contain any character; the quoted name stays inside the directory.
        if has_half_pair(group):
            raise StoreError(
                f"group id {shown(repr(group))} has half a surrogate pair, which UTF-8 cannot"
                " encode; give the id that the broker has"
            )
        return self.directory / quote(group, safe="").replace(".", "%2E")


def read_snapshot(data: bytes, *, name: str) -> GroupSnapshot:
    """Return the snapshot in the bytes of a file.

    Raises:
        StoreError: the file is damaged.
    """
    return snapshot_of(*unseal_any(_SNAPSHOT_MAGICS, data, name=name), name=name)


def _write(path: Path, magic: bytes, value: dict[str, Any]) -> None:
    check_no_link(path.parent)
    with store_errors(str(path), problem="cannot be written", remedy="correct this name"):
        body: bytes = msgpack.packb(value)
    write_sealed(path, magic, body)


def _most_standbys(state: GroupState) -> int:
    """Return how many standbys, warm-ups among them, a plan for a state can need."""
    copies = state.config.num_standby_replicas + state.config.max_warmup_replicas
    return len(state.tasks) * min(copies, len(state.clients))


def _print_map(fingerprint: Fingerprint) -> list[bytes]:
    return [fingerprint.members, fingerprint.topology, fingerprint.lags_epoch]


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


def _plan_of(file_format: int, body: bytes, *, name: str, most: int | None) -> GroupPlan:
    with store_errors(name, problem=PROBLEM, remedy=REMEDY):
        given = msgpack.unpackb(body)
        members, topology, epoch = (_digest(part) for part in given["fingerprint"])
        ready = read_column(given["ready"], file_format).astype(np.bool_)
        moves = None
        if "moves" in given:
            moves = read_column(given["moves"], file_format).astype(np.bool_)
        assignment = TaskAssignment(
            active=read_column(given["active"], file_format),
            standbys=_pairs(given, "standby", file_format, most),
            warmups=_pairs(given, "warmup", file_format, most),
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


def _pairs(
    given: dict[str, Any], kind: str, file_format: int, most: int | None
) -> tuple[tuple[int, int], ...]:
    task, client = (
        read_column(given[f"{kind}_{side}"], file_format) for side in ("task", "client")
    )
    if most is not None and len(task) > most:
        raise ValueError(f"{len(task)} {kind} entries, and this group has at most {most}")
    return tuple(sorted(zip(task.tolist(), client.tolist(), strict=True)))
