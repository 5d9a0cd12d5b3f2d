"""What would change the answer, tried out by asking the strategy again.

Each change is made to a copy of the group, and reported only if the strategy's answer changes for
the task. That costs one call of the strategy each, so it is done for one task at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from assignor.config import AssignmentConfig
from assignor.explain.facts import Facts
from assignor.placement import LAG_UNKNOWN, NOBODY, GroupState, IntArray, Strategy, run_strategy

_NEAREST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the group and what the strategy answers to it.

    Attributes:
        condition: the change, as the end of "if ...".
        active: index of the client that runs the task then.
        warms_up: index of the client on which a warm-up or standby of the task is started then and
            not now, or NOBODY.
    """

    condition: str
    active: int
    warms_up: int = NOBODY


def changes(facts: Facts, task: int, strategy: Strategy) -> list[Change]:
    """Return changes that make the task run elsewhere or start to move.

    Args:
        facts: the group and the answer.
        task: index of the task.
        strategy: the strategy that gave the answer.
    """
    found = []
    now, held = facts.active[task], set(facts.copies.get(task, ()))
    for condition, state in _tries(facts, task):
        answer = run_strategy(state, strategy)
        active = int(answer.active[task])
        started = sorted({c for t, c in answer.standbys if t == task} - held - {now})
        if active != now:
            found.append(Change(condition=condition, active=active))
        elif started and facts.target(task) in started:
            warms_up = facts.target(task)
            found.append(Change(condition=condition, active=active, warms_up=warms_up))
    return found


def _tries(facts: Facts, task: int) -> Iterator[tuple[str, GroupState]]:
    """Changes worth trying for this task, with the group after each."""
    state, now = facts.state, facts.active[task]
    if state.stateful[task]:
        for client in _near(facts, task):
            yield f"{facts.name(client)} were caught up on it", with_copy(state, task, client, 0)
    if facts.lag(task, now) is not None:
        yield f"{facts.name(now)} lost its state of it", with_copy(state, task, now, None)
    if sum(threads > 0 for threads in facts.threads) > 1:
        yield f"{facts.name(now)} left the group", without_client(state, now)
    for client in _with_more_threads(facts, task):
        threads = state.threads.copy()
        threads[client] += 1
        with_thread = replace(state, threads=threads)
        yield f"{facts.name(client)} had {int(threads[client])} threads", with_thread
    for condition, config in _settings(facts, task):
        yield condition, replace(state, config=config)


def _near(facts: Facts, task: int) -> list[int]:
    """Clients that are not caught up: where the task belongs, then the nearest."""
    reported = [(lag, client) for client, lag in facts.state.copies(task)]
    ranked = [facts.target(task), *(client for _, client in sorted(reported))]
    if facts.target(task) == facts.active[task]:
        loads = [(facts.stateful_now[c] / n, c) for c, n in enumerate(facts.threads) if n > 0]
        ranked.append(min(loads)[1])
    behind = [c for c in ranked if c != NOBODY and not facts.is_caught_up(task, c)]
    able = [c for c in dict.fromkeys(behind) if facts.threads[c] > 0 and c != facts.active[task]]
    return able[:_NEAREST]


def _with_more_threads(facts: Facts, task: int) -> list[int]:
    """Owner and caught-up clients on which the task does not run."""
    ready = [facts.owner(task), *facts.caught_up(task)]
    able = [c for c in dict.fromkeys(ready) if c != NOBODY and c != facts.active[task]]
    waits = facts.target(task) not in {NOBODY, facts.active[task]}
    return ([facts.active[task]] if waits else able)[:_NEAREST]


def _settings(facts: Facts, task: int) -> Iterator[tuple[str, AssignmentConfig]]:
    """Settings that may hold the task back, with the value that would release it."""
    config, target = facts.state.config, facts.target(task)
    if target not in {NOBODY, facts.active[task]}:
        lag = facts.to_restore(task, target)
        if facts.lag(task, target) != LAG_UNKNOWN and lag > config.acceptable_recovery_lag:
            changed = replace(config, acceptable_recovery_lag=lag)
            yield f"acceptable.recovery.lag were {lag}", changed
        if facts.extra >= config.max_warmup_replicas:
            stateful = facts.state.stateful
            waiting = int((stateful & (facts.assignment.active != _targets(facts))).sum())
            most = max(waiting, config.max_warmup_replicas + 1)
            changed = replace(config, max_warmup_replicas=most)
            yield f"max.warmup.replicas were {most}", changed
    if config.rack_aware_assignment_strategy != "none":
        changed = replace(config, rack_aware_assignment_strategy="none")
        yield "rack.aware.assignment.strategy were none", changed


def _targets(facts: Facts) -> IntArray:
    return facts.assignment.active if facts.trace is None else facts.trace.target


def with_copy(state: GroupState, task: int, client: int, lag: int | None) -> GroupState:
    """The group with another lag of one client for one task; None takes the state away."""
    rows = state.copy_rows()
    rows = rows[(rows[:, 0] != task) | (rows[:, 1] != client)]
    if lag is not None:
        rows = np.append(rows, np.array([[task, client, lag, 0]]), axis=0)
    return state.with_copies(rows)


def without_client(state: GroupState, client: int) -> GroupState:
    """The group as if the client were gone: it runs nothing, has no state and no threads.

    It stays in the columns, so that indexes keep their meaning. Another client must have threads.
    """
    threads = state.capacity().copy()
    threads[client] = 0
    rows = state.copy_rows()
    return state.with_copies(
        rows[rows[:, 1] != client],
        threads=threads,
        owner=np.where(state.owner == client, NOBODY, state.owner),
    )
