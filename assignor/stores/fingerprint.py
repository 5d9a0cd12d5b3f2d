"""What a plan was made for: members, topology and settings, and how far the copies were.

Members and topology must be the same when a plan is taken. Lags go on changing while it is made:
the epoch says whether they are as they were; where they are not, each move is looked at.
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
        members: clients with their threads, racks and tags.
        topology: tasks, which have state, racks of their partitions; and the settings.
        lags_epoch: owners, and which copies are caught up.
    """

    members: bytes
    topology: bytes
    lags_epoch: bytes


def fingerprint_of(state: GroupState) -> Fingerprint:
    """Equal for equal states, whatever the process; O(tasks + copies)."""
    people = zip(state.clients, state.threads.tolist(), state.racks, state.tags, strict=True)
    settings = sorted(setting_texts(state.config).items())
    partitions = np.fromiter((t.partition for t in state.tasks), np.int64, len(state.tasks))
    racks = (state.partition_racks, state.changelog_racks)
    sorted_racks = [
        None if side is None else [[None if r is None else sorted(r) for r in t] for t in side]
        for side in racks
    ]
    return Fingerprint(
        members=_digest(repr(list(people)).encode()),
        topology=_digest(
            *map(_bytes, (state.subtopology, partitions, state.stateful.astype(np.int64))),
            repr((settings, sorted_racks)).encode(),
            b"" if state.weights is None else state.weights.astype("<f8").tobytes(),
        ),
        lags_epoch=_digest(
            *map(_bytes, (state.owner, state.copy_start, state.copy_client)),
            state.is_caught_up().tobytes(),
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
