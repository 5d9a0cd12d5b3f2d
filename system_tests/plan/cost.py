"""Simulated cost of each step of a plan: rebalances by cause, pauses, restored records.

Each leg is bounced with several seeds. The trace is cut where the operator stops the first member
of the next stage. The result is the median over the seeds: a plan shows the usual cost, `matrix`
shows the possible one. State sizes, rates and timeouts are the simulator's defaults: use the
figures to compare paths, not to predict durations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from system_tests.plan.steps import PlanStep, UpgradePlan
from system_tests.rebalances import Rebalances
from system_tests.sim import (
    BounceOptions,
    Cost,
    Ended,
    Happening,
    Outcome,
    cost_of,
    count_rebalances,
    run_bounce,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """The cost of one step: medians over the seeds.

    Attributes:
        membership, version, followup: number of rebalances, by cause.
        pause_ms: processing pauses, summed over all partitions.
        longest_pause_ms: longest pause of one partition from the start of the leg to this step.
        restored: changelog records that were read to restore state.
    """

    membership: int
    version: int
    followup: int
    pause_ms: int
    longest_pause_ms: int
    restored: int

    @property
    def rebalances(self) -> int:
        """Number of rebalances, of all causes."""
        return self.membership + self.version + self.followup


def step_costs(
    plan: UpgradePlan, *, members: int = 3, partitions: int = 6, seeds: int = 5
) -> tuple[StepCost, ...]:
    """Return the cost of each step of a plan for a group of this size.

    Args:
        plan: the steps.
        members: processes of the simulated group.
        partitions: partitions of each source topic.
        seeds: number of simulated bounces for each step.
    """
    costs = []
    for step in plan.steps:
        runs = [_step_run(plan, step, members, partitions, seed) for seed in range(seeds)]
        costs.append(
            StepCost(
                **{
                    name: median_low(getattr(run, name) for run in runs)
                    for name in StepCost.__dataclass_fields__
                }
            )
        )
    return tuple(costs)


def _step_run(
    plan: UpgradePlan, step: PlanStep, members: int, partitions: int, seed: int
) -> StepCost:
    outcome = run_bounce(
        BounceOptions(
            seed=seed,
            old=plan.stops[step.leg],
            new=plan.stops[step.leg + 1],
            members=members,
            partitions=partitions,
            static="static" in plan.uses,
            offline=not step.rolling,
        )
    )
    stages = len(outcome.plan.stages)
    if (
        not 0 <= step.stage < stages
    ):  # this bounce only changes a format: same release before and after
        outcome = run_bounce(
            BounceOptions(
                seed=seed,
                old=step.release,
                new=step.release,
                members=members,
                partitions=partitions,
                static="static" in plan.uses,
            )
        )
        return _between((), outcome.trace)
    before, until = _cuts(outcome, step.stage, members, stages)
    return _between(outcome.trace[:before], outcome.trace[:until])


def _cuts(outcome: Outcome, stage: int, members: int, stages: int) -> tuple[int, int]:
    """Return the indexes in the trace at which a stage begins and ends."""
    stops = [at for at, event in enumerate(outcome.trace) if _is_stop(event)]
    begins = stops[stage * members] if stage else 0
    ends = stops[(stage + 1) * members] if stage + 1 < stages else len(outcome.trace)
    return begins, ends


def _is_stop(event: Happening) -> bool:
    return isinstance(event, Ended) and not event.failed


def _between(before: Sequence[Happening], until: Sequence[Happening]) -> StepCost:
    """Return the cost of what lies between two prefixes of the same trace."""
    old_cost, new_cost = (cost_of(trace, records_per_second=0) for trace in (before, until))
    old, new = count_rebalances(before), count_rebalances(until)
    return _difference(old, new, old_cost, new_cost)


def _difference(old: Rebalances, new: Rebalances, before: Cost, after: Cost) -> StepCost:
    return StepCost(
        membership=len(new.membership) - len(old.membership),
        version=len(new.version) - len(old.version),
        followup=len(new.followup) + len(new.repeated) - len(old.followup) - len(old.repeated),
        pause_ms=after.pause_ms - before.pause_ms,
        longest_pause_ms=after.longest_pause_ms,
        restored=after.restored - before.restored,
    )
