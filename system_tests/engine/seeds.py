"""Many seeds on all cores: run in chunks, summed up in the order of the seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from assignor.workers import results_of
from system_tests.engine.checkers import Broken

_CHUNK = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A seed that broke a rule.

    Attributes:
        seed: which; old, new: the releases that it ran.
        rule, sentence: the first rule that was broken, and how.
        known: ids of known Kafka issues of such a path.
        replay: the one command that shows it again, with its trace.
    """

    seed: int
    old: str
    new: str
    rule: str
    sentence: str
    known: tuple[str, ...]
    replay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What a worker returns: how many seeds it ran, and those that failed."""

    seeds: int
    failures: tuple[Failure, ...]


class OptionError(ValueError):
    """The options do not fit together; the message says what does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one seed.

    Attributes:
        asked: the options as they were given; with a `seed` and a `replay`.
        old, new: the releases.
        lanes: names of the members or nodes of the trace.
        trace: what happened, in order.
        broken: every rule that was broken.
        known: ids of known Kafka issues of such a path.
    """

    asked: Any
    old: str
    new: str
    lanes: tuple[str, ...]
    trace: tuple[Any, ...]
    broken: tuple[Broken, ...]
    known: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no rule was broken."""
        return not self.broken

    @property
    def replay(self) -> str:
        """The command that runs exactly this again."""
        return str(self.asked.replay)


def check_seeds(run: Callable[[Any], Outcome], options: Any, seeds: Sequence[int]) -> Chunk:
    """Run one experiment for each seed, and return those that broke a rule."""
    failures: list[Failure] = []
    for seed in seeds:
        outcome = run(replace(options, seed=seed))
        if outcome.broken:
            first = outcome.broken[0]
            failures.append(
                Failure(
                    seed=seed,
                    old=outcome.old,
                    new=outcome.new,
                    rule=first.rule,
                    sentence=first.sentence,
                    known=outcome.known,
                    replay=outcome.replay,
                )
            )
    return Chunk(seeds=len(seeds), failures=tuple(failures))


def run_fleet(
    run: Callable[[Any], Outcome], options: Any, seeds: range, *, workers: int | None = None
) -> Iterator[Chunk]:
    """Run the seeds on all cores, and yield the chunks in order.

    Args:
        run: runs the experiment of some options.
        options: of every experiment; the seed in them does not count.
        seeds: which to run.
        workers: processes; as many as there are cores by default. One: in this process.
    """
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    return results_of(partial(check_seeds, run, options), chunks, workers=workers)
