"""From where tasks belong to where they go now: nobody is started behind while another is ready.

An active task stays on its running owner until the target has caught up; meanwhile the target
builds a warm-up, an extra copy out of `max.warmup.replicas` for the whole group. A standby that
moves keeps its caught-up copy in the old place as long. (Kafka hands the active to the least loaded
caught-up copy meanwhile, so that actives hop at every probing rebalance.)
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from assignor.placement.arrays import is_among, rows_by_value
from assignor.placement.standbys import Standbys
from assignor.placement.state import NOBODY, BoolArray, GroupState, IntArray, TaskAssignment


def actives_now(state: GroupState, target: IntArray, home: IntArray) -> IntArray:
    """Int [T]: who runs each stateful task from now on.

    First row that holds: the target, where it is caught up; the home (the running owner); where
    nobody is caught up, the target, unless a copy is nearer by more than the acceptable recovery
    lag; the caught-up client, or the one with such a copy, with the least load per thread.
    """
    ready = is_ready(state, target) | (target == home)
    now = np.where(ready, target, home)
    homeless = np.flatnonzero((now == NOBODY) & state.stateful)
    if not len(homeless):
        return now
    able = _nearest_places(state, target, homeless)
    now[homeless] = target[homeless]
    if not able:
        return now
    waiting = homeless[[task in able for task in homeless.tolist()]]
    now[waiting] = NOBODY
    capacity = state.capacity()
    load = np.bincount(now[now != NOBODY], minlength=len(capacity)).tolist()
    threads = capacity.tolist()
    for one in sorted(waiting.tolist(), key=lambda t: (len(able[t]), t)):
        client = min(able[one], key=lambda c: (load[c] / threads[c], c))
        now[one] = client
        load[client] += 1
    return now


def _nearest_places(state: GroupState, target: IntArray, tasks: IntArray) -> dict[int, list[int]]:
    """Task -> usable clients that are caught up, or else nearer than its target by far.

    Tasks without such a client have no entry. By far: by more than the acceptable recovery lag.
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
    for one, copies in found.items():
        nearest = min(lags[row] for row in copies)
        # Caught up, all are alike; else only the nearest, where waiting for the target costs more.
        most = max(limit, nearest)
        if nearest <= limit or nearest < far[one] - limit:
            places[one] = [clients[row] for row in copies if lags[row] <= most]
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
    """A copy that is wanted but not caught up yet, in order of urgency.

    Attributes:
        is_stalled: it has not come nearer since the last rebalance, or is to be tried once more on
            a client where others did not.
        is_standby: it is a standby's new place; otherwise it is to run the task in the end.
        is_new: there is no state there yet.
        caught_up: caught-up copies of the task; those with the fewest go first.
        task, client: what to build, and where.
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
    """Copies of this rebalance, on the way to `target` and `standbys`.

    Args:
        state: the group.
        target: int [T], where actives belong; stateless ones included.
        now: int [T], where stateful actives go now.
        standbys: where standbys belong in the end.
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
            # Whoever is caught up stands in until the new places are.
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
    """Bool [C]: whether copies of each client were given up since they came no nearer."""
    nobody = np.zeros(len(state.clients), dtype=np.bool_)
    return nobody if state.stuck is None else state.stuck.copy()


def _waits_for_stuck(state: GroupState, target: IntArray, now: IntArray) -> bool:
    """Whether a task waits for a client whose copies come no nearer."""
    stuck = _stuck_clients(state)
    stuck[state.copy_client[state.copy_stalled & ~state.is_caught_up()]] = True
    return bool((stuck[target] & state.stateful & (now != target)).any())


def _unsettled(
    state: GroupState, target: IntArray, now: IntArray, standbys: Standbys
) -> tuple[list[int], list[tuple[int, int]], dict[int, list[int]]]:
    """Tasks with something on the way, standby pairs of all others, and standbys of those tasks."""
    task, hot = state.copy_task(), state.is_caught_up()
    width = len(state.clients)
    keys, wanted = task * width + state.copy_client, standbys.task * width + standbys.client
    is_hot = is_among(wanted, keys[hot])
    is_hot |= state.starts_anywhere()[standbys.task] & ~is_among(wanted, keys)
    touched = state.stateful & (now != target)
    # A new copy in a free place has nobody to stand in for it: nothing to decide there.
    has_several = np.bincount(task[hot], minlength=len(state.tasks)) > 1
    late = standbys.task[~is_hot]
    touched[late] |= has_several[late]
    if not state.config.num_standby_replicas:
        touched = _first_to_build(state, target, touched)
    rest = ~touched[standbys.task]
    pairs = zip(standbys.task[rest].tolist(), standbys.client[rest].tolist(), strict=True)
    belongs: dict[int, list[int]] = {}
    # A standby that belongs where the task runs now comes into being when it moves on.
    mine = ~rest & (standbys.client != now[standbys.task])
    for one, client in zip(
        standbys.task[mine].tolist(), standbys.client[mine].tolist(), strict=True
    ):
        belongs.setdefault(one, []).append(client)
    return np.flatnonzero(touched).tolist(), list(pairs), belongs


def _first_to_build(state: GroupState, target: IntArray, moving: BoolArray) -> BoolArray:
    """Bool [T]: of the tasks that move, those for whose warm-up there is room at all.

    Without standbys a task that waits for room has no copies to decide on, and where a million
    tasks wait, only so many are looked at. Same order as `Build`.
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
    """The order of builds as one number each, which sorts several times faster than tuples."""
    clients, tasks = len(state.clients), len(state.tasks)
    most = 1 + max((build.caught_up for build in builds), default=0)

    def key(build: Build) -> int:
        flags = 4 * build.is_stalled + 2 * build.is_standby + build.is_new
        return ((flags * most + build.caught_up) * tasks + build.task) * clients + build.client

    return key


def _within_budget(
    state: GroupState, in_place: dict[int, list[int]], builds: Sequence[Build]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Start builds while places and warm-ups last; (pairs, warm-ups, follow-up wanted)."""
    wanted, budget = state.config.num_standby_replicas, state.config.max_warmup_replicas
    warmups: list[tuple[int, int]] = []
    followup = False
    # A client whose copies come no nearer gets no more of them to try until they do.
    stuck = {build.client for build in builds if build.is_stalled and not build.is_new}
    for build in sorted(builds, key=_urgency(state, builds)):
        copies = in_place[build.task]
        is_extra = len(copies) >= wanted
        is_hopeless = is_extra and build.is_new and build.client in stuck
        if build.client in copies or is_hopeless or (is_extra and len(warmups) >= budget):
            continue
        # A standby in a free place is waited for by nobody.
        followup = followup or ((is_extra or not build.is_standby) and not build.is_stalled)
        copies.append(build.client)
        if is_extra:
            warmups.append((build.task, build.client))
    pairs = [(task, client) for task, clients in in_place.items() for client in clients]
    return pairs, warmups, followup
