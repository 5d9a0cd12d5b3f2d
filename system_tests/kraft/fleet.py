"""Many seeds of a cluster: what one worker does with its share."""

from collections.abc import Sequence
from dataclasses import replace

from system_tests.kraft.narrate import kraft_lines, kraft_replay
from system_tests.kraft.plan import KraftOptions
from system_tests.kraft.run import run_kraft
from system_tests.sim import KEPT_TRACES, Chunk, Failure


def run_kraft_seeds(options: KraftOptions, seeds: Sequence[int]) -> Chunk:
    """Run one experiment a seed."""
    failures: list[Failure] = []
    for seed in seeds:
        outcome = run_kraft(replace(options, seed=seed))
        if outcome.ok:
            continue
        first = outcome.broken[0]
        lines = kraft_lines(outcome) if len(failures) < KEPT_TRACES else []
        failures.append(
            Failure(
                seed=seed,
                old=outcome.plan.old,
                new=outcome.plan.new,
                rule=first.rule,
                sentence=first.sentence,
                known=(),
                replay=kraft_replay(outcome),
                lines=tuple(lines),
            )
        )
    return Chunk(seeds=len(seeds), failures=tuple(failures))
