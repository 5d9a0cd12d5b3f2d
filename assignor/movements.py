"""From where tasks belong to where they go now: nobody is started behind while another is ready.

An active task stays on its running owner until the target has caught up; meanwhile the target
builds a warm-up, an extra copy out of `max.warmup.replicas` for the whole group. A standby that
moves keeps its caught-up copy in the old place as long. (Kafka hands the active to the least loaded
caught-up copy meanwhile, so that actives hop at every probing rebalance.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.standbys import Standbys
from assignor.state import NOBODY, GroupState, IntArray, TaskAssignment


def actives_now(state: GroupState, target: IntArray, home: IntArray) -> IntArray:
    """Int [T]: who runs each stateful task from now on.

    First row that holds: the target, where it is caught up or nobody is; the home (the running
    owner); the caught-up client with the least load per thread; the target.
    """
    task, hot = state.copy_task(), state.is_caught_up()
    at_target = state.copy_client == target[task]
    ready = state.starts_anywhere()
    ready[task[at_target & ~hot]] = False
    ready[task[at_target & hot]] = True
    ready |= target == home
    now = np.where(ready, target, home)
    capacity = state.capacity()
    usable = hot & (capacity[state.copy_client] > 0)
    has_hot = np.zeros(len(state.tasks), dtype=np.bool_)
    has_hot[task[usable]] = True
    homeless = np.flatnonzero((now == NOBODY) & state.stateful)
    now[homeless] = np.where(has_hot[homeless], NOBODY, target[homeless])
    waiting = np.flatnonzero((now == NOBODY) & state.stateful).tolist()
    load = np.bincount(now[now != NOBODY], minlength=len(capacity)).tolist()
    threads = capacity.tolist()
    limit = state.config.acceptable_recovery_lag
    for one in sorted(
        waiting, key=lambda t: (int(state.copy_start[t + 1] - state.copy_start[t]), t)
    ):
        ready_clients = [c for c, lag in state.copies(one) if lag <= limit and threads[c] > 0]
        client = min(ready_clients, key=lambda c: (load[c] / threads[c], c))
        now[one] = client
        load[client] += 1
    return now


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A copy that is wanted but not caught up, while another does its work.

    Attributes:
        task, client: what to build, and where.
        is_active: it is to run the task in the end; otherwise it is a standby's new place.
        stalled: it has not come nearer since the last rebalance.
        started: it has state there already.
        caught_up: caught-up copies of the task; those with the fewest go first.
    """

    task: int
    client: int
    is_active: bool
    stalled: bool
    started: bool
    caught_up: int


@dataclass(slots=True, kw_only=True)
class _Copies:
    """Scratchpad: what each task's reported copies are worth, looked up by (task, client)."""

    lag: dict[int, dict[int, int]]
    stalled: set[tuple[int, int]]
    limit: int
    anywhere: list[bool]

    def is_hot(self, task: int, client: int) -> bool:
        lag = self.lag[task].get(client)
        return self.anywhere[task] if lag is None else lag <= self.limit

    def hot(self, task: int) -> list[int]:
        """Reported caught-up clients, nearest first."""
        found = [(lag, c) for c, lag in self.lag.get(task, {}).items() if lag <= self.limit]
        return [c for _, c in sorted(found)]

    def build(self, task: int, client: int, *, is_active: bool) -> Build:
        return Build(
            task=task,
            client=client,
            is_active=is_active,
            stalled=(task, client) in self.stalled,
            started=client in self.lag[task],
            caught_up=len(self.hot(task)),
        )


def _read_copies(state: GroupState, tasks: Sequence[int]) -> _Copies:
    lag: dict[int, dict[int, int]] = {task: dict(state.copies(task)) for task in tasks}
    where = np.flatnonzero(state.copy_stalled)
    copy_task = state.copy_task()
    return _Copies(
        lag=lag,
        stalled=set(zip(copy_task[where].tolist(), state.copy_client[where].tolist(), strict=True)),
        limit=state.config.acceptable_recovery_lag,
        anywhere=state.starts_anywhere().tolist(),
    )


