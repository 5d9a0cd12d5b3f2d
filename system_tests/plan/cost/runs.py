"""The cost of steps over many simulated bounces: medians, ranges, shares, broken rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from system_tests.engine import Broken

_LOW, _HIGH = 0.05, 0.95
DEADLY: Final = frozenset({"nobody dies", "answers are readable"})
"""Rules that are broken where a member ends by itself."""
FEWEST_FOR_PERCENTILES: Final = 20
"""Of fewer values none lies below 5 % and none above 95 %."""


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
    """The cost of one step over all seeds.

    Attributes:
        all_runs: one run for each seed, in order.
        back: the cost of undoing the step; None: not simulated, as `back_legs` says.
    """

    all_runs: tuple[StepRun, ...]
    back: "StepCost | None" = None

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


def summed(costs: Sequence[StepCost]) -> StepCost:
    """Return the cost of several steps, one after the other, with the same seeds."""
    return StepCost(
        tuple(map(_one_after_the_other, zip(*(c.all_runs for c in costs), strict=True)))
    )


def _one_after_the_other(runs: Sequence[StepRun]) -> StepRun:
    def total(name: str) -> int:
        return sum(getattr(run, name) for run in runs)

    return StepRun(
        membership=total("membership"),
        version=total("version"),
        followup=total("followup"),
        pause_ms=total("pause_ms"),
        longest_pause_ms=max(run.longest_pause_ms for run in runs),
        restored=total("restored"),
        session_ms=total("session_ms"),
        restore_ms=total("restore_ms"),
        largest=max(run.largest for run in runs),
        waiting=total("waiting"),
        duration_ms=total("duration_ms"),
        is_warming=any(run.is_warming for run in runs),
        broken=tuple(broken for run in runs for broken in run.broken),
        known=tuple(name for run in runs for name in run.known),
    )
