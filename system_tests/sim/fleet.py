"""Many seeds on all cores: pure work, handed out in chunks, summed up in the order of the seeds."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TypeVar

from system_tests.sim.bounce import run_bounce
from system_tests.sim.narrate import outcome_lines, replay_command
from system_tests.sim.plan import BounceOptions

_CHUNK = 25
KEPT_TRACES = 3
"""Traces of failures that a chunk hands back; of the rest the command that replays them."""

_Options = TypeVar("_Options")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A seed that broke a rule.

    Attributes:
        seed: which; old, new: the releases that it ran.
        rule, sentence: the first rule that was broken, and how.
        known: ids of what history knows of such a path.
        replay: the one command that shows it again.
        lines: the trace and the verdict, for the first few failures of a chunk.
    """

    seed: int
    old: str
    new: str
    rule: str
    sentence: str
    known: tuple[str, ...]
    replay: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What a worker hands back: how many seeds it ran, and those that failed."""

    seeds: int
    failures: tuple[Failure, ...]


def run_seeds(options: BounceOptions, seeds: Sequence[int]) -> Chunk:
    """Run one bounce a seed."""
    failures: list[Failure] = []
    for seed in seeds:
        outcome = run_bounce(replace(options, seed=seed))
        if outcome.ok:
            continue
        first = outcome.broken[0]
        lines = outcome_lines(outcome) if len(failures) < KEPT_TRACES else []
        failures.append(
            Failure(
                seed=seed,
                old=outcome.plan.old,
                new=outcome.plan.new,
                rule=first.rule,
                sentence=first.sentence,
                known=outcome.known,
                replay=replay_command(outcome),
                lines=tuple(lines),
            )
        )
    return Chunk(seeds=len(seeds), failures=tuple(failures))


def run_fleet(
    options: _Options,
    seeds: range,
    *,
    workers: int | None = None,
    run: Callable[[_Options, Sequence[int]], Chunk],
) -> Iterator[Chunk]:
    """Run the seeds on all cores, and yield each chunk as it is done.

    Args:
        options: of every experiment; the seed in them does not count.
        seeds: which to run.
        workers: processes; as many as there are cores by default. One: in this process.
        run: runs some of the seeds; `run_seeds` for bounces of a group.
    """
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    count = min(workers or os.cpu_count() or 1, len(chunks))
    if count <= 1:
        yield from (run(options, chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[Chunk]] = set()
        for chunk in chunks:
            waiting.add(pool.submit(run, options, chunk))
            if len(waiting) >= 4 * count:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
