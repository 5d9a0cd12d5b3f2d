"""Simulated cost of each step of a plan: rebalances and pauses, their causes and their ranges.

Each leg is bounced with many seeds. A step begins where the operator stops its first member, and a
pause belongs to the step that has its middle. What pauses waited for is added up by cause: sessions
of members that stopped without leaving the group, state that is restored, and rebalances.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final

from system_tests.plan.cost.legs import Leg, back_legs, bounces_to_run, legs_of, options_of
from system_tests.plan.cost.runs import StepCost, StepRun, summed
from system_tests.plan.group import SimulatedGroup, scaled
from system_tests.plan.model import PlanStep
from system_tests.plan.steps import UpgradePlan
from system_tests.plan.workers import run_jobs, worker_count
from system_tests.sim import (
    BounceOutcome,
    Ended,
    Happening,
    Started,
    cost_of,
    count_rebalances,
    run_bounce,
)
from system_tests.sim.world import StateRates

_FEW: Final = 6
_Progress = Callable[[int], object]


def step_costs(
    plan: UpgradePlan,
    group: SimulatedGroup | None = None,
    *,
    seeds: int | None = None,
    progress: _Progress = lambda _: None,
) -> tuple[StepCost, ...]:
    """Return the cost of each step of a plan, and of its way back if that costs more than bounces.

    Args:
        plan: the steps.
        group: that is bounced; by default three members with six tasks.
        seeds: number of simulated bounces for each step; by default what suits the group.
        progress: called with 1 after each simulated bounce, and with 0 every second that one takes.
    """
    group = group or SimulatedGroup(is_static="static" in plan.uses)
    seeds = seeds or group.seeds
    costs = _costs_of(plan.steps, list(legs_of(plan)), group, seeds, progress)
    backs: dict[int, list[StepCost]] = {}
    undone = back_legs(plan)
    rows = [row for _, own in undone for row in own]
    steps, legs = [row.step for row in rows], [leg for leg, _ in undone]
    found = _costs_of(steps, legs, _grown(group, costs), seeds, progress)
    for row, cost in zip(rows, found, strict=True):
        backs.setdefault(row.number, []).append(cost)
    return tuple(
        replace(cost, back=summed(backs[number]) if number in backs else None)
        for number, cost in enumerate(costs, 1)
    )


def _costs_of(
    steps: Sequence[PlanStep],
    legs: Sequence[Leg],
    group: SimulatedGroup,
    seeds: int,
    progress: _Progress,
) -> list[StepCost]:
    """Simulate legs; returns the cost of each of their steps, which are given in the same order."""
    jobs = [(leg, seed) for leg in legs for seed in range(seeds)]
    size = group.members * group.threads
    results = list(run_jobs(partial(_run, group), jobs, size=size, progress=progress))
    by_leg = (results[at : at + seeds] for at in range(0, len(results), seeds))
    costs = [StepCost(runs) for own in by_leg for runs in zip(*own, strict=True)]
    return [_of_whole_group(cost, step, group) for step, cost in zip(steps, costs, strict=True)]


def _grown(group: SimulatedGroup, costs: Sequence[StepCost]) -> SimulatedGroup:
    """Return the group with the changelogs that it has after some steps, at the longest."""
    seconds = sum(cost.spread("duration_ms")[1] for cost in costs if cost.runs) / 1000
    rates = group.rates
    grown = [
        round(size + growth * seconds)
        for size, growth in zip(rates.sizes, rates.growths, strict=True)
    ]
    assumed = None if group.sizes else StateRates().growth
    growth = assumed if group.growth is None else group.growth
    return replace(group, sizes=tuple(grown), growth=growth)


def _of_whole_group(cost: StepCost, step: PlanStep, group: SimulatedGroup) -> StepCost:
    """Return the cost of a step for all members, and with what every copy reads at least.

    Members are bounced one after the other, so their rebalances and durations add up; a simulation
    of the whole group agrees (`test_sample.py`). It counts what partitions wait for, and not what
    copies read while they warm up: where state is deleted, all records are read.
    """
    records = group.all_records * step.deletes_state
    factor = group.size_factor if step.rolling else 1
    return StepCost(
        tuple(
            replace(
                run,
                restored=max(run.restored, records),
                membership=round(run.membership * factor),
                followup=round(run.followup * factor),
                duration_ms=round(run.duration_ms * factor),
            )
            for run in cost.all_runs
        )
    )


def estimated_s(
    plan: UpgradePlan,
    group: SimulatedGroup,
    seeds: int,
    *,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return roughly how many seconds `step_costs` takes, from a bounce of a few members.

    The time of a bounce grows with the square of the number of consumers, by measurement.

    Args:
        plan: as of `step_costs`.
        group: as of `step_costs`.
        seeds: as of `step_costs`.
        clock: seconds.
    """
    few = replace(scaled(group, {}, sample=min(_FEW, group.members)), notes=())
    began = clock()
    for leg in (*legs_of(plan), *(leg for leg, _ in back_legs(plan))):
        run_bounce(options_of(few, leg, seed=0))
    squared = (group.members / few.members) ** 2
    workers = worker_count(bounces_to_run(plan, seeds), group.members * group.threads)
    return (clock() - began) * squared * seeds / workers


