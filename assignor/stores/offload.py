"""A strategy for huge groups: another job computes the plan, and a later rebalance applies it.

A leader must answer within its poll interval, but planning a million tasks takes longer. For a
group above the threshold the leader keeps the current assignment, writes the group state to the
plan store, and requests a follow-up rebalance. If the store has a plan that fits the group, the
leader uses it. The leader never waits for a plan: if there is none, or it is damaged or outdated,
the group keeps its assignment, and a warning gives the reason.
"""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from assignor.placement import (
    LAG_RUNNING,
    NOBODY,
    GroupState,
    IntArray,
    Strategy,
    TaskAssignment,
    Violation,
    fallback_prior,
    high_availability,
    is_ready,
    strategy_of,
    validate,
)
from assignor.stores.errors import StoreError
from assignor.stores.fingerprint import Fingerprint, fingerprint_of
from assignor.stores.plans import GroupPlan, PlanStore
from probing.rules import Rule, Rules, first_or_none

TASKS_AT_LEAST = 50_000
"""Default threshold: below it, a strategy answers within about two seconds."""


class _Offer(NamedTuple):
    """Inputs of a row: a group, a plan from the store, and the fingerprint of the group now."""

    state: GroupState
    plan: GroupPlan
    now: Fingerprint

    @property
    def clients(self) -> int:
        return len(self.state.clients)

    @property
    def tasks(self) -> int:
        return len(self.state.tasks)

    @property
    def problems(self) -> tuple[Violation, ...]:
        return validate(self.state, self.plan.assignment)

    @property
    def started_behind(self) -> IntArray:
        """Tasks whose planned client was caught up then and is not now, unlike another copy.

        A task that the plan leaves where it ran does not start, also if no member reports to run it
        now: a member that restores it reports its offsets instead.
        """
        state, plan = self.state, self.plan
        active = plan.assignment.active
        moved = state.stateful & (active != state.owner)
        if plan.moves is not None:
            moved &= plan.moves | (state.owner != NOBODY)
        has_ready = state.starts_anywhere()
        has_ready[state.copy_task()[state.is_caught_up()]] = True
        late = moved & plan.ready & has_ready & ~is_ready(state, active)
        return np.flatnonzero(late)

    @property
    def behind(self) -> str:
        """Number of these tasks, and the first one with its client."""
        late = self.started_behind
        task = int(late[0])
        client = self.state.clients[int(self.plan.assignment.active[task])]
        return (
            f"{len(late)} tasks would start on copies that are not caught up, "
            f"for example {self.state.tasks[task]} on {client}"
        )


_AGAIN = "run the Spark job again"

REFUSALS: Final[Rules[_Offer, str]] = (
    Rule(
        name="members changed",
        holds=lambda o: o.plan.fingerprint.members != o.now.members,
        says=f"{_AGAIN}; without a state_dir, each restart of a member makes a new client",
        why="the plan was not made for the current {clients} clients with their threads, racks and"
        " tags",
    ),
    Rule(
        name="topology changed",
        holds=lambda o: o.plan.fingerprint.topology != o.now.topology,
        says=_AGAIN,
        why="the plan was not made for the current {tasks} tasks and settings",
    ),
    Rule(
        name="not valid",
        holds=lambda o: bool(o.problems),
        says=_AGAIN,
        why="{problems[0].message}",
    ),
    Rule(
        name="stale",
        holds=lambda o: len(o.started_behind) > 0,
        says=f"wait for their restore, or {_AGAIN}",
        why="{behind}",
    ),
)
"""Reasons to reject a plan, with what helps; if none holds, the plan is used."""


def why_not(state: GroupState, plan: GroupPlan) -> str:
    """Return why a plan cannot be used: the first row of `REFUSALS` that holds; "" if it can."""
    offer = _Offer(state, plan, fingerprint_of(state))
    rule = first_or_none(REFUSALS, offer)
    return "" if rule is None else f"{rule.name}: {rule.sentence(offer)}; {rule.says}"


class OffloadedPlans:
    """A strategy that uses plans from a store; pass it to `StreamsAssignor(strategy=...)`.

    Args:
        store: the store for group states and plans.
        group: group id in the store.
        tasks_at_least: groups with fewer tasks use `strategy` directly.
        strategy: strategy for smaller groups, a function or a name.
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
        self._requested: Fingerprint | None = None

    def __call__(self, state: GroupState) -> TaskAssignment:
        """Return the assignment: of small groups by the strategy, of large groups by a plan."""
        if len(state.tasks) < self._tasks_at_least:
            return self._strategy(state)
        plan, why = self._plan(state)
        if plan is None:
            kept = fallback_prior(state)
            return self._with_request(
                state, kept, f"{len(state.tasks)} tasks stay where they are: {why}"
            )
        is_done = np.array_equal(plan.assignment.active, state.owner)
        if plan.assignment.followup and is_done:
            # A plan with warm-ups is one step; the next plan starts from its result.
            return self._with_request(state, plan.assignment, "")
        return plan.assignment

    def _plan(self, state: GroupState) -> tuple[GroupPlan | None, str]:
        try:
            plan = self._store.read_plan(self._group, state=state)
        except StoreError as error:
            return None, f"{error}; {_AGAIN}"
        if plan is None:
            return None, "there is no plan yet; run the Spark job (spark-assign batch --store)"
        why = why_not(state, plan)
        return (None, f"the plan is rejected ({why})") if why else (plan, "")

    def _with_request(
        self, state: GroupState, answer: TaskAssignment, warning: str
    ) -> TaskAssignment:
        """Return the answer with a follow-up, after requesting a plan for the resulting state."""
        next_state = _after(state, answer)
        warnings = [warning] if warning else []
        if fingerprint_of(next_state) != self._requested:
            try:
                self._requested = self._store.write_snapshot(self._group, next_state)
            except StoreError as error:
                warnings.append(f"no plan can be requested: {error}")
        return replace(answer, followup=True, warnings=(*answer.warnings, *warnings))


def _after(state: GroupState, answer: TaskAssignment) -> GroupState:
    """Return the group state after the answer: tasks run on their new clients; copies are kept."""
    width, rows = len(state.clients), state.copy_rows()
    running = np.flatnonzero(state.stateful)
    running_rows = np.zeros((len(running), 4), dtype=np.int64)
    running_rows[:, 0], running_rows[:, 1], running_rows[:, 2] = (
        running,
        answer.active[running],
        LAG_RUNNING,
    )
    others = ~np.isin(
        rows[:, 0] * width + rows[:, 1], running_rows[:, 0] * width + running_rows[:, 1]
    )
    return state.with_copies(
        np.concatenate([rows[others], running_rows]), owner=answer.active.copy(), warnings=()
    )
