"""The content of a snapshot: a group state as a msgpack map with columns of numbers."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import msgpack
import numpy as np

from assignor.config import config_from_mapping, setting_texts, setting_value
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, GroupState, RacksByTask
from assignor.stores.columns import column_bytes, read_column
from assignor.stores.errors import store_errors
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from encoding import TaskId

PROBLEM: Final = "has a valid checksum but invalid content"
REMEDY: Final = "it is not used"
_NUMBER_MAX = (1 << 31) - 1
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


def snapshot_map(group: str, state: GroupState, file_format: int) -> dict[str, Any]:
    """Return the content of a snapshot's file."""
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


def snapshot_of(file_format: int, body: bytes, *, name: str) -> GroupSnapshot:
    """Return the snapshot in the packed content of a file.

    Raises:
        StoreError: the content is malformed.
    """
    with store_errors(name, problem=PROBLEM, remedy=REMEDY):
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