def settle(
    state: GroupState,
    *,
    target: IntArray,
    now: IntArray,
    standbys: Standbys,
) -> TaskAssignment:
    """Copies of this rebalance, on the way to `target` and `standbys`.

    Args:
        state: the group.
        target: int [T], where actives belong; stateless ones included.
        now: int [T], where stateful actives go now.
        standbys: where standbys belong in the end.
    """
    active = np.where(state.stateful, now, target)
    touched, pairs = _unsettled(state, target, now, standbys)
    known = _read_copies(state, touched)
    usable = (state.capacity() > 0).tolist()
    wanted = state.config.num_standby_replicas
    belongs: dict[int, list[int]] = {task: [] for task in touched}
    for task, client in zip(standbys.task.tolist(), standbys.client.tolist(), strict=True):
        if task in belongs and client != now[task]:
            belongs[task].append(client)
    in_place: dict[int, list[int]] = {}
    builds: list[Build] = []
    for task, clients in belongs.items():
        hot, goal = known.hot(task), int(target[task])
        stay = [c for c in clients if known.is_hot(task, c)]
        late = [c for c in clients if not known.is_hot(task, c)]
        # Whoever is caught up stands in until the new places are.
        taken = {int(now[task]), goal, *clients}
        stand_ins = [c for c in hot if c not in taken and usable[c]]
        in_place[task] = stay + stand_ins[: max(0, wanted - len(stay))]
        if goal != now[task]:
            builds.append(known.build(task, goal, is_active=True))
        builds += [known.build(task, c, is_active=False) for c in late]
    more, warmups, followup = _within_budget(state, in_place, builds)
    return TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs + more)),
        warmups=tuple(sorted(warmups)),
        followup=followup,
        warnings=standbys.warnings,
    )


def _unsettled(
    state: GroupState, target: IntArray, now: IntArray, standbys: Standbys
) -> tuple[list[int], list[tuple[int, int]]]:
    """Tasks with something on the way, and the standby pairs of all others."""
    task, hot = state.copy_task(), state.is_caught_up()
    width = len(state.clients)
    keys, wanted = task * width + state.copy_client, standbys.task * width + standbys.client
    is_hot = np.isin(wanted, keys[hot])
    is_hot |= state.starts_anywhere()[standbys.task] & ~np.isin(wanted, keys)
    touched = state.stateful & (now != target)
    # A new copy in a free place has nobody to stand in for it: nothing to decide there.
    has_several = np.bincount(task[hot], minlength=len(state.tasks)) > 1
    late = standbys.task[~is_hot]
    touched[late] |= has_several[late]
    rest = ~touched[standbys.task]
    pairs = zip(standbys.task[rest].tolist(), standbys.client[rest].tolist(), strict=True)
    return np.flatnonzero(touched).tolist(), list(pairs)


def _within_budget(
    state: GroupState, in_place: dict[int, list[int]], builds: Sequence[Build]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """Start builds while places and warm-ups last; (pairs, warm-ups, follow-up wanted)."""
    wanted, budget = state.config.num_standby_replicas, state.config.max_warmup_replicas
    warmups: list[tuple[int, int]] = []
    followup = False
    # A client whose copies come no nearer gets no more of them to try until they do.
    stuck = {build.client for build in builds if build.stalled}
    for build in sorted(builds, key=_urgency):
        copies = in_place[build.task]
        is_hopeless = build.client in stuck and not build.started and len(copies) >= wanted
        if build.client in copies or is_hopeless:
            continue
        is_extra = len(copies) >= wanted
        if is_extra and len(warmups) >= budget:
            continue
        followup = followup or ((is_extra or build.is_active) and not build.stalled)
        copies.append(build.client)
        if is_extra:
            warmups.append((build.task, build.client))
    pairs = [(task, client) for task, clients in in_place.items() for client in clients]
    return pairs, warmups, followup


def _urgency(build: Build) -> tuple[bool, bool, bool, int, int, int]:
    return (
        build.stalled,
        not build.is_active,
        not build.started,
        build.caught_up,
        build.task,
        build.client,
    )
