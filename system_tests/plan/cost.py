"""Simulated cost of each step of a plan: rebalances and pauses, their causes and their ranges.

Each leg is bounced with many seeds. A step begins where the operator stops its first member, and a
pause belongs to the step that has its middle. What pauses waited for is added up by cause: sessions
of members that stopped without leaving the group, state that is restored, and rebalances.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from statistics import median_low
from typing import Final, NamedTuple

from probing import Bounce
from system_tests.plan.group import SimulatedGroup, scaled
from system_tests.plan.model import PlanStep
from system_tests.plan.steps import UpgradePlan
from system_tests.plan.workers import run_jobs, worker_count
from system_tests.sim import (
    BounceOptions,
    Broken,
    Ended,
    Happening,
    Outcome,
    Started,
    cost_of,
    count_rebalances,
    plan_bounce,
    run_bounce,
)

_LOW, _HIGH = 0.05, 0.95
_FEW: Final = 6
DEADLY: Final = frozenset({"nobody dies", "answers are readable"})
"""Rules that are broken where a member ends by itself."""
FEWEST_FOR_PERCENTILES: Final = 20
"""Of fewer values none lies below 5 % and none above 95 %."""


class Leg(NamedTuple):
    """What is simulated as one: the steps between two consecutive stops.

    Attributes:
        old: release that the members run before.
        stages: release and `upgrade.from` of each bounce, in order.
        offline: all members are stopped.
    """

    old: str
    stages: tuple[tuple[str, str | None], ...]
    offline: bool

    @property
    def new(self) -> str:
        """Release that the members run after."""
        return self.stages[-1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRun:
    """The cost of one step in one simulated bounce; times in ms.

    Attributes:
        membership, version, followup: number of rebalances, by cause.
        pause_ms: processing pauses, summed over all partitions.
        longest_pause_ms: longest pause of one partition.
        restored: changelog records to read to restore state; what is left of a restore that a
            rebalance interrupts counts again.
        session_ms, restore_ms: of `pause_ms`, waiting for sessions and for state.
        largest: records that were read during the longest wait of a partition for state.
        waiting: pauses of partitions that waited for state.
        duration_ms: from the stop of the first member until the last one is started and every pause
            is over, without copies that warm up afterwards.
        is_warming: copies still warmed up when the simulation ended.
        broken: rules that the whole bounce broke, each with its sentence; then it is not a cost.
        known: ids of known issues of such a group, which may explain `broken`.
    """

    membership: int
    version: int
    followup: int
    pause_ms: int
    longest_pause_ms: int
    restored: int
    session_ms: int
    restore_ms: int
    largest: int = 0
    waiting: int = 0
    duration_ms: int = 0
    is_warming: bool = False
    broken: tuple[Broken, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def rebalances(self) -> int:
        """Number of rebalances, of all causes."""
        return self.membership + self.version + self.followup

    @property
    def rebalance_ms(self) -> int:
        """Of `pause_ms`, what is neither session nor restore: the rebalances themselves."""
        return self.pause_ms - self.session_ms - self.restore_ms


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of one step over all seeds; `all_runs` has one run for each seed, in order."""

    all_runs: tuple[StepRun, ...]

    @property
    def runs(self) -> tuple[StepRun, ...]:
        """The runs that broke no rule; the others are not costs."""
        return tuple(run for run in self.all_runs if not run.broken)

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The first rule that each other run broke; a member that ended is named first."""
        every = (run.broken for run in self.all_runs if run.broken)
        return tuple(min(found, key=lambda broken: broken.rule not in DEADLY) for found in every)

    @property
    def kills(self) -> bool:
        """Whether members ended by themselves in one of the runs."""
        return any(broken.rule in DEADLY for broken in self.broken)

    @property
    def is_bad(self) -> bool:
        """Whether a bounce broke a rule, also one that a known issue of Kafka explains."""
        return bool(self.broken)

    @property
    def is_cost(self) -> bool:
        """Whether there are figures: no member ended, and some runs broke no rule."""
        return bool(self.runs) and not self.kills

    @property
    def verdict(self) -> tuple[str, ...]:
        """What is wrong, as sentences: members that end, or a broken rule; often nothing."""
        if not self.broken:
            return ()
        first = next((found for found in self.broken if found.rule in DEADLY), self.broken[0])
        known = sorted({name for run in self.all_runs for name in run.known})
        issues = f" ({', '.join(known)})" if known else ""
        often = f"{len(self.broken)} of {len(self.all_runs)} simulated bounces"
        what = (
            f"this way kills members: in {often}, {first.sentence}"
            if self.kills
            else f"{often} broke a rule{issues}: {first.rule}: {first.sentence}"
        )
        costs = "these bounces are not costs" if self.is_cost else "this step has no costs"
        return what, costs

    def usual(self, name: str) -> int:
        """Return the median of a field of `StepRun`."""
        return median_low(self._values(name))

    def spread(self, name: str) -> tuple[int, int]:
        """Return the range from 5 % to 95 % of a field of `StepRun`, by nearest rank.

        Of fewer runs than `FEWEST_FOR_PERCENTILES` it is from the smallest to the largest value.
        """
        values = sorted(self._values(name))
        low, high = (
            values[min(len(values) - 1, int(share * len(values)))] for share in (_LOW, _HIGH)
        )
        return low, high

    def middle(self, name: str) -> StepRun:
        """Return the run with the median of a field of `StepRun`."""
        return sorted(self.runs, key=lambda run: getattr(run, name))[(len(self.runs) - 1) // 2]

    @property
    def is_warming(self) -> bool:
        """Whether copies still warmed up when one of the simulations ended."""
        return any(run.is_warming for run in self.runs)

    def share(self, name: str) -> float:
        """Return the part of all pauses that a cause has, 0 to 1."""
        return sum(self._values(name)) / max(1, sum(self._values("pause_ms")))

    def _values(self, name: str) -> list[int]:
        return [getattr(run, name) for run in self.runs]


def step_costs(
    plan: UpgradePlan,
    group: SimulatedGroup | None = None,
    *,
    seeds: int | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> tuple[StepCost, ...]:
    """Return the cost of each step of a plan.

    Args:
        plan: the steps.
        group: that is bounced; by default three members with six tasks.
        seeds: number of simulated bounces for each step; by default what suits the group.
        progress: called with 1 after each simulated bounce, and with 0 every second that one takes.
    """
    group = group or SimulatedGroup(is_static="static" in plan.uses)
    legs = legs_of(plan)
    jobs = [(leg, seed) for leg in legs for seed in range(seeds or group.seeds)]
    found: dict[Leg, list[tuple[StepRun, ...]]] = {leg: [] for leg in legs}
    run = partial(_run, group)
    results = run_jobs(run, jobs, size=group.members * group.threads, progress=progress)
    for (leg, _), stages in zip(jobs, results, strict=True):
        found[leg].append(stages)
    costs = (
        StepCost(tuple(stages[number] for stages in found[leg]))
        for leg, numbers in legs.items()
        for number in range(len(numbers))
    )
    return tuple(
        _of_whole_group(cost, step, group) for step, cost in zip(plan.steps, costs, strict=True)
    )


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
    for leg in legs_of(plan):
        run_bounce(options_of(few, leg, seed=0))
    squared = (group.members / few.members) ** 2
    workers = worker_count(bounces_to_run(plan, seeds), group.members * group.threads)
    return (clock() - began) * squared * seeds / workers


def bounces_to_run(plan: UpgradePlan, seeds: int) -> int:
    """Return how many bounces `step_costs` simulates."""
    return len(legs_of(plan)) * seeds


def check_group(plan: UpgradePlan, group: SimulatedGroup) -> None:
    """Check that the bounces of a plan can be simulated with a group.

    Raises:
        OptionError: members of one of the releases cannot be static.
    """
    for leg in legs_of(plan):
        plan_bounce(options_of(group, leg, seed=0))


def legs_of(plan: UpgradePlan) -> dict[Leg, tuple[int, ...]]:
    """Return what is simulated for a plan, in order: each leg -> the numbers of its steps."""
    found: dict[Leg, tuple[int, ...]] = {}
    numbered = enumerate(plan.steps, 1)
    for _, steps in groupby(numbered, key=lambda row: row[1].leg):
        numbers, own = zip(*steps, strict=True)
        stages = tuple((step.release, step.upgrade_from) for step in own)
        found[Leg(own[0].old, stages, offline=not own[0].rolling)] = numbers
    return found


def options_of(group: SimulatedGroup, leg: Leg, *, seed: int) -> BounceOptions:
    """Return the options of one simulated bounce, which does what the steps of a leg say."""
    stages = tuple(Bounce(release=name, upgrade_from=pin, reasons=()) for name, pin in leg.stages)
    return replace(
        group.options(seed=seed, old=leg.old, new=leg.new, offline=leg.offline), stages=stages
    )


def _run(group: SimulatedGroup, job: tuple[Leg, int]) -> tuple[StepRun, ...]:
    """Bounce a group once; returns the cost of each bounce on the way."""
    leg, seed = job
    outcome = run_bounce(options_of(group, leg, seed=seed))
    stages = len(leg.stages)
    return tuple(_stage_run(outcome, stage, stages, rate=group.restore) for stage in range(stages))


def _stage_run(outcome: Outcome, stage: int, stages: int, *, rate: int) -> StepRun:
    trace, a_stage = outcome.trace, len(outcome.lanes)
    stops = [at for at, event in enumerate(trace) if _is_stop(event)]
    # Where the group never came to rest, nobody was stopped.
    begins = stops[stage * a_stage] if stage * a_stage < len(stops) else len(trace)
    is_last = stage + 1 == stages or (stage + 1) * a_stage >= len(stops)
    ends = len(trace) if is_last else stops[(stage + 1) * a_stage]
    from_ms = trace[begins].at_ms if begins < len(trace) else trace[-1].at_ms
    to_ms = trace[-1].at_ms if is_last else trace[ends].at_ms
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
