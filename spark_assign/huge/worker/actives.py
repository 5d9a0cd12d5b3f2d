"""Active tasks in a worker: where each is best left alone, who comes next, and what is counted.

The driver gets counts by (level, pool, client) and answers how many of each stay; a worker finds
out which, by rank. Levels say how firmly a task belongs: what is to move is taken from the last.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from assignor.placement import LAG_UNKNOWN, NOBODY
from spark_assign.huge.group import Group
from spark_assign.huge.worker.rows import Bools, Ints, Rows

# At home, and what becomes of its standbys when it moves is told by its copies only; at home with
# all standbys, which stay whatever happens; at home without one, which its old copy becomes when it
# moves; at home, but so small that it may start anywhere; no home but a copy there.
FIXED, FIRM, LOOSE, SMALL, PREFERRED = range(5)
LEVELS = 5
_PRIME, _TURNS = 7_919, 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belonging:
    """Where tasks belong before anything is balanced.

    Attributes:
        at: int [B], a client or NOBODY.
        level: int [B]; FIRM where `at` is NOBODY.
        pool: int [B].
        home: int [B], where a stateful task runs well now; NOBODY elsewhere.
        warms_up: bool [B], tasks at home with more copies elsewhere than standbys.
    """

    at: Ints
    level: Ints
    pool: Ints
    home: Ints
    warms_up: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taking:
    """Clients that go on with what they warm up for others.

    Attributes:
        has_room: bool [C], for more than their own tasks.
        share: float [C], how many of the tasks that warm up elsewhere each client is to give up.
    """

    has_room: Bools
    share: npt.NDArray[np.float64]


def belonging(rows: Rows, group: Group) -> Belonging:
    """Homes first, then copies; the rules are those of the core, task by task."""
    usable = np.append(group.capacity > 0, np.False_)
    home = _homes(rows, group, usable)
    waits = rows.stateful & (home == NOBODY)
    others = (rows.copy_client >= 0) & usable[rows.copy_client]
    others &= rows.copy_client != home[:, None]
    warms_up = (home != NOBODY) & (others.sum(axis=1) > group.standbys)
    at = _under_way(rows, group, home, warms_up) if group.has_rack_costs else home.copy()
    if waits.any():
        at[waits] = _nearest(rows, group, usable, waits)
    stateless = ~rows.stateful
    if stateless.any():
        at[stateless] = np.where(usable[rows.owner], rows.owner, NOBODY)[stateless]
    level = np.where(group.starts_anywhere(rows) & (home != NOBODY), SMALL, FIRM)
    level = np.where((at != NOBODY) & waits, PREFERRED, level)
    pool = group.pool_of(rows)
    return Belonging(at=at, level=level, pool=pool, home=home, warms_up=warms_up)


def _homes(rows: Rows, group: Group, usable: Bools) -> Ints:
    """Int [B]: the owner while it is caught up, or while nobody is and it still has state."""
    valid, hot = rows.copy_client >= 0, group.is_caught_up(rows)
    anywhere = group.starts_anywhere(rows)
    at_owner = valid & (rows.copy_client == rows.owner[:, None])
    reports = at_owner.any(axis=1)
    owner_is_hot = np.where(reports, (at_owner & hot).any(axis=1), anywhere)
    has_hot = anywhere | hot.any(axis=1)
    has_state = np.where(valid.any(axis=1), reports, ~anywhere)
    stays = owner_is_hot | (~has_hot & has_state)
    return np.where(stays & rows.stateful & usable[rows.owner], rows.owner, NOBODY)


def _under_way(rows: Rows, group: Group, home: Ints, extra: Bools) -> Ints:
    """Homes as they will be once the warm-ups towards cheaper racks are used.

    Many placements cost the least; without this each plan would settle on another one.
    """
    if not extra.any():
        return home.copy()
    valid = (rows.copy_client >= 0) & np.append(group.capacity > 0, np.False_)[rows.copy_client]
    traffic, overlap = costs_of(group)
    weight = group.sources.weight[rows.source_class[extra]]
    client = rows.copy_client[extra]
    rack = np.append(group.rack_of, 0)[client]
    cost = np.take_along_axis(weight, rack, axis=1)
    elsewhere = valid[extra] & (client != home[extra][:, None])
    cost = np.where(elsewhere, cost, LAG_UNKNOWN)
    here = weight[np.arange(len(weight)), group.rack_of[home[extra]]]
    lags = np.where(elsewhere, rows.copy_lag[extra], LAG_UNKNOWN)
    order = np.lexsort((client, lags, cost), axis=1)[:, :1]
    best = np.take_along_axis(client, order, axis=1)[:, 0]
    least = np.take_along_axis(cost, order, axis=1)[:, 0]
    gains = (least != LAG_UNKNOWN) & (traffic * (here - least) > overlap)
    moved = home.copy()
    moved[extra] = np.where(gains, best, home[extra])
    return moved


def taken_up(rows: Rows, where: Belonging, taking: Taking) -> Belonging:
    """The same, with tasks that warm up on a client with room at that client.

    Many placements are as good as each other; without this each plan would drop what the last one
    began. A client gives up no more of its tasks than it has to, told by their numbers.
    """
    share = np.append(taking.share, 0.0)[where.home]
    turn = (rows.partition * _PRIME + rows.subtopology) % _TURNS
    index = np.flatnonzero(where.warms_up & (turn < share * _TURNS))
    client = rows.copy_client[index]
    able = np.append(taking.has_room, np.False_)[client] & (client >= 0)
    able &= client != where.home[index][:, None]
    lag = np.where(able, rows.copy_lag[index], LAG_UNKNOWN)
    best = np.lexsort((client, lag, ~able), axis=1)[:, 0] if len(index) else index
    lines = np.arange(len(index))
    takes = able[lines, best]
    index = index[takes]
    at, level = where.at.copy(), where.level.copy()
    at[index] = client[lines, best][takes]
    level[index] = PREFERRED
    return replace(where, at=at, level=level)


def costs_of(group: Group) -> tuple[int, int]:
    """Traffic and non-overlap cost; both are filled in."""
    config = group.config
    return (
        config.rack_aware_assignment_traffic_cost or 0,
        config.rack_aware_assignment_non_overlap_cost or 0,
    )


def _nearest(rows: Rows, group: Group, usable: Bools, waits: Bools) -> Ints:
    """Int [waits]: a caught-up copy, else the nearest one; NOBODY when there is none of use.

    Caught-up copies are alike: which one is told by the task's number, so that all get some.
    """
    client = rows.copy_client[waits]
    able = (client >= 0) & usable[client]
    hot = group.is_caught_up(rows)[waits] & able
    # Restoring so little from nothing is better than state that is further behind.
    useful = able & (hot | ~group.starts_anywhere(rows)[waits][:, None])
    number = rows.partition[waits] + rows.subtopology[waits]
    count = hot.sum(axis=1)
    turn = np.where(count > 0, number % np.maximum(count, 1), 0)
    behind = np.where(useful & ~hot, rows.copy_lag[waits], LAG_UNKNOWN)
    by_lag = np.lexsort((client, behind, ~useful), axis=1)
    by_client = np.argsort(np.where(hot, client, LAG_UNKNOWN), axis=1, kind="stable")
    place = np.where(
        count > 0, by_client[np.arange(len(count)), turn], by_lag[np.arange(len(count)), 0]
    )
    chosen = client[np.arange(len(count)), place]
    return np.where(useful[np.arange(len(count)), place], chosen, NOBODY)
