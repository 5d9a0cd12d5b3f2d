"""What is simulated of a plan: its legs, and those of the ways back."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from probing import Bounce
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.model import PlanStep
from system_tests.plan.steps import UpgradePlan
from system_tests.sim import BounceOptions, plan_bounce


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

    @classmethod
    def of(cls, steps: tuple[PlanStep, ...]) -> "Leg":
        """Return the leg of consecutive steps."""
        stages = tuple((step.release, step.upgrade_from) for step in steps)
        return cls(steps[0].old, stages, offline=not steps[0].rolling)


class UndoneStep(NamedTuple):
    """A step of a way back, and the number of the step that it undoes, from 1."""

    number: int
    step: PlanStep


def bounces_to_run(plan: UpgradePlan, seeds: int) -> int:
    """Return how many bounces `step_costs` simulates."""
    return (len(legs_of(plan)) + len(back_legs(plan))) * seeds


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
        found[Leg.of(own)] = numbers
    return found


def back_legs(plan: UpgradePlan) -> list[tuple[Leg, list[UndoneStep]]]:
    """Return what is simulated for the ways back of all steps, one after the other.

    The group is simulated as it runs after the last step, and goes back from there. A leg ends
    where members have no `upgrade.from`, as a simulation begins without it. A reset is left out,
    as its time is that of the input; everything is, if each way back is rolling, deletes nothing
    and waits for no session: then it costs what the steps do.
    """
    if not any(is_costly(step) for step in plan.steps):
        return []
    return [(Leg.of(tuple(row.step for row in rows)), rows) for rows in _split(plan)]


def undo_legs(plan: UpgradePlan) -> tuple[Leg, ...]:
    """Return the legs of the ways back of all steps, one after the other, resets left out."""
    return tuple(Leg.of(tuple(row.step for row in rows)) for rows in _split(plan))


def is_costly(step: PlanStep) -> bool:
    """Whether the way back of a step costs more than bounces: state, sessions, or all members."""
    back = step.back
    return back is not None and not (back.free and not any(own.expires for own in back.steps))


def _split(plan: UpgradePlan) -> Iterator[list[UndoneStep]]:
    """Yield the steps of all ways back, from the last step to the first, by what is one leg."""
    leg: list[UndoneStep] = []
    for number, undone in reversed(list(enumerate(plan.steps, 1))):
        for step in undone.back.steps if undone.back is not None else ():
            changes = step.old != step.release and leg and leg[-1].step.upgrade_from is None
            if leg and (changes or step.resets or not step.rolling or not leg[-1].step.rolling):
                yield leg
                leg = []
            if not step.resets:
                leg.append(UndoneStep(number, step))
    if leg:
        yield leg


def options_of(group: SimulatedGroup, leg: Leg, *, seed: int) -> BounceOptions:
    """Return the options of one simulated bounce, which does what the steps of a leg say."""
    stages = tuple(Bounce(release=name, upgrade_from=pin, reasons=()) for name, pin in leg.stages)
    return replace(
        group.options(seed=seed, old=leg.old, new=leg.new, offline=leg.offline), stages=stages
    )
