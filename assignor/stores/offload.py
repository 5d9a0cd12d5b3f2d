"""A strategy for huge groups: answer at once, have a plan made elsewhere, take it at the follow-up.

A leader must answer within its poll interval, and a job that plans a million tasks takes longer.
So a group above the threshold keeps what it has, its state goes to the plan store, and a follow-up
rebalance is asked for. Whenever a plan lies there that fits the group, it is taken. Nothing ever
waits for a plan: without one, with a broken or an old one, the group keeps what it has, and the
reason is a warning.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from assignor.placement import (
    LAG_RUNNING,
    GroupState,
    IntArray,
    Strategy,
    TaskAssignment,
    fallback_prior,
    high_availability,
    is_ready,
    strategy_of,
    validate,
)
from assignor.stores.errors import StoreError
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from assignor.stores.plans import GroupPlan, PlanStore

TASKS_AT_LEAST = 50_000
"""Below this the strategies answer in a second or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row of the table of refusals: when it holds, and what to say."""

    name: str
    holds: Callable[[GroupState, GroupPlan, Fingerprint], bool]
    why: Callable[[GroupState, GroupPlan], str]


def why_not(state: GroupState, plan: GroupPlan) -> str:
    """Why a plan cannot be taken, or "" when it can; the first row of `REFUSALS` that holds."""
    now = fingerprint_of(state)
    row = next((row for row in REFUSALS if row.holds(state, plan, now)), None)
    return "" if row is None else f"{row.name}: {row.why(state, plan)}"


def _started_behind(state: GroupState, plan: GroupPlan) -> IntArray:
    """Tasks whose place was caught up when the plan was made, and is behind another now."""
    active = plan.assignment.active
    moved = state.stateful & (active != state.owner)
    has_ready = state.starts_anywhere()
    has_ready[state.copy_task()[state.is_caught_up()]] = True
    late = moved & plan.ready & has_ready & ~is_ready(state, active)
    return np.flatnonzero(late)


def _first_started_behind(state: GroupState, plan: GroupPlan) -> str:
    late = _started_behind(state, plan)
    task = int(late[0])
    client = state.clients[int(plan.assignment.active[task])]
    return f"{len(late)} tasks would start behind, the first is {state.tasks[task]} on {client}"


REFUSALS = (
    _Row(
        name="members changed",
        holds=lambda _, plan, now: plan.fingerprint.members != now.members,
        why=lambda state, _: f"the plan is for others than these {len(state.clients)} clients",
    ),
    _Row(
        name="topology changed",
        holds=lambda _, plan, now: plan.fingerprint.topology != now.topology,
        why=lambda state, _: (
            f"the plan is for others than these {len(state.tasks)} tasks, or for other settings"
        ),
    ),
    _Row(
        name="not valid",
        holds=lambda state, plan, _: bool(validate(state, plan.assignment)),
        why=lambda state, plan: validate(state, plan.assignment)[0].message,
    ),
    _Row(
        name="stale",
        holds=lambda state, plan, now: (
            plan.fingerprint.lags_epoch != now.lags_epoch and len(_started_behind(state, plan)) > 0
        ),
        why=_first_started_behind,
    ),
)
"""Why a plan is refused, in this order."""


class OffloadedPlans:
    """A strategy that takes plans from a store; give it to `StreamsAssignor(strategy=...)`.

    Args:
        store: where snapshots go and plans come from.
        group: id of the group in the store.
        tasks_at_least: smaller groups are placed here.
        strategy: for those, a function or a name; `high_availability` by default.
    """

    def __init__(
        self,
        store: PlanStore,
        *,
        group: str,
        tasks_at_least: int = TASKS_AT_LEAST,
        strategy: Strategy | str = high_availability,
    ) -> None:
        self._store, self._group = store, group
        self._tasks_at_least, self._strategy = tasks_at_least, strategy_of(strategy)
        self._asked: Fingerprint | None = None

    def __call__(self, state: GroupState) -> TaskAssignment:
        """Place the tasks: small groups here, large ones by a plan, or as they are."""
        if len(state.tasks) < self._tasks_at_least:
            return self._strategy(state)
        plan, why = self._plan(state)
        if plan is None:
            kept = fallback_prior(state)
            return self._asking(state, kept, f"{len(state.tasks)} tasks stay where they are: {why}")
        is_done = np.array_equal(plan.assignment.active, state.owner)
        if plan.assignment.followup and is_done:
            # A plan with warm-ups is one step; the next one starts where it led.
            return self._asking(state, plan.assignment, "")
        return plan.assignment

    def _plan(self, state: GroupState) -> tuple[GroupPlan | None, str]:
        try:
            plan = self._store.read_plan(self._group)
        except StoreError as error:
            return None, str(error)
        if plan is None:
            return None, "there is no plan yet"
        why = why_not(state, plan)
        return (None, f"the plan is refused, {why}") if why else (plan, "")

    def _asking(self, state: GroupState, answer: TaskAssignment, said: str) -> TaskAssignment:
        """The answer, with a wish for a plan of what comes of it, and for a follow-up."""
        wish = _after(state, answer)
        warnings = [said] if said else []
        fingerprint = fingerprint_of(wish)
        if fingerprint != self._asked:
            try:
                self._asked = self._store.write_snapshot(self._group, wish)
            except StoreError as error:
                warnings.append(f"no plan can be asked for: {error}")
        return replace(answer, followup=True, warnings=(*answer.warnings, *warnings))


def _after(state: GroupState, answer: TaskAssignment) -> GroupState:
    """The group as it will report: owners as answered, running there; other copies as they are."""
    width, rows = len(state.clients), state.copy_rows()
    running = np.flatnonzero(state.stateful)
    mine = np.zeros((len(running), 4), dtype=np.int64)
    mine[:, 0], mine[:, 1], mine[:, 2] = running, answer.active[running], LAG_RUNNING
    others = ~np.isin(rows[:, 0] * width + rows[:, 1], mine[:, 0] * width + mine[:, 1])
    return state.with_copies(
        np.concatenate([rows[others], mine]), owner=answer.active.copy(), warnings=()
    )
