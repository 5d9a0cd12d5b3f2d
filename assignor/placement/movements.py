"""The assignment of this rebalance, as a step towards the final places.

An active task stays on its running owner until the target has caught up. Meanwhile the target
builds a warm-up, an extra copy; `max.warmup.replicas` limits their number in the whole group. A
standby that moves keeps its caught-up copy in the old place for as long. (Kafka moves the active to
the least loaded caught-up copy meanwhile, so that actives move at every probing rebalance.)
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from assignor.placement.arrays import is_among, rows_by_value
from assignor.placement.standbys import Standbys
from assignor.placement.state import NOBODY, BoolArray, GroupState, IntArray, TaskAssignment


def actives_now(state: GroupState, target: IntArray, home: IntArray) -> IntArray:
    """Int [T]: the client that runs each stateful task after this rebalance.

    It is, by the first rule that applies:

    1. the target, if it is caught up;
    2. the home, which is the running owner;
    3. the target, if no client is caught up and no copy has a lag that is smaller than the target's
       by more than the acceptable recovery lag;
    4. of the caught-up clients, else of those with such a copy, the least loaded per thread.

    Args:
        state: the group.
        target: int [T], the client that is to run each stateful task in the end, or NOBODY.
        home: int [T], from `assignor.placement.actives.homes`.
    """
    ready = is_ready(state, target) | (target == home)
    now = np.where(ready, target, home)
    homeless = np.flatnonzero((now == NOBODY) & state.stateful)
    if not len(homeless):
        return now
    able = nearest_places(state, target, homeless)
    now[homeless] = target[homeless]
    if not able:
        return now
    waiting = homeless[[task in able for task in homeless.tolist()]]
    now[waiting] = NOBODY
    capacity = state.capacity()
    load = np.bincount(now[now != NOBODY], minlength=len(capacity)).tolist()
    threads = capacity.tolist()
    for task in sorted(waiting.tolist(), key=lambda t: (len(able[t]), t)):
        client = min(able[task], key=lambda c: (load[c] / threads[c], c))
        now[task] = client
        load[client] += 1
    return now


def nearest_places(state: GroupState, target: IntArray, tasks: IntArray) -> dict[int, list[int]]:
    """Task -> usable caught-up clients, else those with a much smaller lag than the target.

    Tasks without such a client have no entry. Much smaller: by more than the acceptable recovery
    lag.
    """
    limit = state.config.acceptable_recovery_lag
    is_asked = np.zeros(len(state.tasks), dtype=np.bool_)
    is_asked[tasks] = True
    task = state.copy_task()
    rows = np.flatnonzero(is_asked[task] & (state.capacity()[state.copy_client] > 0))
    if not len(rows):
        return {}
    at_target = state.copy_client == target[task]
    lag = state.end_offset_sums.copy()
    lag[task[at_target]] = state.copy_lag[at_target]
    far, found = lag.tolist(), rows_by_value(task[rows], rows)
    clients, lags = state.copy_client.tolist(), state.copy_lag.tolist()
    places: dict[int, list[int]] = {}
    for waiting, copies in found.items():
        nearest = min(lags[row] for row in copies)
        # All caught-up clients are equal. Else only the nearest, if the target is much further.
        most = max(limit, nearest)
        if nearest <= limit or nearest < far[waiting] - limit:
            places[waiting] = [clients[row] for row in copies if lags[row] <= most]
    return places


def is_ready(state: GroupState, active: IntArray) -> BoolArray:
    """Bool [T]: whether the client of each active task is caught up on it."""
    task, hot = state.copy_task(), state.is_caught_up()
    in_place = state.copy_client == active[task]
    ready = state.starts_anywhere()
    ready[task[in_place & ~hot]] = False
    ready[task[in_place & hot]] = True
    return ready


class Build(NamedTuple):
    """A copy that is wanted but not caught up; the order of the fields is the order of urgency.

    Attributes:
        is_stalled: its lag did not shrink since the last rebalance, or it is a new attempt on a
            client whose earlier copies were given up for that.
        is_standby: it is the new place of a standby; otherwise the client is to run the task.
        is_new: the client has no state of the task.
        caught_up: number of caught-up copies of the task; tasks with few come first.
        task, client: the task and the client that builds its copy.
    """

    is_stalled: bool
    is_standby: bool
    is_new: bool
    caught_up: int
    task: int
    client: int


def settle(
    state: GroupState, *, target: IntArray, now: IntArray, standbys: Standbys
) -> TaskAssignment:
    """The assignment of this rebalance, a step towards `target` and `standbys`.

    Args:
        state: the group.
        target: int [T], the final client of each active task, stateless ones included.
        now: int [T], the client of each stateful active task after this rebalance.
        standbys: the final places of standbys.
    """
    active = np.where(state.stateful, now, target)
    touched, pairs, belongs = _unsettled(state, target, now, standbys)
    in_place: dict[int, list[int]] = {}
    builds: list[Build] = []
    starts, clients_of = state.copy_start.tolist(), state.copy_client.tolist()
    lags, stalled = state.copy_lag.tolist(), state.copy_stalled.tolist()
    anywhere, running, goals = state.starts_anywhere().tolist(), now.tolist(), target.tolist()
    usable = (state.capacity() > 0).tolist()
    limit, wanted = state.config.acceptable_recovery_lag, state.config.num_standby_replicas
    stuck = _stuck_clients(state).tolist()
    for task in touched:
        first, last = starts[task], starts[task + 1]
        places, behind = clients_of[first:last], lags[first:last]
        hot = [c for lag, c in sorted(zip(behind, places, strict=True)) if lag <= limit]
        stay: list[int] = []
        late: list[int] = []
        for client in belongs.get(task, ()):
            is_new = client not in places
            is_hot = anywhere[task] if is_new else behind[places.index(client)] <= limit
            (stay if is_hot else late).append(client)
        runs, goal = running[task], goals[task]
        if len(stay) < wanted:
            # Caught-up copies stay as standbys until the new ones are caught up.
            taken = {runs, goal, *stay, *late}
            stand_ins = [c for c in hot if c not in taken and usable[c]]
            stay += stand_ins[: wanted - len(stay)]
        in_place[task] = stay
        for client in late if goal == runs else (goal, *late):
            is_new = client not in places
            is_stalled = stuck[client] if is_new else stalled[first + places.index(client)]
            builds.append(Build(is_stalled, client != goal, is_new, len(hot), task, client))
    more, warmups, followup = _within_budget(state, in_place, builds)
    return TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs + more)),
        warmups=tuple(sorted(warmups)),
        followup=followup,
        look_again=not followup and _waits_for_stuck(state, target, now),
        warnings=standbys.warnings,
    )


def _stuck_clients(state: GroupState) -> BoolArray:
    """Bool [C]: whether copies of each client were given up since they made no progress."""
    nobody = np.zeros(len(state.clients), dtype=np.bool_)
    return nobody if state.stuck is None else state.stuck.copy()


def _waits_for_stuck(state: GroupState, target: IntArray, now: IntArray) -> bool:
    """Whether a task waits for a client whose copies make no progress."""
    stuck = _stuck_clients(state)
    stuck[state.copy_client[state.copy_stalled & ~state.is_caught_up()]] = True
    return bool((stuck[target] & state.stateful & (now != target)).any())


def _unsettled(
    state: GroupState, target: IntArray, now: IntArray, standbys: Standbys
) -> tuple[list[int], list[tuple[int, int]], dict[int, list[int]]]:
    """Unsettled tasks, standby pairs of all other tasks, and task -> standbys of unsettled tasks.

    A task is unsettled if it moves, or if copies of it are not caught up.
    """
    task, hot = state.copy_task(), state.is_caught_up()
    width = len(state.clients)
    keys, wanted = task * width + state.copy_client, standbys.task * width + standbys.client
    is_hot = is_among(wanted, keys[hot])
    is_hot |= state.starts_anywhere()[standbys.task] & ~is_among(wanted, keys)
    touched = state.stateful & (now != target)
    # A new copy that replaces none: no other copy could stay in its place, so it is settled.
    has_several = np.bincount(task[hot], minlength=len(state.tasks)) > 1
    late = standbys.task[~is_hot]
    touched[late] |= has_several[late]
    if not state.config.num_standby_replicas:
        touched = _first_to_build(state, target, touched)
    rest = ~touched[standbys.task]
    pairs = zip(standbys.task[rest].tolist(), standbys.client[rest].tolist(), strict=True)
    belongs: dict[int, list[int]] = {}
    # A standby whose client runs the task now is created once the task has moved.
    is_unsettled = ~rest & (standbys.client != now[standbys.task])
    for unsettled, client in zip(
        standbys.task[is_unsettled].tolist(), standbys.client[is_unsettled].tolist(), strict=True
    ):
        belongs.setdefault(unsettled, []).append(client)
    return np.flatnonzero(touched).tolist(), list(pairs), belongs


def _first_to_build(state: GroupState, target: IntArray, moving: BoolArray) -> BoolArray:
    """Bool [T]: of the moving tasks, those whose warm-up is within max.warmup.replicas.

    Only for groups without standbys: a task that waits for a warm-up then has no copies to decide
    on, so that of a million waiting tasks only a few are examined. The order is that of `Build`.
    """
    task = np.flatnonzero(moving)
    copy_task, width = state.copy_task(), len(state.clients)
    keys, wanted = copy_task * width + state.copy_client, task * width + target[task]
    is_new = ~is_among(wanted, keys)
    is_stalled = is_among(wanted, keys[state.copy_stalled])
    given_up = is_new & _stuck_clients(state)[target[task]]
    caught_up = np.bincount(copy_task[state.is_caught_up()], minlength=len(moving))[task]
    is_stuck = np.zeros(width, dtype=np.bool_)
    is_stuck[target[task[is_stalled]]] = True
    able = np.flatnonzero(~(is_new & is_stuck[target[task]]))
    is_last = is_stalled | given_up
    order = np.lexsort((task[able], caught_up[able], is_new[able], is_last[able]))
    first = task[able[order[: state.config.max_warmup_replicas]]]
    chosen = np.zeros(len(moving), dtype=np.bool_)
    chosen[first] = True
    return chosen


def _urgency(state: GroupState, builds: Sequence[Build]) -> Callable[[Build], int]:
    """A sort key for builds: one number each, which sorts several times faster than tuples."""
    clients, tasks = len(state.clients), len(state.tasks)
    most = 1 + max((build.caught_up for build in builds), default=0)

    def key(build: Build) -> int:
        flags = 4 * build.is_stalled + 2 * build.is_standby + build.is_new
        return ((flags * most + build.caught_up) * tasks + build.task) * clients + build.client

    return key


def _within_budget(
    state: GroupState, in_place: dict[int, list[int]], builds: Sequence[Build]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Start builds as the numbers of standbys and warm-ups allow.

    Returns:
        (task, client) pairs of all standbys and warm-ups, those of the warm-ups, and whether a
        follow-up rebalance is wanted.
    """
    wanted, budget = state.config.num_standby_replicas, state.config.max_warmup_replicas
    warmups: list[tuple[int, int]] = []
    followup = False
    # A client whose copies make no progress gets no further copies until they do.
    stuck = {build.client for build in builds if build.is_stalled and not build.is_new}
    for build in sorted(builds, key=_urgency(state, builds)):
        copies = in_place[build.task]
        is_extra = len(copies) >= wanted
        is_hopeless = is_extra and build.is_new and build.client in stuck
        if build.client in copies or is_hopeless or (is_extra and len(warmups) >= budget):
            continue
        # No task waits for a standby that replaces no other.
        followup = followup or ((is_extra or not build.is_standby) and not build.is_stalled)
        copies.append(build.client)
        if is_extra:
            warmups.append((build.task, build.client))
    pairs = [(task, client) for task, clients in in_place.items() for client in clients]
    return pairs, warmups, followup
