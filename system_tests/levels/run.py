"""One run of a group with levels, or many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from system_tests.levels.checkers import check_levels
from system_tests.levels.seen import Seen
from system_tests.levels.world import LevelsWorld
from system_tests.sim import Broken, Chunk, judge_seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsOptions:
    """What is asked for: the seed, and how many things happen."""

    seed: int = 0
    steps: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsOutcome:
    """What came of it.

    Attributes:
        options: as given.
        seen: everything that happened; broken: every rule that was broken.
    """

    options: LevelsOptions
    seen: tuple[Seen, ...]
    broken: tuple[Broken, ...]

    @property
    def ok(self) -> bool:
        """Tell whether no rule was broken."""
        return not self.broken


def run_levels(options: LevelsOptions) -> LevelsOutcome:
    """Run one group to its end."""
    world = LevelsWorld(options.seed, steps=options.steps)
    world.run()
    seen = tuple(world.seen)
    return LevelsOutcome(options=options, seen=seen, broken=tuple(check_levels(seen)))


def run_levels_seeds(options: LevelsOptions, seeds: Sequence[int]) -> Chunk:
    """Run one group a seed."""
    return judge_seeds(
        seeds,
        run=lambda seed: run_levels(replace(options, seed=seed)),
        releases=lambda _: ("native", "next"),
        replay=lambda outcome: _replay(outcome.options),
        lines=levels_lines,
    )


def levels_lines(outcome: LevelsOutcome) -> list[str]:
    """The trace, one line a happening, and the verdict."""
    lines = [_line(one) for one in outcome.seen]
    lines += [f"broken: {one.rule}: step {one.at_ms}, {one.sentence}" for one in outcome.broken]
    return [*lines, "no rule was broken" if outcome.ok else f"again: {_replay(outcome.options)}"]


def levels_document(outcome: LevelsOutcome) -> dict[str, object]:
    """The verdict for programs."""
    return {
        "seed": outcome.options.seed,
        "steps": outcome.options.steps,
        "happened": len(outcome.seen),
        "epoch": outcome.seen[-1].levels.epoch,
        "broken": [
            {"rule": one.rule, "step": one.at_ms, "sentence": one.sentence}
            for one in outcome.broken
        ],
        "replay": _replay(outcome.options),
    }


def _line(one: Seen) -> str:
    levels = " ".join(f"{name}={level}" for name, level in sorted(one.levels.levels.items()))
    said = [f"epoch {one.levels.epoch} {levels}".rstrip()]
    said += [f"version {one.version}"] if one.version else []
    said += [f"tasks {' '.join(one.tasks)}"] if one.tasks else []
    said += [f"members {' '.join(one.followers)}"] if one.followers else []
    said += [one.why] if one.why else []
    return f"{one.step:4d}  {one.who:<4} {one.what:<9} {'; '.join(said)}"


def _replay(options: LevelsOptions) -> str:
    return f"rolling-bounce simulate --world levels --seed {options.seed}"
