"""Runs of a group with levels, for one seed or many."""

from dataclasses import dataclass

from system_tests.engine import Outcome
from system_tests.levels.checkers import check_levels
from system_tests.levels.events import Event
from system_tests.levels.world import LevelsWorld


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
    world = LevelsWorld(options.seed, steps=options.steps)
    world.run()
    events = tuple(world.events)
    return Outcome(
        asked=options,
        old="native",
        new="next",
        lanes=(),
        trace=events,
        broken=tuple(check_levels(events)),
    )


def levels_lines(outcome: Outcome) -> list[str]:
    """Return the trace, one line per event, and the verdict."""
    lines = [_line(event) for event in outcome.trace]
    lines += [
        f"broken: {violation.rule}: step {violation.at_ms}, {violation.sentence}"
        for violation in outcome.broken
    ]
    return [*lines, "no rule was broken" if outcome.ok else f"replay: {outcome.replay}"]


def levels_document(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as JSON types with stable keys."""
    return {
        "seed": outcome.asked.seed,
        "steps": outcome.asked.steps,
        "happened": len(outcome.trace),
        "epoch": outcome.trace[-1].levels.epoch,
        "broken": [
            {"rule": violation.rule, "step": violation.at_ms, "sentence": violation.sentence}
            for violation in outcome.broken
        ],
        "replay": outcome.replay,
    }


def _line(event: Event) -> str:
    levels = " ".join(f"{name}={level}" for name, level in sorted(event.levels.levels.items()))
    parts = [f"epoch {event.levels.epoch} {levels}".rstrip()]
    parts += [f"version {event.version}"] if event.version else []
    parts += [f"tasks {' '.join(event.tasks)}"] if event.tasks else []
    parts += [f"members {' '.join(event.followers)}"] if event.followers else []
    parts += [event.why] if event.why else []
    return f"{event.step:4d}  {event.subject:<4} {event.what:<9} {'; '.join(parts)}"
