"""`high_availability` in a worker: where tasks go now, given where they belong.

A task runs on a caught-up client if there is one, while its target warms up. A standby that moves
keeps its caught-up copy on the old client. Warm-ups beyond the standbys are limited by
`max.warmup.replicas` for the whole group: workers count them by urgency, and the driver grants a
number of each kind to each chunk.
"""

from dataclasses import dataclass

import numpy as np

from assignor.placement import NOBODY, nearest_places
from spark_assign.huge.group import Group
from spark_assign.huge.worker.rows import Bools, Ints, Rows
from spark_assign.huge.worker.slots import running_ranks

# Kinds of warm-ups: stalled, standby, new, and how many copies are caught up; 64 of them.
KINDS = 64
_MOST_CAUGHT_UP = 7
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settling:
    """The placement of a batch with this plan.

    Attributes:
        active: int [B], the client that runs each task.
        placed: int [B, 2N + 1], other copies, or NOBODY.
        asked: int [B, 1 + N], copies that need a grant, or NOBODY.
        kind: int [B, 1 + N], kinds of the copies in `asked`.
        is_followed: whether a follow-up rebalance must wait for a placed copy.
    """

    active: Ints
    placed: Ints
    asked: Ints
    kind: Ints
    is_followed: bool


def settled(
    rows: Rows, group: Group, *, home: Ints, target: Ints, standbys: Ints, load: Ints
) -> Settling:
    """Place active tasks and copies of a batch, and ask for warm-ups.

    Args:
        rows: the tasks.
        group: the group.
        home: int [B], homes of stateful tasks, or NOBODY.
        target: int [B], where tasks belong.
        standbys: int [B, N], where standbys belong.
        load: int [C], active tasks of each client, to choose among caught-up ones.
    """
    hot, anywhere = group.is_caught_up(rows), group.starts_anywhere(rows)
    active, target = _now(rows, group, home=home, target=target, hot=hot, load=load)
    wanted = group.config.num_standby_replicas
    _, lag_ok, _ = _look(rows, standbys, group, anywhere)
    is_late = ~lag_ok & (standbys != NOBODY)
    touched = rows.stateful & (active != target)
    touched |= is_late.any(axis=1) & (hot.sum(axis=1) > 1)
    belongs = np.where(touched[:, None] & (standbys == active[:, None]), NOBODY, standbys)
    stay = np.where(touched[:, None] & is_late, NOBODY, belongs)
    stand_ins = _stand_ins(
        rows, group, hot=hot, active=active, target=target, belongs=belongs, wanted=wanted
    )
    places = np.maximum(wanted - (stay != NOBODY).sum(axis=1), 0)
    stand_ins = np.where(np.arange(stand_ins.shape[1]) < places[:, None], stand_ins, NOBODY)
    stand_ins[~touched] = NOBODY
    goal = np.where(touched & (active != target), target, NOBODY)
    late = np.where(touched[:, None] & is_late, belongs, NOBODY)
    builds = np.concatenate([goal[:, None], late], axis=1)
    clash = (builds[:, :, None] == np.concatenate([stay, stand_ins], axis=1)[:, None, :]).any(
        axis=2
    )
    builds[clash] = NOBODY
    is_new, _, is_stalled = _look(rows, builds, group, anywhere)
    caught_up = np.minimum(hot.sum(axis=1), _MOST_CAUGHT_UP)[:, None]
    is_standby = np.arange(builds.shape[1])[None, :] > 0
    kind = is_stalled * 32 + is_standby * 16 + is_new * 8 + caught_up
    order = np.lexsort((builds, np.where(builds == NOBODY, _LAST, kind // 8)), axis=1)
    builds, kind = (np.take_along_axis(table, order, axis=1) for table in (builds, kind))
    free = np.maximum(places - (stand_ins != NOBODY).sum(axis=1), 0)
    is_free = (builds != NOBODY) & (np.arange(builds.shape[1]) < free[:, None])
    waits_for = is_free & (kind & 16 == 0) & (kind & 32 == 0)
    return Settling(
        active=active,
        placed=np.concatenate([stay, stand_ins, np.where(is_free, builds, NOBODY)], axis=1),
        asked=np.where(is_free, NOBODY, builds),
        kind=kind.astype(np.int64),
        is_followed=bool(waits_for.any()),
    )


def _now(
    rows: Rows, group: Group, *, home: Ints, target: Ints, hot: Bools, load: Ints
) -> tuple[Ints, Ints]:
    """The client that runs each task: a ready target, else the home, else a near copy.

    And the targets, changed for tasks that start sooner from nothing on another client.
    """
    at_target = (rows.copy_client == target[:, None]) & (rows.copy_client >= 0)
    ready = np.where(
        at_target.any(axis=1), (at_target & hot).any(axis=1), group.starts_anywhere(rows)
    )
    ready |= (target == home) | ~rows.stateful
    now = np.where(ready, target, home)
    waiting = np.flatnonzero(now == NOBODY)
    if len(waiting):
        tasks = rows.part(waiting)
        now[waiting] = target[waiting]
        places = nearest_places(group.state_of(tasks), target[waiting], np.arange(len(waiting)))
        share = (load / np.maximum(group.capacity, 1)).tolist()
        for row, clients in places.items():
            now[waiting[row]] = min(clients, key=lambda client: (share[client], client))
        is_late = group.starts_anywhere(tasks)
        is_late[list(places)] = False
        late = waiting[is_late]
        now[late] = _fresh(rows, group, late, target[late])
        target = target.copy()
        target[late] = now[late]
    return now, target


def _fresh(rows: Rows, group: Group, index: Ints, target: Ints) -> Ints:
    """Int [M]: a client without a copy, for tasks that start sooner from nothing.

    The next client after the target that has threads; the target if all have copies.
    """
    usable = np.flatnonzero(group.capacity > 0)
    behind = np.arange(1, rows.copy_client.shape[1] + 2)
    places = np.searchsorted(usable, target)[:, None] + behind[None, :]
    client = usable[places % len(usable)]
    is_free = ~(client[:, :, None] == rows.copy_client[index][:, None, :]).any(axis=2)
    first = client[np.arange(len(index)), is_free.argmax(axis=1)]
    return np.where(is_free.any(axis=1), first, target)


def _look(rows: Rows, clients: Ints, group: Group, anywhere: Bools) -> tuple[Bools, Bools, Bools]:
    """For each client in a matrix: has it no copy, is it caught up, is it stalled."""
    shape = clients.shape
    found, is_hot = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    is_stalled = np.zeros(shape, dtype=np.bool_)
    hot = group.is_caught_up(rows)
    for column in range(rows.copy_client.shape[1]):
        client = rows.copy_client[:, column][:, None]
        same = (clients == client) & (client >= 0)
        found |= same
        is_hot |= same & hot[:, column][:, None]
        is_stalled |= same & rows.copy_stalled[:, column][:, None]
    return ~found, np.where(found, is_hot, anywhere[:, None]), is_stalled


def _stand_ins(
    rows: Rows, group: Group, *, hot: Bools, active: Ints, target: Ints, belongs: Ints, wanted: int
) -> Ints:
    """Int [B, N]: caught-up copies that can replace late standbys, lowest lag first."""
    client = rows.copy_client
    able = hot & np.append(group.capacity > 0, np.False_)[client]
    able &= (client != active[:, None]) & (client != target[:, None])
    able &= ~(client[:, :, None] == belongs[:, None, :]).any(axis=2)
    order = np.lexsort((client, rows.copy_lag, ~able), axis=1)[:, :wanted]
    chosen = np.take_along_axis(client, order, axis=1)
    result = np.full((len(active), wanted), NOBODY, dtype=np.int64)
    result[:, : chosen.shape[1]] = np.where(np.take_along_axis(able, order, axis=1), chosen, NOBODY)
    return result


def granted(settling: Settling, grants: Ints, seen: Ints) -> Ints:
    """Int [B, 1 + N]: the granted copies; updates `seen`.

    Args:
        settling: the batch.
        grants: int [KINDS], grants of this chunk by kind.
        seen: int [KINDS], copies asked for so far; changed.
    """
    asked = settling.asked
    rows, columns = np.nonzero(asked != NOBODY)
    kinds = settling.kind[rows, columns]
    ranks = running_ranks(kinds, seen)
    given = np.full_like(asked, NOBODY)
    is_given = ranks < grants[kinds]
    given[rows[is_given], columns[is_given]] = asked[rows[is_given], columns[is_given]]
    return given


def share_grants(asked: dict[int, Ints], budget: int) -> dict[int, Ints]:
    """Chunk -> int [KINDS] grants within the budget: the most urgent kinds first."""
    grants = {chunk: np.zeros(KINDS, dtype=np.int64) for chunk in asked}
    for kind in range(KINDS):
        for chunk, counts in asked.items():
            given = min(budget, int(counts[kind]))
            grants[chunk][kind] = given
            budget -= given
    return grants
