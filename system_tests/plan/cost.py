"""What the steps of a plan cost, from the simulator: rebalances by cause, and pauses.

Each leg is bounced with several seeds, and the trace is cut where the operator stops the first
member of the next stage. The median seed is told: a plan promises what is usual, `matrix` proves
what is possible. The simulated state, rates and timeouts are the simulator's defaults, so numbers
compare ways with each other; they are no forecast of a cluster's seconds.
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
        membership, version, followup: rebalances, by cause.
        pause_ms: sum over all partitions; longest_pause_ms: the longest so far in this leg.
        restored: records of state that were read again.
    """

    membership: int
    version: int
    followup: int
    pause_ms: int
    longest_pause_ms: int
    restored: int

    @property
    def rebalances(self) -> int:
        """All of them."""
        return self.membership + self.version + self.followup


def step_costs(
    plan: UpgradePlan, *, members: int = 3, partitions: int = 6, seeds: int = 5
) -> tuple[StepCost, ...]:
    """Return what each step of a plan costs a group of this size."""
    costs = []
    for step in plan.steps:
        runs = [_step_run(plan, step, members, partitions, seed) for seed in range(seeds)]
        costs.append(
            StepCost(
                **{
                    name: median_low(getattr(one, name) for one in runs)
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
    if step.stage >= stages:  # a bounce for a format alone: the same program again
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
    """Return where a stage begins and ends in the trace."""
    stops = [at for at, one in enumerate(outcome.trace) if _is_stop(one)]
    begins = stops[stage * members] if stage else 0
    ends = stops[(stage + 1) * members] if stage + 1 < stages else len(outcome.trace)
    return begins, ends


def _is_stop(one: Happening) -> bool:
    return isinstance(one, Ended) and not one.failed


def _between(before: Sequence[Happening], until: Sequence[Happening]) -> StepCost:
    """Return what was added between two ends of the same trace."""
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
