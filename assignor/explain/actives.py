"""Why a task runs where it runs: the rule that decided, with its numbers.

An ordered table of rules; the first that holds gives the reason. A reason is read from the group
before, the answer, and the trace of the strategy. `assignor.explain.copies` does the same for
standbys and warm-ups; `what_if` tries out what would change the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass

from assignor.explain.facts import Facts
from assignor.placement import NOBODY
from probing.rules import Rule, Rules, always, first


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why something is where it is.

    Attributes:
        rule: the name of the rule that decided; the same for all tasks it decides.
        why: the sentence with this task's clients and numbers.
    """

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One active task, with what the rules need to know about it."""

    facts: Facts
    task: int
    owner: int
    now: int
    target: int

    @classmethod
    def of(cls, facts: Facts, task: int) -> "_Case":
        owner, now, target = facts.owner(task), facts.active[task], facts.target(task)
        return cls(facts=facts, task=task, owner=owner, now=now, target=target)

    @property
    def stays(self) -> bool:
        return self.now == self.owner

    @property
    def is_new(self) -> bool:
        return self.owner == NOBODY

    @property
    def waits(self) -> bool:
        return self.target not in {NOBODY, self.now}

    def hot(self, client: int) -> bool:
        return client != NOBODY and self.facts.is_caught_up(self.task, client)

    def lag(self, client: int) -> int | None:
        return self.facts.lag(self.task, client)

    @property
    def is_ready_somewhere(self) -> bool:
        return self.facts.is_ready_somewhere(self.task)

    def named(self, client: int) -> str:
        return self.facts.name(client)


def active_reason(facts: Facts, task: int) -> Reason:
    """Return why the task runs where the answer puts it."""
    case = _Case.of(facts, task)
    rule = first(_STATEFUL if facts.state.stateful[task] else _STATELESS, case)
    return Reason(rule=rule.name, why=rule.says(case))


def _within_limit(case: _Case) -> str:
    limit = case.facts.state.config.acceptable_recovery_lag
    return f"acceptable.recovery.lag is {limit:,}"


def _behind(case: _Case, client: int) -> str:
    """A clause on how far a client is behind."""
    lag = case.lag(client)
    if lag is None:
        rows = case.facts.restore_text(case.task, client)
        return f"{case.named(client)} has no state of it, {rows}"
    lag_text = case.facts.lag_text(case.task, client)
    return f"{case.named(client)} is at lag {lag_text}"


def _leaving(case: _Case) -> str:
    """A clause on why the task does not belong on its owner any more."""
    facts, trace, owner, goal = case.facts, case.facts.trace, case.owner, case.target
    if trace is None:
        return f"{case.named(owner)} ran it before"
    if trace.why:
        return trace.why
    if int(trace.home[case.task]) != owner:
        return f"{_behind(case, owner)}; {_within_limit(case)}"
    if facts.state.weights is not None:
        before, after = facts.work(facts.state.owner, owner), facts.work(trace.target, owner)
        return (
            f"work per thread of {case.named(owner)} goes from {before:.1f} to {after:.1f}: "
            "weights are balanced to within 4 % of the optimum"
        )
    if int(trace.balanced[case.task]) != goal:
        return _for_racks(case, owner, goal)
    return _for_balance(case)


def _for_racks(case: _Case, owner: int, goal: int) -> str:
    state = case.facts.state
    here = case.facts.crossed(state.partition_racks, case.task, owner)
    crossed_at_goal = case.facts.crossed(state.partition_racks, case.task, goal)
    strategy = state.config.rack_aware_assignment_strategy
    read = f"it reads {crossed_at_goal} partitions from other racks on {case.named(goal)}"
    if crossed_at_goal < here:
        return f"{strategy}: {read}, {here} on {case.named(owner)}"
    return (
        f"{strategy}: {read} as cheaply as on {case.named(owner)}, and another task takes its place"
    )


def _for_balance(case: _Case) -> str:
    facts, trace, owner, goal = case.facts, case.facts.trace, case.owner, case.target
    if trace is None:
        return f"{case.named(owner)} ran it before"
    held = facts.counted(trace.home)
    low, high = int(facts.bands.low[owner]), int(facts.bands.high[owner])
    band = f"{low}" if low == high else f"{low} to {high}"
    what = "stateful task" if int(held[owner]) == 1 else "stateful tasks"
    has = f"{case.named(owner)} has {int(held[owner])} {what} to keep, its band is {band}"
    if int(held[owner]) > high:
        least = "; none of its subtopology there has less to restore"
        return has + (least if facts.is_least_to_move(case.task) else "")
    goal_low = int(facts.bands.low[goal])
    if int(held[goal]) < goal_low:
        got = f"{case.named(goal)} has {int(held[goal])} and its band begins at {goal_low}"
        return f"{has}; {got}"
    return f"{has}, and other clients need tasks"


def _waiting(case: _Case) -> str:
    facts, task, goal = case.facts, case.task, case.target
    copies = facts.copies.get(task, [])
    why = f"it belongs on {case.named(goal)}: {_leaving(case)}"
    if goal in copies:
        kind = "warm-up" if (task, goal) in facts.warmups else "standby"
        part = slice(facts.state.copy_start[task], facts.state.copy_start[task + 1])
        is_here = facts.state.copy_client[part] == goal
        is_stalled = bool((facts.state.copy_stalled[part] & is_here).any())
        way = "made no progress since the last rebalance" if is_stalled else "is on its way"
        return f"{why}; the {kind} there {way}: {_behind(case, goal)}"
    budget = facts.state.config.max_warmup_replicas
    if facts.extra >= budget:
        which = "the 1 warm-up" if budget == 1 else f"one of the {budget} warm-ups"
        return f"{why}; it waits for {which} of max.warmup.replicas"
    state = facts.state
    is_stuck = state.stuck is not None and bool(state.stuck[goal])
    if is_stuck or (state.copy_stalled & (state.copy_client == goal)).any():
        return f"{why}; no copy is started there because other copies there make no progress"
    return f"{why}; no copy is started there yet"


def _kept(case: _Case) -> str:
    facts, client = case.facts, case.now
    count, high = int(facts.stateful_now[client]), int(facts.bands.high[client])
    low = int(facts.bands.low[client])
    if facts.state.weights is not None:
        return f"{case.named(client)} ran it before and is caught up"
    within = f"{count} stateful tasks, its band is {low} to {high}"
    if low <= count <= high:
        return f"{case.named(client)} ran it before, is caught up, and has {within}"
    return f"{case.named(client)} ran it before and is caught up"


def _kept_behind(case: _Case) -> str:
    return f"{_behind(case, case.now)}, and no client is caught up; {_within_limit(case)}"


def _took_over(case: _Case) -> str:
    lag_text = case.facts.lag_text(case.task, case.now)
    return f"no client runs it, and {case.named(case.now)} has a copy at lag {lag_text}"


def _nearest(case: _Case) -> str:
    others = [lag for _, lag in case.facts.state.copies(case.task)]
    lag = case.lag(case.now)
    best = ", the nearest copy" if others and lag == min(others) else ""
    return f"no client is caught up; {_behind(case, case.now)}{best}"


def _start(case: _Case) -> str:
    count, high = int(case.facts.stateful_now[case.now]), int(case.facts.bands.high[case.now])
    with_state = [case.named(client) for client, _ in case.facts.state.copies(case.task)]
    state = (
        f"only {', '.join(with_state[:3])} had state" if with_state else "no client has its state"
    )
    free = f"{case.named(case.now)} has free capacity: {count} stateful tasks of at most {high}"
    return f"{state}; {free}" if count <= high else f"{state}; {case.named(case.now)} takes it"


def _start_small(case: _Case) -> str:
    return f"all of its state is {case.facts.end_text(case.task)}; {_within_limit(case)}"


def _idle(case: _Case) -> str:
    return f"{case.named(case.owner)} has no threads"


def _failed_over(case: _Case) -> str:
    lag_text = case.facts.lag_text(case.task, case.now)
    ready = f"{case.named(case.now)} has it at lag {lag_text}"
    return f"{_behind(case, case.owner)}; {ready}; {_within_limit(case)}"


def _moved_hot(case: _Case) -> str:
    lag_text = case.facts.lag_text(case.task, case.now)
    ready = f"{case.named(case.now)} is caught up (lag {lag_text})"
    if case.lag(case.now) is None:
        ready = f"{case.named(case.now)} counts as caught up: {_start_small(case)}"
    return f"{_leaving(case)}; {ready}"


def _moved_cold(case: _Case) -> str:
    return f"{_leaving(case)}; {_behind(case, case.now)} and restores"


def _stateless_kept(case: _Case) -> str:
    count = int(case.facts.actives_now[case.now])
    return f"{case.named(case.now)} ran it before and has {count} tasks in total"


def _stateless_moved(case: _Case) -> str:
    facts, trace = case.facts, case.facts.trace
    before = int((facts.state.owner == case.owner).sum())
    after = int(facts.actives_now[case.owner])
    if trace is not None and trace.why:
        return trace.why
    if trace is not None and int(trace.balanced[case.task]) != case.now:
        return _for_racks(case, case.owner, case.now)
    had, has = int((facts.state.owner == case.now).sum()), int(facts.actives_now[case.now])
    return (
        f"{case.named(case.owner)} goes from {before} tasks in total to {after}, "
        f"{case.named(case.now)} from {had} to {has}"
    )


def _stateless_new(case: _Case) -> str:
    count = int(case.facts.actives_now[case.now])
    now = case.named(case.now)
    return f"no client ran it; {now} had free capacity and has {count} tasks in total now"


_Reasons = Rules[_Case, Callable[[_Case], str]]
_STATEFUL: _Reasons = (
    Rule("stays until its target has caught up", lambda c: c.stays and c.waits, _waiting),
    Rule("kept by its owner", lambda c: c.stays and c.hot(c.now), _kept),
    Rule(
        "stays with the existing state",
        lambda c: c.stays and not c.is_ready_somewhere,
        _kept_behind,
    ),
    Rule("stays although behind", lambda c: c.stays, lambda c: _behind(c, c.now)),
    Rule(
        "taken over by a caught-up copy",
        lambda c: c.is_new and c.hot(c.now) and c.lag(c.now) is not None,
        _took_over,
    ),
    Rule("started, little to restore", lambda c: c.is_new and c.hot(c.now), _start_small),
    Rule(
        "taken over by a copy that is behind",
        lambda c: c.is_new and c.lag(c.now) is not None,
        _nearest,
    ),
    Rule("started without state", lambda c: c.is_new, _start),
    Rule("leaves a client without threads", lambda c: not c.facts.threads[c.owner], _idle),
    Rule(
        "failed over to a caught-up copy",
        lambda c: c.hot(c.now) and not c.hot(c.owner),
        _failed_over,
    ),
    Rule("moved to a caught-up client", lambda c: c.hot(c.now), _moved_hot),
    Rule("moved to a copy that is behind", lambda c: c.lag(c.now) is not None, _moved_cold),
    Rule("moved, state restored", always, _moved_cold),
)
_STATELESS: _Reasons = (
    Rule("stateless, kept by its owner", lambda c: c.stays, _stateless_kept),
    Rule("stateless, started on a client with free capacity", lambda c: c.is_new, _stateless_new),
    Rule("leaves a client without threads", lambda c: not c.facts.threads[c.owner], _idle),
    Rule("stateless, moved", always, _stateless_moved),
)
