"""Traffic of tasks: for each rack, the partitions that would be read from another rack.

Tasks whose partitions have their replicas in the same racks have the same costs: they form a
*class*, and rack decisions are made per class. A partition with unknown racks costs nothing in any
rack.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.placement.state import GroupState, IntArray, RacksByTask

Replicas = tuple[frozenset[str] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """Cross-rack partitions of tasks.

    Attributes:
        racks: R names, sorted; the last one is None if clients have no rack.
        rack_of: int [C], the rack of each client, as an index of `racks`.
        class_of: int [M], the class of each task.
        weight: int [K, R], partitions of a task of the class without a replica in the rack.
        unknown: number of the tasks that have a partition with unknown racks.
    """

    racks: tuple[str | None, ...]
    rack_of: IntArray
    class_of: IntArray
    weight: IntArray
    unknown: int


def client_racks(state: GroupState) -> tuple[tuple[str | None, ...], IntArray]:
    """The sorted racks of the clients, and int [C], the index of each client's rack.

    Clients without a rack share a last rack None, in which nothing costs traffic.
    """
    names: list[str | None] = [*sorted({rack for rack in state.racks if rack is not None})]
    if None in state.racks:
        names.append(None)
    number = {name: place for place, name in enumerate(names)}
    rack_of = np.fromiter((number[r] for r in state.racks), np.int64, len(state.racks))
    return tuple(names), rack_of


def traffic_of(
    state: GroupState, racks_by_task: RacksByTask | None, tasks: Sequence[int] | IntArray
) -> Traffic:
    """Classes and weights of the tasks; O(tasks x partitions + classes x racks).

    Args:
        state: the group, with its clients' racks.
        racks_by_task: `partition_racks` for actives, `changelog_racks` for standbys.
        tasks: int [M].
    """
    racks, rack_of = client_racks(state)
    count = len(tasks)
    if racks_by_task is None:
        return Traffic(
            racks=racks,
            rack_of=rack_of,
            class_of=np.zeros(count, dtype=np.int64),
            weight=np.zeros((1, len(racks)), dtype=np.int64),
            unknown=count,
        )
    # There are few distinct tuples of replica sets: each is evaluated once.
    number: dict[Replicas, int] = {}
    given = map(racks_by_task.__getitem__, np.asarray(tasks).tolist())
    spelled = np.fromiter((number.setdefault(r, len(number)) for r in given), np.int64, count)
    rows = np.array([_row(replicas, racks) for replicas in number], dtype=np.int64)
    rows = rows.reshape(len(number), len(racks))
    weight, merged = np.unique(rows, axis=0, return_inverse=True)
    lacks = np.array([not all(replicas) for replicas in number], dtype=np.bool_)
    return Traffic(
        racks=racks,
        rack_of=rack_of,
        class_of=merged.reshape(-1)[spelled].astype(np.int64),
        weight=weight.reshape(-1, len(racks)),
        unknown=int(lacks[spelled].sum()) if count else 0,
    )


def _row(replicas: Replicas, racks: Sequence[str | None]) -> list[int]:
    known = [names for names in replicas if names]
    return [0 if rack is None else sum(rack not in names for names in known) for rack in racks]
