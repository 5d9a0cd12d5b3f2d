"""How many partitions of a task would be read from another rack, rack by rack.

Tasks whose partitions have their replicas in the same racks cost the same everywhere: they form a
*class*, and everything about racks is decided class by class. An unknown set of racks costs
nothing anywhere, which is the only honest guess.
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
        racks: R names, sorted.
        rack_of: int [C], the rack of each client; those without one share a last, nameless rack.
        class_of: int [M], the class of each task asked about.
        weight: int [K, R], partitions of a task of the class without a replica in the rack.
        unknown: how many of the tasks have a partition whose racks are not known.
    """

    racks: tuple[str | None, ...]
    rack_of: IntArray
    class_of: IntArray
    weight: IntArray
    unknown: int


def client_racks(state: GroupState) -> tuple[tuple[str | None, ...], IntArray]:
    """Names of the racks that clients are in, sorted, and the number of each client's rack.

    Clients that do not say where they are share a nameless rack at the end; it costs nothing.
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
        state: the group; its clients' racks.
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
    # Sets of replicas are few and tasks are many: each distinct tuple of sets is looked at once.
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
