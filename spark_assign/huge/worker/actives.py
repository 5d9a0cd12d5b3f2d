"""Where the active tasks of a worker belong before balancing.

The driver gets counts by (level, pool, client) and returns how many of each stay; workers find out
which ones, by rank. The level says how firmly a task belongs to its client: tasks of the last
levels move first.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from assignor.placement import LAG_UNKNOWN, NOBODY, homes
from spark_assign.huge.group import Group
from spark_assign.huge.worker.rows import Bools, Ints, Rows

# FIXED: at home; its standbys after a move are known from its copies only. FIRM: at home with all
# standbys, which stay if it moves. LOOSE: at home and lacks one standby, which its old copy becomes
# if it moves. SMALL: at home, with so little state that it may start anywhere. PREFERRED: no home,
# but a copy on the client.
FIXED, FIRM, LOOSE, SMALL, PREFERRED = range(5)
LEVELS = 5
_PRIME, _TURNS = 7_919, 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belonging:
    """Where tasks belong before anything is balanced.

    Attributes:
        at: int [B], the client, or NOBODY.
        level: int [B], level at the client; FIRM if `at` is NOBODY.
        pool: int [B], pool of the task.
        home: int [B], the owner of a stateful task if it may keep the task; otherwise NOBODY.
        warms_up: bool [B], tasks with a home and more copies elsewhere than standbys.
    """

    at: Ints
    level: Ints
    pool: Ints
    home: Ints
    warms_up: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taking:
    """Clients that take over tasks which warm up on them.

    Attributes:
        has_space: bool [C], clients whose quota is above their own tasks.
        share: float [C], the share of its tasks warming up elsewhere that a client gives up.
    """

    has_space: Bools
    share: npt.NDArray[np.float64]


def belonging(rows: Rows, group: Group) -> Belonging:
    """Where each task belongs: its home, else a client with a copy; the rules of the core."""
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
    """Int [B]: `homes` of the core; nearly all tasks have owners that report to be caught up."""
    at_owner = rows.copy_client == rows.owner[:, None]
    may_stay = rows.stateful & usable[rows.owner]
    is_home = may_stay & (at_owner & group.is_caught_up(rows)).any(axis=1)
    home = np.where(is_home, rows.owner, NOBODY)
    rest = np.flatnonzero(may_stay & ~is_home)
    if len(rest):
        home[rest] = homes(group.state_of(rows.part(rest)))
    return home


def _under_way(rows: Rows, group: Group, home: Ints, extra: Bools) -> Ints:
    """Homes after the running warm-ups towards cheaper racks have become active.

    Several placements have minimal cost; otherwise each plan might choose another one.
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
    at_home = weight[np.arange(len(weight)), group.rack_of[home[extra]]]
    lags = np.where(elsewhere, rows.copy_lag[extra], LAG_UNKNOWN)
    order = np.lexsort((client, lags, cost), axis=1)[:, :1]
    best = np.take_along_axis(client, order, axis=1)[:, 0]
    least = np.take_along_axis(cost, order, axis=1)[:, 0]
    gains = (least != LAG_UNKNOWN) & (traffic * (at_home - least) > overlap)
    moved = home.copy()
    moved[extra] = np.where(gains, best, home[extra])
    return moved


def taken_up(rows: Rows, where: Belonging, taking: Taking) -> Belonging:
    """Move tasks that warm up on a client with spare quota to that client.

    Several placements are equally good; otherwise each plan might abandon the warm-ups of the last
    one. A client gives up no more tasks than it must; task numbers decide which.
    """
    share = np.append(taking.share, 0.0)[where.home]
    turn = (rows.partition * _PRIME + rows.subtopology) % _TURNS
    index = np.flatnonzero(where.warms_up & (turn < share * _TURNS))
    client = rows.copy_client[index]
    able = np.append(taking.has_space, np.False_)[client] & (client >= 0)
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
    """Traffic cost and non-overlap cost of the group."""
    config = group.config
    return (
        config.rack_aware_assignment_traffic_cost or 0,
        config.rack_aware_assignment_non_overlap_cost or 0,
    )


def _nearest(rows: Rows, group: Group, usable: Bools, waits: Bools) -> Ints:
    """Int [waits]: a caught-up copy, else the one with the lowest lag, else NOBODY.

    The number of the task chooses among caught-up copies, so that all clients get tasks.
    """
    client = rows.copy_client[waits]
    able = (client >= 0) & usable[client]
    hot = group.is_caught_up(rows)[waits] & able
    # If a task has little state, restoring it from nothing beats a copy that lags.
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
