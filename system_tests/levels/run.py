"""Runs of a group with levels: options, outcome, document."""

from dataclasses import dataclass

from system_tests.engine import Outcome, check_events
from system_tests.levels.checkers import LEVEL_RULES, OTHER_RULES, LevelEvidence
from system_tests.levels.operate import LevelOperator
from system_tests.sim import Finalized, Happened, trace_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsOptions:
    """Options of a run: the seed and the number of random steps."""

    seed: int = 0
    steps: int = 40

    @property
    def replay(self) -> str:
        """The command that runs exactly this again."""
        return f"rolling-bounce simulate --world levels --seed {self.seed}"


def run_levels(options: LevelsOptions) -> Outcome:
    """Run one group and check its events."""
    operator = LevelOperator(options.seed)
    operator.run(options.steps)
    world = operator.world
    evidence = LevelEvidence(task_of=world.task_of, holds_back=operator.holds_back)
    return Outcome(
        asked=options,
        old="native",
        new="next",
        lanes=tuple(thread.name for thread in world.threads),
        trace=tuple(world.trace),
        broken=tuple(check_events(world.trace, evidence, (*LEVEL_RULES, *OTHER_RULES))),
    )


def levels_lines(outcome: Outcome) -> list[str]:
    """Return the trace, one line per event, and the verdict."""
    lines = trace_lines(outcome.lanes, outcome.trace)
    lines += [f"broken at {row.at_ms} ms: {row.rule}: {row.sentence}" for row in outcome.broken]
    return [*lines, "no rule was broken" if outcome.ok else f"replay: {outcome.replay}"]


def levels_document(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as JSON types with stable keys."""
    finalized = [event for event in outcome.trace if isinstance(event, Finalized)]
    steps = [event.at_ms for event in outcome.trace if isinstance(event, Happened)]
    return {
        "seed": outcome.asked.seed,
        "steps": outcome.asked.steps,
        "happened": len(outcome.trace),
        "epoch": finalized[-1].levels.epoch if finalized else 0,
        "broken": [
            {
                "rule": row.rule,
                "step": sum(at_ms <= row.at_ms for at_ms in steps),
                "sentence": row.sentence,
            }
            for row in outcome.broken
        ],
        "replay": outcome.replay,
    }
