"""The verdict of a plan, the same in text, JSON, the report and the table of many groups."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from probing import Direction
from system_tests.plan.cost import StepCost
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.model import PlanStep
from system_tests.plan.notes import Trap
from system_tests.plan.steps import UpgradePlan


class Decision(NamedTuple):
    """What a plan supports, in words, its colour (go, check or stop), and why it is a no go."""

    words: str
    colour: str
    reasons: tuple[str, ...] = ()

    @property
    def is_red(self) -> bool:
        """Whether the group must not be bounced as planned."""
        return self.colour == "stop"


def decision_of(
    made: UpgradePlan, group: SimulatedGroup, costs: Sequence[StepCost] = ()
) -> Decision:
    """Return the decision that a plan supports.

    It follows from the plan, which has the traps that simulated bounces of all pairs of releases
    run into. Costs change it only if they show what the plan does not know.
    """
    reasons = (
        *(made.traps.values() or (step.why[0] for step in made.steps if not step.rolling)),
        *(sentence for cost in costs for sentence in cost.verdict[:1]),
    )
    words = _no_go(made, costs)
    if words:
        return Decision(words, "stop", tuple(dict.fromkeys(reasons)))
    met = "go, if the points below are met"
    if made.direction is Direction.ROLLBACK:
        return Decision(f"a rollback, as {made.new} is older than {made.old}: {met}", "check")
    is_unsure = group.has_more_state or not group.is_real
    has_price = made.no_return is not None or made.restores_from is not None
    if made.steps and (has_price or is_unsure):
        return Decision(met, "check")
    return Decision(met if made.warnings or made.changes or made.bugs else "go", "go")


def _no_go(made: UpgradePlan, costs: Sequence[StepCost]) -> str:
    """Return why a plan is a no go, in words; empty: it is not."""
    if made.traps or not made.rolling:
        how = "no go" if made.rolling else "no go by rolling bounces"
        return ": ".join(filter(None, (how, "; ".join(sorted(made.traps)))))
    if any(cost.kills for cost in costs):
        return "no go: this way kills members"
    return "no go: simulated bounces break a rule" if any(cost.is_bad for cost in costs) else ""


def verdict_line(decision: Decision) -> str:
    """Return the verdict of a plan as a line of its text."""
    return f"  verdict: {decision.words}"


def ways_out(made: UpgradePlan, group: SimulatedGroup) -> Iterator[str]:
    """Yield what avoids a no go, each as an imperative; nothing if the plan is none."""
    if made.way_out:
        yield made.way_out
    if made.rolling:
        return
    yield "stop all members, as in step 1; do not bounce them one at a time"
    if set(made.traps) == {Trap.FATAL} and not group.subtopologies:
        yield (
            "only if the application has exactly one subtopology (Topology.describe() prints"
            " Sub-topology: 0 and no other): members can be bounced one at a time; plan with"
            " --group or --problem, which know how many it has, to see the bounces"
        )


def no_return_meaning(step: PlanStep) -> str:
    """Return what going back means after the point of no return."""
    if step.resets:
        return "from here on, state and results are rebuilt from the input, also if you go back"
    if step.back is not None and any(again.resets for again in step.back.steps):
        return "from here on, going back resets the application"
    return "from here on, going back stops all members"


def no_return_text(made: UpgradePlan) -> str:
    """Return where the point of no return is, and from where on the way back restores state."""
    outside = [change.no_return for change in made.changes if change.no_return]
    none = "none among these steps" if outside else "none on this path"
    where = none if made.no_return is None else f"step {made.no_return}"
    at = made.restores_from
    if at is not None and (made.no_return is None or at < made.no_return):
        where += f"; from step {at} on, going back deletes and restores state"
    return "; ".join((where, *outside))
