"""Fingerprints of a group state: they tell whether a plan still fits the group.

Members, topology and settings must be unchanged when a plan is used. Lags may change while the plan
is made: every move of the plan is checked. If `lags_epoch` differs, a leader asks for a new plan.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from assignor.config import setting_texts
from assignor.placement import GroupState, IntArray

_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Three digests of a group state.

    Attributes:
        members: digest of the clients with their threads, racks and tags.
        topology: digest of the tasks, their state, their partitions' racks, and the settings.
        lags_epoch: digest of the owners, of which copies are caught up, and of which tasks are so
            small that every client is.
    """

    members: bytes
    topology: bytes
    lags_epoch: bytes


def fingerprint_of(state: GroupState) -> Fingerprint:
    """Return the fingerprint of a state, the same in every process; O(tasks + copies)."""
    clients = zip(state.clients, state.threads.tolist(), state.racks, state.tags, strict=True)
    settings = sorted(setting_texts(state.config).items())
    partitions = np.fromiter((t.partition for t in state.tasks), np.int64, len(state.tasks))
    racks = (state.partition_racks, state.changelog_racks)
    sorted_racks = [
        None if side is None else [[None if r is None else sorted(r) for r in t] for t in side]
        for side in racks
    ]
    return Fingerprint(
        members=_digest(repr(list(clients)).encode()),
        topology=_digest(
            *map(_bytes, (state.subtopology, partitions, state.stateful.astype(np.int64))),
            repr((settings, sorted_racks)).encode(),
            b"" if state.weights is None else state.weights.astype("<f8").tobytes(),
        ),
        lags_epoch=_digest(
            *map(_bytes, (state.owner, state.copy_start, state.copy_client)),
            state.is_caught_up().tobytes(),
            state.starts_anywhere().tobytes(),
        ),
    )


def _bytes(column: IntArray) -> bytes:
    return column.astype("<i8").tobytes()


def _digest(*parts: bytes) -> bytes:
    made = blake2b(digest_size=_SIZE)
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.digest()
