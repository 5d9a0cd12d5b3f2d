"""The cost of a case: moves, restores, load, traffic, and time by a model.

Model of time: each thread of a client restores `restore_rate` records a second, all clients in
parallel. The next rebalance comes when all copies are restored, but not before the probing
rebalance interval. Active tasks placed behind process nothing until they are restored.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from assignor import GroupState, TaskAssignment
from assignor.placement import LAG_UNKNOWN
from assignor.placement.racks import traffic_of
from assignor.problems import Round, lacking_records, totals
from spark_assign.whatif.scenarios import Case

RESTORE_RATE = 50_000
COUNTED = (
    *("rounds", "handoffs", "takeovers", "stateless_moves", "restores", "cold", "warmups_max"),
    *("restored_records", "outage_ms", "converge_ms", "active_cross_rack", "standby_cross_rack"),
)
LOADS = ("peak_load", "load_max", "load_mean")
_Longs = npt.NDArray[np.int64]


def measures(case: Case, *, restore_rate: int = RESTORE_RATE) -> dict[str, Any]:
    """Numbers of a case by the names of `COUNTED` and `LOADS`, and whether it settled.

    Args:
        case: with its rounds; an impossible case has no numbers.
        restore_rate: records that one thread restores in a second.
    """
    if not case.rounds:
        return {}
    last = case.rounds[-1]
    times = [_times_ms(played, restore_rate) for played in case.rounds]
    interval = last.state.config.probing_rebalance_interval_ms
    waits = [max(every_copy, interval) for _, every_copy in times[:-1]]
    active, standby = cross_rack(last.state, last.assignment)
    load = _load(last.state, last.assignment)
    return {
        **totals(list(case.rounds)),
        "restored_records": sum(int(records_by_client(played)[1].sum()) for played in case.rounds),
        "outage_ms": max(outage for outage, _ in times),
        "converge_ms": sum(waits) + times[-1][1],
        "active_cross_rack": active,
        "standby_cross_rack": standby,
        "load_max": round(float(load.max()), 3),
        "load_mean": round(float(load.mean()), 3),
        "settled": not last.assignment.followup,
    }


def records_by_client(played: Round) -> tuple[_Longs, _Longs]:
    """Int [C], int [C]: records that each client restores for active tasks, and for all copies.

    State of unknown size counts as 0.
    """
    state, assignment = played.state, played.assignment
    tasks = np.flatnonzero(state.stateful)
    pairs = np.array(assignment.standbys, dtype=np.int64).reshape(-1, 2)
    active = _known(lacking_records(state, tasks, assignment.active[tasks]))
    standby = _known(lacking_records(state, pairs[:, 0], pairs[:, 1]))
    width = len(state.clients)
    by_active = np.bincount(assignment.active[tasks], weights=active, minlength=width)
    by_standby = np.bincount(pairs[:, 1], weights=standby, minlength=width)
    return by_active.astype(np.int64), (by_active + by_standby).astype(np.int64)


def _known(records: _Longs) -> _Longs:
    """Numbers of records, 0 where unknown."""
    return np.where(records == LAG_UNKNOWN, 0, records)


def _times_ms(played: Round, restore_rate: int) -> tuple[int, int]:
    """Milliseconds after a round until all active tasks run, and until all copies are restored."""
    threads = np.maximum(played.state.capacity(), 1)
    active, every_copy = records_by_client(played)
    outage, whole = (np.ceil(n * 1000 / (threads * restore_rate)) for n in (active, every_copy))
    return int(outage.max()), int(whole.max())


def _load(state: GroupState, assignment: TaskAssignment) -> npt.NDArray[np.float64]:
    """Active tasks and copies per thread, for every client with threads."""
    threads = state.capacity()
    count = np.bincount(assignment.active, minlength=len(threads))
    copies = np.array(assignment.standbys, dtype=np.int64).reshape(-1, 2)[:, 1]
    count = count + np.bincount(copies, minlength=len(threads))
    usable = threads > 0
    load: npt.NDArray[np.float64] = count[usable] / threads[usable]
    return load


def cross_rack(state: GroupState, assignment: TaskAssignment) -> tuple[int, int]:
    """Source partitions of active tasks, and changelogs of copies, read from another rack."""
    tasks = np.arange(len(state.tasks), dtype=np.int64)
    pairs = np.array(assignment.standbys, dtype=np.int64).reshape(-1, 2)
    active = traffic_of(state, state.partition_racks, tasks)
    standby = traffic_of(state, state.changelog_racks, pairs[:, 0])
    return (
        int(active.weight[active.class_of, active.rack_of[assignment.active]].sum()),
        int(standby.weight[standby.class_of, standby.rack_of[pairs[:, 1]]].sum()),
    )
