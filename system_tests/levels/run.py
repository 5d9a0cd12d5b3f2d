"""Runs of a group with levels, for one seed or many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from system_tests.levels.checkers import check_levels
from system_tests.levels.events import Event
from system_tests.levels.world import LevelsWorld
from system_tests.sim import Broken, Chunk, check_seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsOptions:
    """Options of a run: the seed and the number of random steps."""

    seed: int = 0
    steps: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsOutcome:
    """The outcome of a run.

    Attributes:
        options: the given options.
        events: all events, in order.
        broken: the rules that were broken.
    """

    options: LevelsOptions
    events: tuple[Event, ...]
    broken: tuple[Broken, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule was broken."""
        return not self.broken


def run_levels(options: LevelsOptions) -> LevelsOutcome:
    """Run one group and check its events."""
    world = LevelsWorld(options.seed, steps=options.steps)
    world.run()
    events = tuple(world.events)
    return LevelsOutcome(options=options, events=events, broken=tuple(check_levels(events)))


def run_levels_seeds(options: LevelsOptions, seeds: Sequence[int]) -> Chunk:
    """Run one group a seed."""
    return check_seeds(
        seeds,
        run=lambda seed: run_levels(replace(options, seed=seed)),
        releases=lambda _: ("native", "next"),
        replay=lambda outcome: _replay(outcome.options),
    )


def levels_lines(outcome: LevelsOutcome) -> list[str]:
    """Return the trace, one line per event, and the verdict."""
    lines = [_line(event) for event in outcome.events]
    lines += [
        f"broken: {violation.rule}: step {violation.at_ms}, {violation.sentence}"
        for violation in outcome.broken
    ]
    return [*lines, "no rule was broken" if outcome.ok else f"replay: {_replay(outcome.options)}"]


def levels_document(outcome: LevelsOutcome) -> dict[str, object]:
    """Return the outcome as JSON types with stable keys."""
    return {
        "seed": outcome.options.seed,
        "steps": outcome.options.steps,
        "happened": len(outcome.events),
        "epoch": outcome.events[-1].levels.epoch,
        "broken": [
            {"rule": violation.rule, "step": violation.at_ms, "sentence": violation.sentence}
            for violation in outcome.broken
        ],
        "replay": _replay(outcome.options),
    }


def _line(event: Event) -> str:
    levels = " ".join(f"{name}={level}" for name, level in sorted(event.levels.levels.items()))
    parts = [f"epoch {event.levels.epoch} {levels}".rstrip()]
    parts += [f"version {event.version}"] if event.version else []
    parts += [f"tasks {' '.join(event.tasks)}"] if event.tasks else []
    parts += [f"members {' '.join(event.followers)}"] if event.followers else []
    parts += [event.why] if event.why else []
    return f"{event.step:4d}  {event.subject:<4} {event.what:<9} {'; '.join(parts)}"


def _replay(options: LevelsOptions) -> str:
    return f"rolling-bounce simulate --world levels --seed {options.seed}"
