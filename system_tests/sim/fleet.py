"""Many seeds on all cores: run in chunks, summed up in the order of the seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from assignor.workers import results_of
from system_tests.sim.bounce import run_bounce
from system_tests.sim.checkers import Broken
from system_tests.sim.narrate import replay_command
from system_tests.sim.plan import BounceOptions

_CHUNK = 25

_Options = TypeVar("_Options")
_Outcome = TypeVar("_Outcome", bound="Checked")


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


class Checked(Protocol):
    """The outcome of one seed."""

    @property
    def ok(self) -> bool:
        """Tell whether no rule was broken."""

    @property
    def broken(self) -> Sequence[Broken]:
        """Every rule that was broken, the first one first."""


def check_seeds(
    seeds: Sequence[int],
    *,
    run: Callable[[int], _Outcome],
    releases: Callable[[_Outcome], tuple[str, str]],
    replay: Callable[[_Outcome], str],
    known: Callable[[_Outcome], tuple[str, ...]] = lambda _: (),
) -> Chunk:
    """Run one experiment for each seed; the other functions get outcomes that broke a rule.

    Args:
        seeds: which to run.
        run: seed -> outcome.
        releases: the old and the new one.
        replay: the one command that shows it again.
        known: ids of known Kafka issues of such a path.
    """
    failures: list[Failure] = []
    for seed in seeds:
        outcome = run(seed)
        if outcome.ok:
            continue
        first = outcome.broken[0]
        old, new = releases(outcome)
        failures.append(
            Failure(
                seed=seed,
                old=old,
                new=new,
                rule=first.rule,
                sentence=first.sentence,
                known=known(outcome),
                replay=replay(outcome),
            )
        )
    return Chunk(seeds=len(seeds), failures=tuple(failures))


def run_seeds(options: BounceOptions, seeds: Sequence[int]) -> Chunk:
    """Run one bounce for each seed."""
    return check_seeds(
        seeds,
        run=lambda seed: run_bounce(replace(options, seed=seed)),
        releases=lambda outcome: (outcome.plan.old, outcome.plan.new),
        replay=replay_command,
        known=lambda outcome: outcome.known,
    )


def run_fleet(
    options: _Options,
    seeds: range,
    *,
    workers: int | None = None,
    run: Callable[[_Options, Sequence[int]], Chunk],
) -> Iterator[Chunk]:
    """Run the seeds on all cores, and yield the chunks in order.

    Args:
        options: of every experiment; the seed in them does not count.
        seeds: which to run.
        workers: processes; as many as there are cores by default. One: in this process.
        run: runs some of the seeds; `run_seeds` for bounces of a group.
    """
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    return results_of(partial(run, options), chunks, workers=workers)
