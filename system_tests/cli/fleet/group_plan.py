"""The plan of one group of many: a row of a table, and plain values."""

from dataclasses import asdict, dataclass, field
from typing import Final

from encoding import shown
from probing import Direction
from system_tests.plan import (
    SimulatedGroup,
    StepCost,
    StreamsMove,
    UpgradePlan,
    plan_document,
    seconds_text,
)

HEADS: Final = (
    "group",
    "from",
    "to",
    "verdict",
    "bounces",
    "point of no return",
    "longest pause",
    "unknowns",
)
"""The columns of `GroupPlan.cells`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """The plan of one group, or why there is none.

    Attributes:
        name: group id.
        old, new: names of the releases; `old` is empty if it is not known.
        verdict: the words of the report's badge; problem: why there is no plan, often empty.
        is_red: the group must not be bounced as planned, or has no plan.
        made, group, costs: the plan, or None.
        move: the plan of a streams group, or of the move to the streams protocol; or None.
        unknowns: what the plan assumes or could not check, as sentences.
    """

    name: str
    old: str
    new: str
    verdict: str
    is_red: bool
    made: UpgradePlan | None = None
    group: SimulatedGroup = field(default_factory=SimulatedGroup)
    costs: tuple[StepCost, ...] | None = None
    move: StreamsMove | None = None
    unknowns: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_rollback(self) -> bool:
        """Whether members come to an older release."""
        if self.made is not None:
            return self.made.direction is Direction.ROLLBACK
        return self.move is not None and self.move.is_rollback

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        made, move = self.made, self.move
        verdict = f"{self.verdict}, see below" if self.problem else self.verdict
        if made is None:
            found = ("-", "-", "-", "-")
            if move is not None and not move.obstacles:
                no_return = move.no_return.partition(":")[0].removesuffix(" on this path")
                found = (move.how, no_return, "-", str(len(self.unknowns)))
            return (shown(self.name), self.old or "?", self.new, verdict, *found)
        known = [cost for cost in self.costs or () if cost.is_cost]
        worst = max(known, key=lambda cost: cost.spread("longest_pause_ms")[1], default=None)
        return (
            shown(self.name),
            self.old,
            self.new,
            verdict,
            str(len(made.steps)) if made.rolling else "all members stop",
            "none" if made.no_return is None else f"step {made.no_return}",
            "-" if worst is None else seconds_text(worst, "longest_pause_ms"),
            str(len(self.unknowns)),
        )

    @property
    def document(self) -> dict[str, object]:
        """The plan as plain values."""
        verdict = ": ".join(filter(None, (self.verdict, self.problem)))
        found = {"group_id": self.name, "verdict": verdict, "is_red": self.is_red}
        rest = {"unknowns": list(self.unknowns)}
        if self.made is None:
            move = {} if self.move is None else asdict(self.move)
            return move | found | {"from": self.old or None, "to": self.new} | rest
        return found | plan_document(self.made, self.costs, self.group) | rest