def _run(group: SimulatedGroup, job: tuple[Leg, int]) -> tuple[StepRun, ...]:
    """Bounce a group once; returns the cost of each bounce on the way."""
    leg, seed = job
    outcome = run_bounce(options_of(group, leg, seed=seed))
    stages = len(leg.stages)
    return tuple(_stage_run(outcome, stage, stages, rate=group.restore) for stage in range(stages))


def _stage_run(outcome: BounceOutcome, stage: int, stages: int, *, rate: int) -> StepRun:
    trace, a_stage = outcome.trace, len(outcome.lanes)
    stops = [at for at, event in enumerate(trace) if _is_stop(event)]
    # Where the group never came to rest, nobody was stopped.
    begins = stops[stage * a_stage] if stage * a_stage < len(stops) else len(trace)
    is_last = stage + 1 == stages or (stage + 1) * a_stage >= len(stops)
    ends = len(trace) if is_last else stops[(stage + 1) * a_stage]
    from_ms = trace[begins].at_ms if begins < len(trace) else trace[-1].at_ms
    # A restore may last longer than the simulation.
    to_ms = inf if is_last else trace[ends].at_ms
    # One that began as the step before ended was prolonged by the next stop: its middle counts.
    pauses = [p for p in outcome.pauses if from_ms <= p.from_ms + p.pause_ms / 2 < to_ms]
    ended = [event.at_ms for event in trace[begins:ends] if isinstance(event, Started)]
    ended += [round(pause.from_ms + pause.pause_ms) for pause in pauses]
    before, after = (count_rebalances(trace[:at]) for at in (begins, ends))
    restored = [cost_of(trace[:at], records_per_second=0).restored for at in (begins, ends)]
    return StepRun(
        membership=len(after.membership) - len(before.membership),
        version=len(after.version) - len(before.version),
        followup=len(after.followup)
        + len(after.repeated)
        - len(before.followup)
        - len(before.repeated),
        pause_ms=round(sum(pause.pause_ms for pause in pauses)),
        longest_pause_ms=round(max((pause.pause_ms for pause in pauses), default=0)),
        restored=restored[1] - restored[0],
        session_ms=round(sum(pause.session_ms for pause in pauses)),
        restore_ms=round(sum(pause.restore_ms for pause in pauses)),
        largest=round(max((pause.restore_ms for pause in pauses), default=0) * rate / 1000),
        waiting=sum(pause.restore_ms > 0 for pause in pauses),
        duration_ms=max((round(at_ms - from_ms) for at_ms in ended), default=0),
        is_warming=is_last and outcome.is_warming,
        broken=outcome.broken,
        known=outcome.known,
    )


def _is_stop(event: Happening) -> bool:
    return isinstance(event, Ended) and not event.failed
